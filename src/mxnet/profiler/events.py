"""Where profiled events are kept: the rows of the trace in 32 bytes each, and sums for the table.

A million events take 32 MB, up to 36 MB with what is kept free to grow; what tells one kind of event from another is kept once. Sums are made
of rows when somebody asks, or when rows leave, and only if they are wanted: whoever adds an event packs four numbers and no more.
"""
import struct
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

MEMORY = "Device Storage"
CUSTOM = "Custom Operator"
OPERATOR = "operator"
API = "MXNET_C_API"
GRAPH = "graph"
DATA = "io"
LAYER = "layer"
HOST = "cpu/0"
BYTES = 32  # of an event in memory


class Kind(NamedTuple):
    """What events have in common that differ in their times only."""

    phase: str  # of Chrome's trace format: X, C or i; s and f, whose value is a number that both ends have
    name: str
    category: str
    place: str = ""  # the process of the trace; by default the category, or the CPU for operators
    node: str = ""  # of the graph, or several with "+" between them
    note: str = ""
    counts: int = 1  # in the table; 0 for what goes on with an event that has counted, -1 for what is in the trace only
    call: str = ""  # of the API, which an operator stands for in the trace, and which counts in the table beside it


class Event(NamedTuple):
    """One row of the trace; times in ns of `time.perf_counter_ns`. `value` is the duration of an X, the number of a C, the scope of an i."""

    kind: Kind
    start: int
    value: Any
    thread: int


class Sum:
    """Count, total, least and most of one name in one category."""

    __slots__ = ("count", "total", "least", "most", "counts")

    def __init__(self, counts: bool) -> None:
        self.count, self.total, self.least, self.most, self.counts = 0, 0.0, 0.0, 0.0, counts

    def add(self, count: int, total: float, least: float, most: float) -> None:
        """Add some numbers; `total` is the last one of a counter's."""
        self.total = total if self.counts else self.total + total
        if count:
            self.least, self.most = (min(self.least, least), max(self.most, most)) if self.count else (least, most)
            self.count += count


_DOUBLE, _LONG, _ROW = struct.Struct("d"), struct.Struct("q"), struct.Struct("4q")
_SCOPES = "gpt"  # of moments
_SUMMED_AT_ONCE = 50_000  # rows
pack = _ROW.pack


