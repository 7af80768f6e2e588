"""Checks and choices of metrics for the estimator and its handlers."""
from __future__ import annotations

from typing import Any

from ....metric import Accuracy, CompositeEvalMetric, EvalMetric
from ....suggestions import shortened
from ...loss import Loss, SoftmaxCrossEntropyLoss


def _check_metrics(metrics: Any) -> list[EvalMetric]:
    """Return metrics as a list, a composite one replaced by its components."""
    if isinstance(metrics, CompositeEvalMetric):
        return [single for metric in metrics.metrics for single in _check_metrics(metric)]
    if isinstance(metrics, EvalMetric):
        return [metrics]
    metrics = metrics or []
    if not isinstance(metrics, (list, tuple)) or not all(isinstance(metric, EvalMetric) for metric in metrics):
        raise ValueError(f"an EvalMetric or a list of them expected, received {shortened(metrics)}; mx.metric.create makes one of a name")
    return list(metrics)


def _check_handler_metric_ref(handler: Any, known_metrics: set[EvalMetric]) -> None:
    """Raise a ValueError if an attribute of `handler` with "metric" in its name holds a metric that the estimator does not update."""
    for name in dir(handler):
        if "metric" in name:
            value = getattr(handler, name)
            for metric in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(metric, EvalMetric):
                    _check_metric_known(handler, metric, known_metrics)


def _check_metric_known(handler: Any, metric: EvalMetric, known_metrics: set[EvalMetric]) -> None:
    if metric not in known_metrics:
        raise ValueError(f"{type(handler).__name__} refers to {metric}, which nothing updates here; give it metrics out of "
                         "estimator.train_metrics and estimator.val_metrics, or replace the MetricHandler too")


def _suggest_metric_for_loss(loss: Loss) -> EvalMetric | None:
    """Return the default metric for a network trained with `loss`: the accuracy for `SoftmaxCrossEntropyLoss`, else None."""
    return Accuracy() if isinstance(loss, SoftmaxCrossEntropyLoss) else None
