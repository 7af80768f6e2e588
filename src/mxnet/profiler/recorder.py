"""The recorder: switches the observers of operators, graphs and calls on and off, and collects their events."""
import functools
import operator
import os
import threading
import time
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

import torch

from .. import processor
from .. import threads as thread_policy
from ..ndarray import dispatch
from ..ndarray.dispatch import Call, mode
from ..operator import custom_function
from . import storage
from .backward import Backward, next_number
from .events import API, CUSTOM, GRAPH, HOST, MEMORY, OPERATOR, Events, Kind, pack
from .gpu import Kernels
from .points import Points
from .ranges import Tool
from .trace import Encoder, Writer


class Settings:
    """The options of `set_config`: the events to record, and the files to write."""

    symbolic = imperative = memory = api = True
    filename = "profile.json"
    gpu_memory_prefix = "gpu_memory_profile"
    continuous_dump = False
    dump_period = 1.0
    aggregate_stats = False


_COPIES = frozenset(("_copyto",))  # shown by the names of `copy_name`
_AT_ONCE = 20_000  # events that are encoded at a time
_SHARING = {"_basic_indexing": "MXNDArraySlice"}  # operators that only share memory here: calls of the API in MXNet, not operators


class Recorder:
    """Collects events while it is running and not paused."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.running = self.paused = False
        self.events = Events()
        self._backward = Backward(self.events)
        self._points = Points(self)
        self._kernels = Kernels(self.events, self._backward.natives)
        self._numbers: dict[Any, tuple[int, int]] = {}  # from a name or a Call to the numbers of its kinds, forward and backward
        self._calls: dict[str, int] = {}  # likewise for calls of the API
        self._inside = threading.local()
        self.origin = time.time_ns() - time.perf_counter_ns()
        self._writer: Writer | None = None
        self._writing = threading.RLock()
        self._measuring = False  # memory
        self._highest: dict[str, int] = {}  # the most memory in use after an operator since profiling began
        self._used: dict[str, int] = {}  # the last recorded memory of each device
        self._since: tuple[float, float, float | None] | None = None  # `_waits` at the start of recording
        self.waited_ms = 0.0  # time that threads waited for a processor while events were recorded
        self._taken = self._idle = 0.0  # seconds of recording, and of idle cores in that time
        self._started = False  # True if events may have been recorded that are in no file yet

    @property
    def active(self) -> bool:
        """True while events are recorded."""
        return self.running and not self.paused

    @property
    def listening(self) -> list[Tool]:
        """The attached tools that receive ranges while events are recorded."""
        return self._points.listening

    def _tell_waiting(self, on: bool) -> None:
        """Measure the threads' waiting time and the idle cores between the start and the end of recording, and add them up."""
        if on and self._since is None:
            self._since = self._waits()
        elif not on and self._since is not None:
            (then, waited, idle), self._since = self._since, None
            end, waited_now, idle_now = self._waits()
            self.waited_ms += max(waited_now - waited, 0.0) * 1000
            if idle is not None and idle_now is not None:
                self._taken += end - then
                self._idle += max(idle_now - idle, 0.0)

    @staticmethod
    def _waits() -> tuple[float, float, float | None]:
        """Return the time, the total time that threads waited for a processor, and the total idle time of cores, in seconds."""
        return time.perf_counter(), processor.waited(), thread_policy.idle()

    @property
    def idle_cores(self) -> float:
        """The average number of idle cores while events were recorded; 0 where that is not known."""
        return self._idle / self._taken if self._taken else 0.0

    def update(self) -> None:
        """Install or remove the observers for the current state: without recording an operator call has no overhead."""
        on, wanted = self.active, self.settings
        self._tell_waiting(on)
        self._numbers.clear()  # kinds depend on the setting for calls of the API
        if self._measuring and not self.running:
            self._measuring = False
            self._tell_uses()
            storage.watch(False)
        self.events.sums = wanted.aggregate_stats
        if on:
            self._started = True
            self._used.clear()
            if not self._measuring:
                self._highest.clear()
            self._measuring = wanted.memory
            storage.watch(wanted.memory)
        operators = wanted.imperative or wanted.symbolic
        self._backward.all = wanted.imperative and wanted.symbolic
        self._backward.watch(on and operators)
        self._kernels.watch(on and operators)
        unseen = self.unseen if operators or wanted.memory else None
        dispatch.observer = (self._observer() if wanted.imperative else unseen) if on else None
        dispatch.graph_observer = (self._graph_observer() if wanted.symbolic else unseen) if on else None
        dispatch.call_observer = self.call if on and (wanted.api or operators) else None
        self._points.switch(on and operators, on and wanted.api)

    # -- observers ----------------------------------------------------------------------------------------------------------

    def add(self, phase: str, name: str, category: str, start: int, value: Any, aggregate: bool = True, node: str = "", place: str = "",
            thread: int | None = None) -> None:
        """Record one event; times in ns of `time.perf_counter_ns`."""
        self.events.add(Kind(phase, name, category, place, node, counts=1 if aggregate else -1), start, value, thread)

    def _observer(self) -> Callable[..., None]:
        """Return the observer of operators (see ``ndarray.dispatch.observer`` and `Call`). Its closure keeps the cost of most events at 1 us."""
        known, rows, threads, local = self._numbers, self.events.rows, self.events.threads, self._backward.local
        cuda, memory, used = torch.cuda.is_available(), self.settings.memory, self._used
        counted = storage.counter() if memory and not cuda else None

        def observe(name: Any, start: int, end: int, inputs: Sequence[Any], result: Any) -> None:
            if cuda:
                end = _waited(result, end)
            numbers = known.get(name)
            if numbers is None or mode.custom_operator is not None or mode.node:
                self._operator(name, start, end, inputs, result)
            else:
                thread = get_ident()
                if thread not in threads:
                    self.events.name_thread(thread)
                rows.extend(pack(numbers[0], start, end - start, thread))
                if local.noted != next_number():
                    self._backward.note(numbers[1], inputs, result)
            if memory and (counted is None or counted() != used.get(HOST)):
                self.sample(name, start, end, inputs, result)

        return observe

    def _operator(self, name: Any, start: int, end: int, inputs: Sequence[Any], result: Any) -> None:
        """Record an operator call outside of the fast path: a new name, a part of a custom operator, a graph's node, or a copy."""
        plain = name if isinstance(name, str) else name.name
        custom = mode.custom_operator
        if custom is not None and plain != custom_function.name:
            self.in_custom(custom, plain, start, end)
            return
        if plain in _COPIES:
            plain = name = copy_name(inputs[0], result)
        elif mode.node:
            name = dispatch.Call(plain, mode.node)
        numbers = self._numbers.get(name) or self._kinds(name)
        self.events.append(numbers[0], start, end - start)
        self._backward.note(numbers[1], inputs, result)

    def _graph_observer(self) -> Callable[..., None]:
        """Return the observer of graphs and their operators; `inside` has the parts with known durations but unknown starts."""
        observe = self._observer()

        def observe_graph(call: Call, start: int, end: int, inputs: Sequence[Any], result: Any, inside: Sequence[tuple[Call, int]] = ()) -> None:
            if not call.graph:
                observe(call, start, end, inputs, result)
                return
            number = self.events.number(Kind("X", call.name, GRAPH, node=call.node, note=call.note))
            self.events.append(number, start, end - start)
            for part, nanoseconds in inside:
                numbers = self._numbers.get(part) or self._kinds(part)
                self.events.append(numbers[0], start, nanoseconds)
                start += nanoseconds
            if self.settings.memory:
                self.sample(call.name, start, end, inputs, result)

        return observe_graph

    def _kinds(self, call: Any) -> tuple[int, int]:
        name, node, note = (call, "", "") if isinstance(call, str) else (call.name, call.node, call.note)
        custom = name == custom_function.name  # its parts count, under its own name
        forward = Kind("X", _SHARING.get(name, name), API if name in _SHARING else OPERATOR, node=node, note=note, counts=-1 if custom else 1,
                       call="MXImperativeInvokeEx" if self.settings.api and isinstance(call, str) and name not in _SHARING else "")
        backward = Kind("X", f"_backward_{name}", CUSTOM if custom else OPERATOR, node=node)
        numbers = self._numbers[call] = self.events.number(forward), self.events.number(backward)
        return numbers

    def in_custom(self, custom: str, name: str, start: int, end: int) -> None:
        """Record an operator that a custom one has called, or the custom one's Python code, which counts without these operators."""
        inside = self._inside.__dict__
        python = name == "pure_python"
        name, duration = f"{custom}::{name}", end - start
        self.events.append(self.events.number(Kind("X", name, CUSTOM, counts=-1 if python else 1)), start, duration)
        if python:
            self.events.count(CUSTOM, name, max(duration - inside.pop(custom, 0), 0))
        else:
            inside[custom] = inside.get(custom, 0) + duration

    def call(self, name: str, start: int, end: int) -> None:
        """Record a call that spans several operators."""
        if self.settings.api:
            number = self._calls.get(name)
            if number is None:
                number = self._calls[name] = self.events.number(Kind("X", name, API))
            self.events.append(number, start, end - start)
        self._backward.relieve()

    def unseen(self, name: Any, start: int, end: int, inputs: Sequence[Any], result: Any, inside: Any = ()) -> None:
        """Observe an operator that is not recorded itself."""
        if self._backward.watching:
            self._backward.pass_over()
        if self.settings.memory:
            self.sample(name, start, end, inputs, result)

    def sample(self, name: Any, start: int, end: int, inputs: Sequence[Any], result: Any) -> None:
        """Record the memory in use after an operator if it has changed."""
        first = _first(result)
        device = first.device if isinstance(first, torch.Tensor) else torch.device("cpu")
        place, used = storage.used(device)
        if self._used.get(place) == used:
            return
        self._used[place] = used
        self._highest[place] = max(used, self._highest.get(place, 0))
        self.events.add(Kind("C", f"Memory: {place}", MEMORY), time.perf_counter_ns(), used / 1000)

    def _tell_uses(self) -> None:
        """Record the memory by use, its peak, and the workspace of operators. This runs once, since it inspects all objects."""
        now = time.perf_counter_ns()
        for place, row in storage.uses().items():
            highest = self._highest.get(place, 0)
            if row.get("peak", 0) > highest > 0:
                row["workspace"] = row["peak"] - highest
            for use, used in row.items():
                self.events.add(Kind("C", f"Memory: {place} ({use})", MEMORY), now, used / 1000)

    # -- output ------------------------------------------------------------------------------------------------------------

    def collect(self) -> None:
        """Add the pending events of backward passes and GPUs."""
        self._backward.collect()
        self._kernels.collect()

    def write_trace(self) -> None:
        """Write the events since the last call: first to a new file, atomically, later to the end of that file."""
        with self._writing:
            self.collect()
            writer = self._writer
            if writer is None or writer.path != self.settings.filename:
                writer = Writer(self.settings.filename, Encoder(self.origin, self.events.threads, self.waited_ms, self.idle_cores))
            left = len(self.events)  # events that arrive meanwhile are written by the next call
            while True:
                rows = self.events.take(min(left, _AT_ONCE))
                try:
                    writer.append(self.events.decoded(rows))
                except BaseException:
                    self.events.put_back(rows)
                    raise
                left -= _AT_ONCE
                if left <= 0:
                    break
            self._writer, self._started = writer, self.active

    @property
    def written(self) -> bool:
        """True if there is a file with earlier events of this configuration."""
        return self._writer is not None and self._writer.path == self.settings.filename and os.path.exists(self._writer.path)

    @property
    def unwritten(self) -> bool:
        """True if events were recorded that are in no file."""
        return self._started and (self._writer is None or len(self.events) > 0)

    def start_over(self) -> None:
        """Make the next `write_trace` begin a new file."""
        self._writer = None


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, (tuple, list)) and result else result


