"""Prometheus metrics of the service."""
from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """All metrics of a server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("remex_requests", "HTTP responses", ["route", "model", "status"], registry=self.registry)
        self.latency = Histogram("remex_request_seconds", "Seconds from a request's head to its response", ["model", "version"], buckets=_SECONDS,
                                 registry=self.registry)
        self.batch_rows = Histogram("remex_batch_rows", "Rows of the batches that ran", ["model", "version"], buckets=_ROWS, registry=self.registry)
        self.batch_seconds = Histogram("remex_batch_seconds", "Seconds that batches took", ["model", "version"], buckets=_SECONDS,
                                       registry=self.registry)
        self.queue = Gauge("remex_queue_requests", "Requests that wait for a batch", ["model", "version"], registry=self.registry)
        self.ready = Gauge("remex_model_ready", "1 for each version that is served", ["model", "version"], registry=self.registry)
        self.memory = Gauge("remex_body_bytes", "Bytes of the bodies of requests without an answer", registry=self.registry)

    def of_model(self, name: str, version: str) -> ModelMetrics:
        """Return the metrics of one version of a model."""
        return ModelMetrics(self, name, version)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self.registry)


class ModelMetrics:
    """The metrics of one version of a model; asked for by labels once, not in each request."""

    def __init__(self, metrics: Metrics, name: str, version: str) -> None:
        self._metrics, self._labels = metrics, (name, version)
        self.latency, self.queue = metrics.latency.labels(name, version), metrics.queue.labels(name, version)
        self._rows, self._seconds = metrics.batch_rows.labels(name, version), metrics.batch_seconds.labels(name, version)
        metrics.ready.labels(name, version).set(1)

    def ran(self, rows: int, seconds: float) -> None:
        """Count a batch."""
        self._rows.observe(rows)
        self._seconds.observe(seconds)

    def gone(self) -> None:
        """Say that the version is not served any more; its counters stay."""
        self._metrics.ready.labels(*self._labels).set(0)

    def histogram(self) -> Sequence[tuple[float, int]]:
        """Return upper bounds of latency in seconds, the last infinite, each with the number of requests between it and the bound before."""
        return buckets(self.latency)

    def batches(self) -> Sequence[tuple[float, int]]:
        """Return the same for rows of batches."""
        return buckets(self._rows)


def buckets(histogram: Histogram) -> list[tuple[float, int]]:
    """Return a histogram's upper bounds, each with the number of observations between it and the bound before."""
    samples = [s for metric in histogram.collect() for s in metric.samples if s.name.endswith("_bucket")]
    bounds = [float(s.labels["le"]) for s in samples]
    totals = [int(s.value) for s in samples]
    return [(bound, total - before) for bound, total, before in zip(bounds, totals, [0, *totals])]
