"""Instrumentation of calls other than operators: copies, waits, updates of weights, sums of gradients, layers, batches.

Each function is replaced by a measuring wrapper while the profiler runs, and restored afterwards: a program that isn't profiled pays nothing, and
the instrumented modules do not depend on the profiler.
"""
from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .. import ndarray
from ..executor import Executor
from ..gluon.block import Block
from ..gluon.cached_op import CachedOp
from ..gluon.data import dataloader
from ..gluon.data.workers import WorkerPool, WorkerThreads
from ..gluon.trainer import Trainer
from ..io import background
from ..io.base import DataIter
from ..kvstore.base import KVStoreBase
from ..kvstore.kvstore import KVStore
from ..kvstore.server import Server
from ..ndarray import NDArray, dispatch
from ..optimizer.base import Optimizer
from ..symbol import Symbol
from . import ranges
from .events import API, DATA, LAYER, OPERATOR, Kind

if TYPE_CHECKING:
    from .recorder import Recorder

WAITING, WORKING = "waiting for data", "making a batch"
# Groups of functions that call one another: only the outermost call of a group counts.
_UPDATE, _STORE, _BATCH, _BIND = "update", "store", "batch", "bind"


def _copy(args: tuple[Any, ...]) -> str | None:
    source, target = args[0], args[1] if len(args) > 1 else None
    if not isinstance(target, NDArray):  # a new array, which the observer in dispatch records
        return None
    return _between(source, target)


def _between(source: NDArray, target: NDArray) -> str:
    return f"Copy{'GPU' if source._data.is_cuda else 'CPU'}2{'GPU' if target._data.is_cuda else 'CPU'}"


def _assignment(args: tuple[Any, ...]) -> str | None:
    target, key, value = args
    all_elements = key is Ellipsis or type(key) is slice and key == slice(None)
    if isinstance(value, NDArray):
        return _between(value, target) if all_elements else "_slice_assign"
    if isinstance(value, (int, float)):
        return "_full" if all_elements else "_slice_assign_scalar"
    return "CopyCPU2CPU" if not target._data.is_cuda else "CopyCPU2GPU"


def _sum(args: tuple[Any, ...]) -> str | None:
    arrays = args[2]
    if arrays[0].stype != "default":
        return "KVStoreReduce"
    return "ElementwiseSum" if len(arrays) > 1 else None


_STORES = {"init": "MXKVStoreInit", "broadcast": "MXKVStoreBroadcast", "push": "MXKVStorePush", "pull": "MXKVStorePull",
           "pushpull": "MXKVStorePushPull", "row_sparse_pull": "MXKVStorePullRowSparse"}
# MXNet's operators for the updates of a class: without and with a state.
_UPDATES = {"SGD": ("sgd_update", "sgd_mom_update"), "ccSGD": ("sgd_update", "sgd_mom_update"), "LBSGD": ("sgd_update", "sgd_mom_update"),
            "NAG": ("sgd_update", "nag_mom_update"), "Signum": ("signsgd_update", "signum_update"), "LARS": ("sgd_update", "sgd_mom_update"),
            "AdaGrad": ("adagrad_update", "adagrad_update"), "AdamW": ("_adamw_update", "_adamw_update"),
            "GroupAdaGrad": ("_contrib_group_adagrad_update",) * 2, "RMSProp": ("rmsprop_update", "rmsprop_update")}


def _update(args: tuple[Any, ...]) -> str | None:
    optimizer, _, weight, _, state = args[:5]
    many = isinstance(weight, (list, tuple))
    first, state = (weight[0], state[0]) if many else (weight, state)
    name = type(optimizer).__name__
    half = getattr(optimizer, "multi_precision", False) and first._data.dtype in (torch.float16, torch.bfloat16)
    plain, with_state = _UPDATES.get(name, (f"{name.lower()}_update",) * 2)
    if half and isinstance(state, (list, tuple)) and name in ("SGD", "ccSGD", "NAG", "LARS"):
        state = state[0]
    if name == "RMSProp" and getattr(optimizer, "centered", False):
        with_state = "rmspropalex_update"
    operator = plain if state is None else with_state
    if half and operator.startswith(("sgd", "nag", "_adamw", "lamb")):
        operator = f"mp_{operator}" if not operator.startswith("_") else f"_mp{operator}"
    if name == "LARS":
        return f"preloaded_multi_{operator}"
    return f"multi_{operator}" if many and operator.startswith(("sgd", "mp_sgd")) else operator


