"""Times of backward passes: each step of torch's autograd is attributed to the operator that recorded it.

Torch gives the autograd nodes of a thread sequence numbers. After each operator the next number is noted, so that every step of a backward pass
can be attributed to its operator, which may have several steps. ``kernels/runtime/autograd_hooks.cpp`` measures the times; where it can't be
compiled, hooks in Python do, at a higher cost.
"""
import array
import bisect
import ctypes
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from .. import kernels
from .events import OPERATOR, Events, Kind

_MOST = 1 << 20  # notes kept for a thread; backward steps of older operators have no name
_PIECE = 1 << 14  # steps taken at a time
_THREADS = 256  # the most threads that are distinguished; torch has one for each device beside the program's own
next_number = torch._C._autograd._get_sequence_nr
_ACCUMULATE = (1 << 64) - 1, -1  # the number of steps that add to a gradient


class _Notes:
    """The sequence numbers at which one thread's operators end, and the kinds of their backward events. Only this thread appends."""

    def __init__(self) -> None:
        self.ends, self.numbers = array.array("q"), array.array("q")
        self.lock = threading.Lock()

    def add(self, end: int, number: int) -> None:
        if len(self.ends) >= _MOST:
            with self.lock:
                del self.ends[:_MOST // 2], self.numbers[:_MOST // 2]
        self.numbers.append(number)
        self.ends.append(end)  # last, so that every entry seen by `find` has its number

    def find(self, sequence: int) -> tuple[int, int] | None:
        """Return (the end of the step's operator, the number of its kind) for a sequence number; None past the last note."""
        with self.lock:
            i = bisect.bisect_right(self.ends, sequence)
            return (self.ends[i], self.numbers[i]) if i < len(self.ends) else None


class _Local(threading.local):
    noted = 0  # the sequence number up to which all steps are noted or predate profiling
    notes: _Notes | None = None


class Backward:
    """Converts the steps of backward passes to events.

    Parameters
    ----------
    events : Events
        Receives them.
    """

    def __init__(self, events: Events) -> None:
        self.events = events
        self.library: Any = None
        self._asked = False
        self._notes: dict[int, _Notes] = {}  # by torch's number of the thread
        self.local = _Local()
        self._hooked: list[tuple[int, int, int, int]] = []  # of hooks: kind, thread, start, end
        self._lock = threading.Lock()
        self.watching = False
        self.all = True  # if False, steps of operators that were not recorded are left out

    def watch(self, on: bool) -> None:
        """Start or stop measuring."""
        if on and not self._asked:
            self._asked = True
            self.library = self.load_library()
        if on is not self.watching:
            self.watching = on
            if self.library is not None:
                self.library.watch(int(on))
            if on:  # steps that this thread recorded before belong to no operator
                self.pass_over()

    @staticmethod
    def load_library() -> Any:
        library = kernels.load("runtime/autograd_hooks")
        if library is not None:
            numbers = ctypes.POINTER(ctypes.c_int64)
            for entry, result, arguments in (
                    ("watch", None, [ctypes.c_int64]), ("thread", ctypes.c_int64, []), ("missed", ctypes.c_int64, []),
                    ("waiting", ctypes.c_int64, []), ("natives", ctypes.c_int64, [numbers, ctypes.c_int64]),
                    ("take", ctypes.c_int64, [numbers, ctypes.c_int64])):
                function = getattr(library, entry)
                function.restype, function.argtypes = result, arguments
        return library

    def natives(self) -> dict[int, int]:
        """Return a dict from the system's thread number to the events' thread number, for each thread that has run a step."""
        if self.library is None:
            return {}
        buffer = (ctypes.c_int64 * (2 * _THREADS))()
        count = self.library.natives(buffer, _THREADS)
        return dict(zip(buffer[0:2 * count:2], buffer[1:2 * count:2]))

    def note(self, number: int, inputs: Sequence[Any], result: Any) -> None:
        """Attribute the steps recorded since the last note to the kind of this number."""
        local, now = self.local, next_number()
        if now == local.noted:
            return
        local.noted = now
        if self.library is not None:
            if local.notes is None:
                local.notes = self._notes[self.library.thread()] = _Notes()
            local.notes.add(now, number)
            return
        first = result[0] if isinstance(result, (tuple, list)) and result else result
        if isinstance(first, torch.Tensor) and first.grad_fn is not None:
            self._hook(number, inputs, first.grad_fn)

    def pass_over(self) -> None:
        """Attribute the steps that this thread has recorded since the last note to no operator."""
        self.note(self.events.number(_UNKNOWN), (), None)

    def _hook(self, number: int, inputs: Iterable[Any], last: Any) -> None:
        """Register hooks that measure the steps between the inputs and the result."""
        rows, stack, seen = self._hooked, [last], {t.grad_fn for t in inputs if isinstance(t, torch.Tensor)}

        def watched(node: Any) -> None:
            started: list[int] = []
            node.register_prehook(lambda _: started.append(time.perf_counter_ns()))
            node.register_hook(lambda *_: rows.append((number, threading.get_ident(), started.pop(), time.perf_counter_ns())) if started else None)

        while stack:
            node = stack.pop()
            if node is None or node in seen or node.name().endswith("AccumulateGrad"):
                continue
            seen.add(node)
            watched(node)
            stack += [n for n, _ in node.next_functions]

    def relieve(self) -> None:
        """Collect the steps if many are waiting; otherwise postpone it to a time outside of measurements."""
        if self.library is not None and self.library.waiting() > _MOST // 4:
            self.collect()

    def collect(self) -> None:
        """Add events for the steps since the last time."""
        nameless = () if self.all else {self.events.number(kind) for kind in (_UNKNOWN, _ACCUMULATES)}
        with self._lock:
            for instance, number, thread, start, end in self.merged(self._taken() if self.library is not None else self._from_hooks()):
                if number not in nameless:
                    self.events.append(number if instance else self.events.continued(number), start, end - start, thread)

    def _from_hooks(self) -> list[tuple[Any, int, int, int, int]]:
        rows, self._hooked[:] = list(self._hooked), []
        return [((number, i), number, thread, start, end) for i, (number, thread, start, end) in enumerate(rows)]

    def _taken(self) -> list[tuple[Any, int, int, int, int]]:
        buffer = (ctypes.c_int64 * (5 * _PIECE))()
        steps: list[tuple[Any, int, int, int, int]] = []
        unknown = self.events.number(_UNKNOWN)
        while count := self.library.take(buffer, _PIECE):
            values = buffer[:5 * count]
            for i in range(0, len(values), 5):
                sequence, forward, thread, start, end = values[i:i + 5]
                if sequence in _ACCUMULATE:
                    steps.append((None, self.events.number(_ACCUMULATES), thread, start, end))
                    continue
                notes = self._notes.get(forward)
                noted = notes.find(sequence) if notes is not None else None
                if noted is None or noted[1] == unknown:
                    steps.append(((None, start), unknown, thread, start, end))
                else:
                    steps.append(((forward, noted[0]), noted[1], thread, start, end))
        missed = self.library.missed()
        if missed:
            self.events.add(Kind("i", f"{missed} steps of backward passes are missing here", OPERATOR), time.perf_counter_ns(), "p")
        return steps

    @staticmethod
    def merged(steps: Sequence[tuple[Any, int, int, int, int]]) -> list[tuple[bool, int, int, int, int]]:
        """Merge consecutive steps of one call to one event; a call counts once, also if its steps are not consecutive.

        The accumulation of a gradient belongs to the call that computed it, since MXNet's operators accumulate themselves.
        """
        rows: list[list[Any]] = []
        seen: set[Any] = set()
        last: dict[int, tuple[Any, list[Any]]] = {}  # by thread
        for instance, number, thread, start, end in sorted(steps, key=lambda s: s[3]):
            before = last.get(thread)
            if instance is None:
                instance, number = (before[0], before[1][1]) if before is not None else ((None, start), number)
            if before is not None and start < before[1][4]:  # nested in a step, such as the recomputation in a backward pass
                rows.append([instance not in seen, number, thread, start, end])
            elif before is not None and before[0] == instance:
                before[1][4] = end
            else:
                rows.append([instance not in seen, number, thread, start, end])
                last[thread] = instance, rows[-1]
            seen.add(instance)
        return [(row[0], row[1], row[2], row[3], row[4]) for row in rows]


_ACCUMULATES = Kind("X", "AccumulateGrad", OPERATOR)
_UNKNOWN = Kind("X", "_backward_unprofiled", OPERATOR, note="recorded while the profiler did not run")