def _waited(result: Any, end: int) -> int:
    """Return the time when a result was complete; for a GPU, wait for its kernels, since `end` is only the end of their launch."""
    first = _first(result)
    if isinstance(first, torch.Tensor) and first.is_cuda:
        torch.cuda.synchronize(first.device)
        return time.perf_counter_ns()
    return end


def copy_name(source: torch.Tensor, target: Any) -> str:
    """Return MXNet's name of a copy between the devices of two tensors, such as ``CopyCPU2GPU``."""
    kinds = ["GPU" if isinstance(t, torch.Tensor) and t.is_cuda else "CPU" for t in (source, _first(target))]
    return f"Copy{kinds[0]}2{kinds[1]}"


recorder = Recorder()  # the one that programs start and stop

if hasattr(os, "register_at_fork"):
    # A forked child doesn't profile: its file would be its parent's. (A function in Python could lose a Ctrl-C here.)
    for _of, _name, _value in ((dispatch.__dict__, "observer", None), (dispatch.__dict__, "graph_observer", None),
                               (dispatch.__dict__, "call_observer", None), (dispatch.__dict__, "enclose", None),
                               (recorder.__dict__, "running", False),
                               (recorder.__dict__, "_started", False)):
        os.register_at_fork(after_in_child=functools.partial(operator.setitem, _of, _name, _value))