def _request(args: tuple[Any, ...]) -> str | None:
    return f"KVStoreServer.{args[1].get('do')}"


def _layer(args: tuple[Any, ...]) -> str | None:
    return args[0].name


class Point:
    """An instrumented function.

    Parameters
    ----------
    owner : class or module
    attribute : str
    name : str or callable
        The name of the event, or a function from the call's arguments to the name (None for no event).
    category : str
    once : str
        The name of a group of points of which only the outermost call counts.
    waits : bool
        If True, the call waits for a device first, which is recorded as an event of its own.
    """

    def __init__(self, owner: Any, attribute: str, name: str | Callable[[tuple[Any, ...]], str | None], category: str = OPERATOR, once: str = "",
                 waits: bool = False) -> None:
        self.owner, self.attribute, self.name, self.category, self.once, self.waits = owner, attribute, name, category, once, waits


POINTS = [
    Point(NDArray, "asnumpy", "MXNDArraySyncCopyToCPU", API, waits=True),
    Point(NDArray, "wait_to_read", "MXNDArrayWaitToRead", API, waits=True),
    Point(ndarray, "waitall", "MXNDArrayWaitAll", API),
    Point(NDArray, "copyto", _copy),
    Point(NDArray, "__setitem__", _assignment),
    Point(KVStore, "_reduce", _sum),
    Point(CachedOp, "__call__", "MXInvokeCachedOpEx", API),
    Point(Symbol, "simple_bind", "_SimpleBindImpl", API, once=_BIND),
    Point(Symbol, "bind", "MXExecutorBindEX", API, once=_BIND),
    Point(Executor, "forward", "MXExecutorForward", API),
    Point(Executor, "backward", "MXExecutorBackwardEx", API),
    Point(Server, "_handle", _request, API),
    Point(Block, "__call__", _layer, LAYER),
    Point(Trainer, "step", "Trainer.step", LAYER),
    Point(background.Channel, "get", WAITING, DATA),
    Point(dataloader._MultiWorkerIter, "__next__", WAITING, DATA),
    Point(dataloader.DataLoader, "_batch", WORKING, DATA),
]


def _reported_by_workers(original: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    """Return a wrapper of a pool's ``apply_async`` that measures in the worker and records the time with the result."""
    @functools.wraps(original)
    def apply_async(pool: Any, function: Callable[..., Any], arguments: Any = ()) -> Any:
        return _Result(original(pool, _measured_call, (function, arguments)), recorder)

    return apply_async


class _Measured(NamedTuple):
    """The return value of a worker: the result with its process, thread, start and end (ns)."""

    value: Any
    process: int
    thread: int
    start: int
    end: int


def _measured_call(function: Callable[..., Any], arguments: Any) -> _Measured:
    start = time.perf_counter_ns()
    value = function(*arguments)
    return _Measured(value, os.getpid(), threading.get_ident(), start, time.perf_counter_ns())


class _Result:
    """The result object of ``apply_async``; `get` records the worker's time and returns the value without it."""

    def __init__(self, result: Any, recorder: Recorder) -> None:
        self._result, self._recorder = result, recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)

    def get(self, *args: Any) -> Any:
        result = self._result.get(*args)
        if self._recorder.active:
            place = "" if result.process == os.getpid() else f"DataLoader worker {result.process}"
            self._recorder.add("X", WORKING, DATA, result.start, result.end - result.start, place=place, thread=result.thread)
        return result.value


