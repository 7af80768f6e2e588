"""The models that are served: loaded, warmed up, replaced and unloaded while requests go on."""
from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base import MXNetError
from . import sources
from .archives import Handler, opened
from .batcher import Batcher, Compute, split
from .curve import Curve, measured
from .errors import RequestError
from .images import Preprocessing
from .metrics import Metrics, ModelMetrics
from .settings import Batching, Settings
from .sources import Source
from .tensors import TensorSpec

_log = logging.getLogger("mxnet.serve")
_LEAST_RUNS, _MOST_RUNS, _MEASURED_SECONDS = 3, 50, 0.2  # of a size
_TURN_SECONDS = 0.002  # of measurements between two batches: each turn of the compute thread waits for Python's lock


@dataclass
class Served:
    """A version of a model that answers requests.

    Attributes
    ----------
    inputs, outputs : list of TensorSpec
        None for an archive's handler, which takes what it likes.
    users : int
        Requests that have found this version and are not answered yet.
    decoding : int
        Those of them whose images are being decoded, which will come to the batcher.
    """

    source: Source
    stamp: tuple
    batcher: Batcher
    metrics: ModelMetrics
    inputs: list[TensorSpec] = field(default_factory=list)
    outputs: list[TensorSpec] = field(default_factory=list)
    batched: bool = False
    labels: list[str] = field(default_factory=list)
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    handler: Handler | None = None
    users: int = 0
    decoding: int = 0

    def key(self, arrays: Sequence[np.ndarray]) -> Any:
        """Return what requests must have in common to share a batch."""
        return tuple(a.shape[1:] for a in arrays) if self.batched else None

    async def predict(self, arrays: Sequence[np.ndarray], deadline: float) -> list[np.ndarray]:
        """Return the outputs for inputs that fit."""
        rows = arrays[0].shape[0] if self.batched else 1
        if self.batched and any(a.shape[0] != rows for a in arrays):
            raise RequestError(400, f"the inputs have different numbers of rows: {[a.shape[0] for a in arrays]}")
        return await self.batcher.submit(arrays, rows, self.key(arrays), deadline)


