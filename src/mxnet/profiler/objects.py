"""The profile objects that programs create: domains, tasks, frames, events, counters and markers."""
import threading
import time
from typing import Any

from ..base import MXNetError
from ..suggestions import shortened
from .ranges import Tool
from .recorder import recorder


class Domain:
    """A named group for tasks, frames, counters and markers; a row of its own in the trace.

    Example
    -------
    >>> import mxnet as mx
    >>> domain = mx.profiler.Domain('loading')
    >>> task = domain.new_task('read')
    >>> task.start(); task.stop()
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> "Task":
        """Return a new `Task` in this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> "Frame":
        """Return a new `Frame` in this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: float | None = None) -> "Counter":
        """Return a new `Counter` in this domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> "Marker":
        """Return a new `Marker` in this domain."""
        return Marker(self, name)


class _Span:
    """An interval between `start` and `stop`."""

    nests = False  # True if the spans of a thread are always properly nested

    def __init__(self, domain: "Domain | str", name: str) -> None:
        self.name, self.domain = name, domain
        self._start: int | None = None
        self._told: list[tuple[Tool, Any]] = []  # tools whose range has started, and its number

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """Start the interval."""
        self._end_ranges()
        for tool in recorder.listening:
            if tool.start is not None:
                self._told.append((tool, tool.start(self.name)))
            elif self.nests:
                tool.push(self.name)
                self._told.append((tool, None))
        self._start = time.perf_counter_ns()

    def stop(self) -> None:
        """End the interval and record it. An interval that was not started is not recorded."""
        if self._start is not None and recorder.active:
            recorder.add("X", self.name, str(self.domain), self._start, time.perf_counter_ns() - self._start)
        self._start = None
        self._end_ranges()

    def _end_ranges(self) -> None:
        while self._told:
            tool, number = self._told.pop()
            if tool.end is not None:
                tool.end(number)
            else:
                tool.pop()


class Task(_Span):
    """An interval of work; tasks of several threads may overlap.

    Example
    -------
    >>> task = mx.profiler.Task(mx.profiler.Domain('training'), 'epoch')
    >>> task.start()
    >>> _ = mx.nd.ones(2).asnumpy()
    >>> task.stop()
    """


class Frame(_Span):
    """One pass of repeated work.

    Example
    -------
    >>> frame = mx.profiler.Frame(mx.profiler.Domain('video'), 'frame')
    >>> frame.start()
    >>> _ = mx.nd.ones(2).asnumpy()
    >>> frame.stop()
    """


class Event(_Span):
    """An interval of one thread's time, without a domain.

    Example
    -------
    >>> event = mx.profiler.Event('load')
    >>> event.start()
    >>> _ = mx.nd.ones(2).asnumpy()
    >>> event.stop()
    """

    nests = True

    def __init__(self, name: str) -> None:
        super().__init__("event", name)


class Counter:
    """A number over time.

    Example
    -------
    >>> import mxnet as mx
    >>> counter = mx.profiler.Counter(mx.profiler.Domain('queue'), 'length', 0)
    >>> counter += 2
    >>> counter.decrement(1)
    """

    def __init__(self, domain: Domain | str, name: str, value: float | None = None) -> None:
        self.name, self.domain = name, domain
        self._value: float = 0
        self._lock = threading.Lock()
        if value is not None:
            self.set_value(value)

    def __str__(self) -> str:
        return self.name

    def _change(self, delta: float = 0, value: float | None = None) -> "Counter":
        with self._lock:
            self._value = self._value + delta if value is None else value
            now = self._value
        if recorder.active:
            recorder.add("C", self.name, str(self.domain), time.perf_counter_ns(), now)
        return self

    def set_value(self, value: float) -> None:
        """Set the number."""
        self._change(value=value)

    def increment(self, delta: float = 1) -> None:
        """Add to the number."""
        self._change(delta)

    def decrement(self, delta: float = 1) -> None:
        """Subtract from the number."""
        self._change(-delta)

    def __iadd__(self, delta: float) -> "Counter":
        return self._change(delta)

    def __isub__(self, delta: float) -> "Counter":
        return self._change(-delta)


class Marker:
    """An instant event.

    Example
    -------
    >>> mx.profiler.Marker(mx.profiler.Domain('training'), 'checkpoint').mark('process')
    """

    _SCOPES = {"global": "g", "process": "p", "thread": "t", "task": "t", "marker": "t"}

    def __init__(self, domain: Domain | str, name: str) -> None:
        self.name, self.domain = name, domain

    def mark(self, scope: str = "process") -> None:
        """Record the current time with the scope ``'global'``, ``'process'``, ``'thread'``, ``'task'`` or ``'marker'``."""
        if scope not in self._SCOPES:
            raise MXNetError(f"Marker.mark: scope must be one of {', '.join(self._SCOPES)}, received {shortened(scope)}")
        for tool in recorder.listening:
            tool.mark(self.name)
        if recorder.active:
            recorder.add("i", self.name, f"{self.domain},instant_marker", time.perf_counter_ns(), self._SCOPES[scope], aggregate=False)