def _reported_by_thread(original: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    """Return a wrapper of a prefetching thread's ``put`` that records the time since its last batch as work."""
    local = threading.local()

    @functools.wraps(original)
    def put(channel: Any, item: Any) -> Any:
        before = getattr(local, "done", None)
        if before is not None and recorder.active:
            recorder.add("X", WORKING, DATA, before, time.perf_counter_ns() - before)
        result = original(channel, item)
        local.done = time.perf_counter_ns()
        return result

    return put


_OTHERS = ((WorkerPool, "apply_async", _reported_by_workers),
           (WorkerThreads, "apply_async", _reported_by_workers), (background.Channel, "put", _reported_by_thread))


def _found() -> Iterator[Point]:
    """Yield all points: the fixed ones, and those of the subclasses that exist by now."""
    yield from POINTS
    for cls in _below(Block):
        if "__call__" in cls.__dict__ and cls.__module__.startswith("mxnet."):
            yield Point(cls, "__call__", _layer, LAYER)
    for cls in _below(KVStoreBase):
        if cls.__module__.startswith("mxnet."):
            for attribute, name in _STORES.items():
                yield Point(cls, attribute, name, API, once=_STORE)
    for cls in _below(Optimizer):
        if cls.__module__.startswith("mxnet."):
            for attribute in ("update", "update_multi_precision"):
                yield Point(cls, attribute, _update, once=_UPDATE)
    for cls in _below(DataIter):
        for attribute in ("next", "__next__"):
            yield Point(cls, attribute, lambda args: f"{type(args[0]).__name__}.next", DATA, once=_BATCH)


def _below(cls: type[Any]) -> list[type[Any]]:
    classes = [cls]
    for one in classes:
        classes += [c for c in one.__subclasses__() if c not in classes]
    return classes


class Points:
    """Installs the measuring wrappers, and removes them.

    Parameters
    ----------
    recorder : Recorder
        Receives the events.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._put: list[tuple[Any, str, Any]] = []  # owner, attribute, and the original function
        self._inside = threading.local()
        self._state = (False, False)
        self._enclose: ranges.Enclose | None = None
        self.listening: list[ranges.Tool] = []  # tools that receive ranges

    def switch(self, operators: bool, api: bool) -> None:
        """Install the wrappers of the selected groups (operators, layers and data; calls of the API), and remove all others."""
        if self._state == (operators, api):
            return
        self._state = operators, api
        for owner, attribute, original in reversed(self._put):
            setattr(owner, attribute, original)
        self._put.clear()
        self.listening = ranges.tools() if operators or api else []
        self._enclose = enclose = dispatch.enclose = ranges.enclosing(self.listening)
        if enclose is not None:
            for owner, attribute, function in ranges.calls(enclose):
                self._replace(owner, attribute, function)
        wanted = {OPERATOR: operators, LAYER: operators, DATA: operators or api, API: api}
        for point in _found() if operators or api else ():
            owner = point.owner
            original = owner.__dict__.get(point.attribute)
            if callable(original) and wanted[point.category] and not any(o is owner and a == point.attribute for o, a, _ in self._put):
                self._replace(owner, point.attribute, self._measured(original, point))
        for owner, attribute, maker in _OTHERS if wanted[DATA] else ():
            self._replace(owner, attribute, maker(owner.__dict__[attribute], self._recorder))

    def _replace(self, owner: Any, attribute: str, function: Callable[..., Any]) -> None:
        self._put.append((owner, attribute, owner.__dict__[attribute]))
        setattr(owner, attribute, function)

    def _measured(self, original: Callable[..., Any], point: Point) -> Callable[..., Any]:
        recorder, inside, wait = self._recorder, self._inside, self._wait if point.waits else None
        events, enclose = recorder.events, self._enclose
        numbers: dict[str | None, int] = {}
        by_object = point.category == LAYER  # a HybridBlock calls Block's `__call__`: one event for each block

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            key: Any = id(args[0]) if by_object else point.once
            running: dict[Any, bool] = inside.__dict__
            if not recorder.active or key and key in running:
                return original(*args, **kwargs)
            name = point.name if isinstance(point.name, str) else point.name(args)
            if name is None:
                return original(*args, **kwargs)
            if key:
                running[key] = True
            start = time.perf_counter_ns()
            try:
                if wait is not None:
                    wait(args[0])
                return original(*args, **kwargs) if enclose is None else enclose(name, original, args, kwargs)
            finally:
                duration = time.perf_counter_ns() - start
                if key:
                    del running[key]
                custom = dispatch.mode.custom_operator if point.category == OPERATOR else None
                if custom is not None:
                    recorder.in_custom(custom, name, start, start + duration)
                elif recorder.active:
                    number = numbers.get(name)
                    if number is None:
                        number = numbers[name] = events.number(Kind("X", name, point.category, counts=-1 if point.category == LAYER else 1))
                    events.append(number, start, duration)

        return call

    def _wait(self, array: NDArray) -> None:
        """Wait for the kernels that compute an array, and record the wait; on a CPU they have ended when a call returns."""
        if not self._state[0]:
            return
        start = time.perf_counter_ns()
        if array._data.is_cuda:
            torch.cuda.current_stream(array._data.device).synchronize()
        self._recorder.events.append(self._recorder.events.number(_WAIT), start, time.perf_counter_ns() - start)


_WAIT = Kind("X", "WaitForVar", OPERATOR)