class Events:
    """Events, in the order in which they ended. Threads may add to it at once.

    Attributes
    ----------
    rows : bytearray
        Of each event the number of its kind, start, value and thread, as `pack` has them. It is the same object always, and only grows at
        its end: what adds to it in one call needs no lock.
    threads : dict of int to str
        The names of the threads that have added something.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._kinds: list[Kind] = []
        self._numbers: dict[Kind, int] = {}
        self.rows = bytearray()
        self._summed = 0  # how much of them is in the sums, or isn't to be
        self._sums: dict[tuple[str, str], Sum] = {}
        self._wanted = False
        self.threads: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.rows) // BYTES

    @property
    def sums(self) -> bool:
        """Whether what is added from now on counts in the table."""
        return self._wanted

    @sums.setter
    def sums(self, wanted: bool) -> None:
        with self._lock:
            self._sum_up(len(self.rows))
            self._wanted = wanted

    def number(self, kind: Kind) -> int:
        """The number of a kind, for `append`."""
        found = self._numbers.get(kind)
        if found is None:
            with self._lock:
                found = self._numbers.setdefault(kind, len(self._kinds))
                if found == len(self._kinds):
                    self._kinds.append(kind)
        return found

    def continued(self, number: int) -> int:
        """The number of a kind for what goes on with such an event."""
        return self.number(self._kinds[number]._replace(counts=0))

    def append(self, number: int, start: int, value: int, thread: int | None = None) -> None:
        """Add an event.

        Parameters
        ----------
        number : int
            Of its kind.
        start, value : int
            Its start and duration, in ns.
        thread : int, optional
            By default this one.
        """
        if thread is None:
            thread = threading.get_ident()
            if thread not in self.threads:
                self.name_thread(thread)
        self.rows.extend(pack(number, start, value, thread))

    def name_thread(self, thread: int) -> None:
        """Note the name of the thread that calls."""
        self.threads[thread] = threading.current_thread().name

    def add(self, kind: Kind, start: int, value: Any, thread: int | None = None) -> None:
        """Add an event of any kind: an interval, a number, or the scope of a moment."""
        if kind.phase == "C":
            value = _LONG.unpack(_DOUBLE.pack(value))[0]
        elif kind.phase == "i":
            value = _SCOPES.index(value)
        self.append(self.number(kind), start, value, thread)

    def count(self, category: str, name: str, value: int) -> None:
        """Count in the table what the trace has otherwise, or not at all."""
        if self._wanted:
            with self._lock:
                self._row(category, name, False).add(1, value, value, value)

    def _row(self, category: str, name: str, counter: bool) -> Sum:
        found = self._sums.get((category, name))
        if found is None:
            found = self._sums[category, name] = Sum(counter)
        return found

    def _sum_up(self, end: int) -> None:
        while self._wanted and self._summed < end:
            some = min(self._summed + _SUMMED_AT_ONCE * BYTES, end)
            rows = np.frombuffer(self.rows[self._summed:some], np.int64).reshape(-1, 4)
            self._summed = some
            order = np.argsort(rows[:, 0], kind="stable")
            numbers, values = rows[order, 0], rows[order, 2]
            starts = np.flatnonzero(np.diff(numbers, prepend=-1))
            lengths = np.diff(starts, append=len(numbers)).tolist()
            columns = (reduce(values, starts).tolist() for reduce in (np.add.reduceat, np.minimum.reduceat, np.maximum.reduceat))
            for first, length, total, least, most in zip(starts.tolist(), lengths, *columns):
                kind = self._kinds[numbers[first]]
                if kind.counts >= 0 and kind.phase != "i":
                    if kind.phase == "C":
                        doubles = values[first:first + length].view(np.float64)
                        total, least, most = float(doubles[-1]), float(doubles.min()), float(doubles.max())
                    self._row(kind.category, kind.name, kind.phase == "C").add(length * kind.counts, total, least, most)
                    if kind.call:
                        self._row(API, kind.call, False).add(length, total, least, most)
        self._summed = max(self._summed, end)

    def take(self, most: int | None = None) -> bytearray:
        """The rows of the first events, at most so many, which are no longer kept here; for `decoded`."""
        with self._lock:
            end = len(self.rows) if most is None else min(len(self.rows), most * BYTES)
            self._sum_up(end)
            taken = self.rows[:end]
            del self.rows[:end]
            self._summed -= end
        return taken

    def put_back(self, rows: bytearray) -> None:
        """Keep rows again that were taken."""
        with self._lock:
            self.rows[:0] = rows
            self._summed += len(rows)

    def copy(self) -> bytearray:
        """The rows of all events, which stay here, too."""
        return self.rows[:]

    def decoded(self, rows: bytearray) -> Iterator[Event]:
        """The events of rows."""
        for number, start, value, thread in _ROW.iter_unpack(rows):
            kind = self._kinds[number]
            if kind.phase == "C":
                value = _DOUBLE.unpack(_LONG.pack(value))[0]
            elif kind.phase == "i":
                value = _SCOPES[value]
            yield Event(kind, start, value, thread)

    def totals(self) -> dict[tuple[str, str], tuple[int, float, float, float, bool]]:
        """By category and name: count, total, least, most, and whether it is a counter (whose total is its last number)."""
        with self._lock:
            self._sum_up(len(self.rows))
            return {k: (s.count, s.total, s.least, s.most, s.counts) for k, s in self._sums.items()}

    def forget_sums(self) -> None:
        """Start new sums; the events stay."""
        with self._lock:
            self._sum_up(len(self.rows))
            self._sums.clear()