class Repository:
    """Models by name and version.

    Parameters
    ----------
    settings : Settings
        Its `models` are looked at again by `rescan`.
    metrics : Metrics
    """

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.models: dict[str, dict[str, Served]] = {}
        self.failures: dict[tuple[str, str], str] = {}
        self.metrics, self.loaded = metrics, False
        self._order: list[str] = []  # of the command line
        self._settings = settings
        self._compute = Compute()
        self._changing = asyncio.Lock()
        self._closing: set[asyncio.Task] = set()

    def find(self, name: str, version: str | None = None) -> Served:
        """Return a version of a model, the newest by default.

        Raises
        ------
        RequestError
            If it is not served (404).
        """
        versions = self.models.get(name)
        if not versions:
            raise RequestError(404, f"there is no model {name[:128]!r}; served are {sorted(self.models)[:16]}")
        if version is None:
            return versions[max(versions, key=int)]
        if version not in versions:
            raise RequestError(404, f"the model {name!r} has the versions {sorted(versions, key=int)}, not {version[:32]!r}")
        return versions[version]

    def first(self) -> str:
        """Return the name of the model that answers where a request names none."""
        found = next((name for name in self._order if name in self.models), None)
        if found is None:
            raise RequestError(503, "no model is loaded")
        return found

    async def start(self) -> None:
        """Load everything; raise an `MXNetError` if something can't be."""
        self._compute.start()
        await self.rescan()
        if self.failures:
            raise MXNetError("; ".join(f"{name} {version}: {text}" for (name, version), text in self.failures.items()))
        self.loaded = True

    async def rescan(self) -> None:
        """Look at the files again: load what is new or has changed, unload what is gone. What can't be loaded leaves its predecessor in place."""
        async with self._changing:
            found = {(s.name, s.version): s for s in await asyncio.to_thread(self._discovered)}
            self._order = [name for name, _ in found]
            for key, source in found.items():
                served = self.models.get(source.name, {}).get(source.version)
                if served is None or served.stamp != source.stamp():
                    try:
                        await self._replace(source)
                    except MXNetError as error:
                        self.failures[key] = str(error)
                        _log.error("%s, version %s: %s", *key, error)
            for name, versions in list(self.models.items()):
                for version in list(versions):
                    if (name, version) not in found:
                        self._remove(name, version)

    async def load(self, name: str) -> None:
        """Load a model's versions anew, or for the first time.

        Raises
        ------
        RequestError
            If no argument of the command line leads to it (404), or it can't be loaded (400); then its predecessor stays.
        """
        async with self._changing:
            found = {s.version: s for s in await asyncio.to_thread(self._discovered) if s.name == name}
            if not found:
                raise RequestError(404, f"there is no model {name[:128]!r} among what is served")
            for source in found.values():
                try:
                    await self._replace(source)
                except MXNetError as error:
                    self.failures[name, source.version] = str(error)
                    raise RequestError(400, f"{name}, version {source.version}: {error}") from error
            for version in set(self.models[name]) - set(found):
                self._remove(name, version)

    def _discovered(self) -> list[Source]:
        try:
            return [source for argument in self._settings.models for source in sources.discover(argument)]
        except OSError as error:
            raise MXNetError(f"the models can't be looked for: {error}") from error

    async def unload(self, name: str) -> None:
        """Serve a model no more; what was accepted for it is answered."""
        async with self._changing:
            self.find(name)
            for version in list(self.models[name]):
                self._remove(name, version)

    def _remove(self, name: str, version: str) -> None:
        self._retire(self.models[name].pop(version))
        if not self.models[name]:
            del self.models[name]
        _log.info("%s, version %s: unloaded", name, version)

    def _retire(self, served: Served) -> None:
        async def close() -> None:
            while served.users:
                await asyncio.sleep(0.005)
            await served.batcher.close()

        served.metrics.gone()
        task = asyncio.get_running_loop().create_task(close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _replace(self, source: Source) -> None:
        """Load and warm up a version beside its predecessor, and then let it take the place."""
        start = time.perf_counter()
        try:
            stamp = source.stamp()
            make = await asyncio.to_thread(self._prepared, source)
        except (OSError, ImportError) as error:
            raise MXNetError(str(error)) from error
        served = make(asyncio.get_running_loop(), stamp)
        versions = self.models.setdefault(source.name, {})
        before, versions[source.version] = versions.get(source.version), served
        if before is not None:
            self._retire(before)
            served.metrics = self.metrics.of_model(source.name, source.version)  # ready again
        self.failures.pop((source.name, source.version), None)
        curve = served.batcher.curve
        _log.info("%s, version %s: ready after %.1f s; batches of %s", source.name, source.version, time.perf_counter() - start,
                  ", ".join(f"{size} take {took * 1e3:.2f} ms" for size, took in curve.seconds.items()))

    def _prepared(self, source: Source) -> Callable[[asyncio.AbstractEventLoop, tuple], Served]:
        """Load a model and measure it, outside of the event loop; return what makes it `Served` there."""
        metrics = self.metrics.of_model
        archive = sources.archive_of(source)
        if archive is not None:
            handler = opened(archive, self._settings.allow_code, self._settings.limits)
            self._compute.call(handler.start)

            def of_handler(loop: asyncio.AbstractEventLoop, stamp: tuple) -> Served:
                own = metrics(source.name, source.version)
                curve = Curve({size: 0.01 for size in range(1, handler.batch_size + 1)})
                batcher = Batcher(self._compute, lambda jobs, rows, size: handler(jobs), curve, self._settings.limits.queue, own, loop)
                return Served(source, stamp, batcher, own, handler=handler)

            return of_handler
        loaded = sources.load(source, self._declared_for(source.name), self._settings.ctx)
        network = loaded.network
        network.warm_up(self._settings.batching.largest > 1)
        curve = self._curve(network)

        def run(jobs: Sequence[Any], rows: int, size: int) -> Sequence[Any]:
            outputs = network.run_together(jobs, rows, size)
            return split(outputs, [arrays[0].shape[0] for arrays in jobs]) if network.batched else [outputs]

        def of_network(loop: asyncio.AbstractEventLoop, stamp: tuple) -> Served:
            own = metrics(source.name, source.version)
            batcher = Batcher(self._compute, run, curve, self._settings.limits.queue, own, loop)
            return Served(source, stamp, batcher, own, network.inputs, network.outputs, network.batched, loaded.labels, loaded.preprocessing)

        return of_network

    def _declared_for(self, name: str) -> list[TensorSpec]:
        of_model, of_all = ([spec for model, spec in self._settings.declared if model == wanted] for wanted in (name, None))
        return of_model or of_all

    def _curve(self, network: Any) -> Curve:
        def time_of(size: int) -> float:
            arrays = network.sample(size)
            network.run(arrays)  # compiles here, beside the batches of other models
            taken: list[float] = []
            while len(taken) < _LEAST_RUNS or len(taken) < _MOST_RUNS and sum(taken) < _MEASURED_SECONDS:
                taken += self._compute.call(functools.partial(_timed, network, arrays, _MOST_RUNS - len(taken)))
            return sorted(taken)[len(taken) // 2]

        curve = measured(time_of, self._settings.batching if network.batched else Batching(largest=1))
        network.keep(list(curve.seconds))
        return curve

    async def close(self) -> None:
        """Answer everything, and end the compute thread."""
        for name, versions in list(self.models.items()):
            for version in list(versions):
                self._remove(name, version)
        while self._closing:
            await asyncio.gather(*self._closing)
        await asyncio.to_thread(self._compute.stop)


def _timed(network: Any, arrays: Sequence[np.ndarray], most: int) -> list[float]:
    """Return the seconds of each of several runs: as many as fit into a turn, at least one."""
    end = time.perf_counter() + _TURN_SECONDS
    taken: list[float] = []
    while not taken or len(taken) < most and time.perf_counter() < end:
        start = time.perf_counter()
        network.run(arrays)
        taken.append(time.perf_counter() - start)
    return taken
