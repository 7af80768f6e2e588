"""The storage of profiled events: rows of 32 bytes each for the trace, and sums for the table.

A million events take 32 MB, up to 36 MB with the spare capacity; the attributes of each kind of event are stored once. Sums are computed from
rows on demand, or when rows are removed, and only if they are enabled: adding an event packs four numbers and no more.
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
BYTES = 32  # the size of an event in memory


class Kind(NamedTuple):
    """The attributes shared by events that differ only in thread, start and value."""

    phase: str  # of Chrome's trace format: X, C or i; s and f, whose value is a number that both ends have
    name: str
    category: str
    place: str = ""  # the process of the trace; by default the category, or the CPU for operators
    node: str = ""  # of the graph, or several with "+" between them
    note: str = ""
    counts: int = 1  # added to the table's count; 0 for the continuation of a counted event, -1 for events that are in the trace only
    call: str = ""  # the API call that the table counts beside this operator; the trace has the operator only


class Event(NamedTuple):
    """One row of the trace; times in ns of `time.perf_counter_ns`. `value` is the duration of an X, the number of a C, the scope of an i."""

    kind: Kind
    start: int
    value: Any
    thread: int


class Sum:
    """Count, total, minimum and maximum of one name in one category."""

    __slots__ = ("count", "total", "least", "most", "counts")

    def __init__(self, counts: bool) -> None:
        self.count, self.total, self.least, self.most, self.counts = 0, 0.0, 0.0, 0.0, counts

    def add(self, count: int, total: float, least: float, most: float) -> None:
        """Add the statistics of several numbers; for a counter, `total` is the last number."""
        self.total = total if self.counts else self.total + total
        if count:
            self.least, self.most = (min(self.least, least), max(self.most, most)) if self.count else (least, most)
            self.count += count


_DOUBLE, _LONG, _ROW = struct.Struct("d"), struct.Struct("q"), struct.Struct("4q")
_SCOPES = "gpt"  # of instant events: global, process, thread
_SUMMED_AT_ONCE = 50_000  # rows
pack = _ROW.pack


class Events:
    """Events, in the order in which they ended. Threads may append concurrently.

    Attributes
    ----------
    rows : bytearray
        For each event the number of its kind, start, value and thread, in the format of `pack`. It always stays the same object and only grows
        at its end, so that appending in one call needs no lock.
    threads : dict of int to str
        The names of the threads that have added events.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._kinds: list[Kind] = []
        self._numbers: dict[Kind, int] = {}
        self.rows = bytearray()
        self._summed = 0  # bytes of rows that are already in the sums, or excluded from them
        self._sums: dict[tuple[str, str], Sum] = {}
        self._wanted = False
        self.threads: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.rows) // BYTES

    @property
    def sums(self) -> bool:
        """True if events that are added from now on count in the table."""
        return self._wanted

    @sums.setter
    def sums(self, wanted: bool) -> None:
        with self._lock:
            self._sum_up(len(self.rows))
            self._wanted = wanted

    def number(self, kind: Kind) -> int:
        """Return the number of a kind, for `append`."""
        index = self._numbers.get(kind)
        if index is None:
            with self._lock:
                index = self._numbers.setdefault(kind, len(self._kinds))
                if index == len(self._kinds):
                    self._kinds.append(kind)
        return index

    def continued(self, number: int) -> int:
        """Return the number of the kind that continues an event without counting again."""
        return self.number(self._kinds[number]._replace(counts=0))

    def append(self, number: int, start: int, value: int, thread: int | None = None) -> None:
        """Add an event.

        Parameters
        ----------
        number : int
            The number of its kind.
        start, value : int
            The start and the duration, in ns.
        thread : int, optional
            The thread's number; by default the calling thread's.
        """
        if thread is None:
            thread = threading.get_ident()
            if thread not in self.threads:
                self.name_thread(thread)
        self.rows.extend(pack(number, start, value, thread))

    def name_thread(self, thread: int) -> None:
        """Store the name of the calling thread under `thread`."""
        self.threads[thread] = threading.current_thread().name

    def add(self, kind: Kind, start: int, value: Any, thread: int | None = None) -> None:
        """Add an event of any kind: an interval, a number, or an instant with its scope."""
        if kind.phase == "C":
            value = _LONG.unpack(_DOUBLE.pack(value))[0]
        elif kind.phase == "i":
            value = _SCOPES.index(value)
        self.append(self.number(kind), start, value, thread)

    def count(self, category: str, name: str, value: int) -> None:
        """Add a value to the table only; the trace is not changed."""
        if self._wanted:
            with self._lock:
                self._row(category, name, False).add(1, value, value, value)

    def _row(self, category: str, name: str, counter: bool) -> Sum:
        row = self._sums.get((category, name))
        if row is None:
            row = self._sums[category, name] = Sum(counter)
        return row

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
        """Remove the rows of the first events, at most `most` of them, and return them; for `decoded`."""
        with self._lock:
            end = len(self.rows) if most is None else min(len(self.rows), most * BYTES)
            self._sum_up(end)
            taken = self.rows[:end]
            del self.rows[:end]
            self._summed -= end
        return taken

    def put_back(self, rows: bytearray) -> None:
        """Insert rows that `take` returned at the front again."""
        with self._lock:
            self.rows[:0] = rows
            self._summed += len(rows)

    def copy(self) -> bytearray:
        """Return a copy of the rows of all events."""
        return self.rows[:]

    def decoded(self, rows: bytearray) -> Iterator[Event]:
        """Yield the events of rows."""
        for number, start, value, thread in _ROW.iter_unpack(rows):
            kind = self._kinds[number]
            if kind.phase == "C":
                value = _DOUBLE.unpack(_LONG.pack(value))[0]
            elif kind.phase == "i":
                value = _SCOPES[value]
            yield Event(kind, start, value, thread)

    def totals(self) -> dict[tuple[str, str], tuple[int, float, float, float, bool]]:
        """Return count, total, minimum, maximum and a counter flag by category and name; the total of a counter is its last number."""
        with self._lock:
            self._sum_up(len(self.rows))
            return {k: (s.count, s.total, s.least, s.most, s.counts) for k, s in self._sums.items()}

    def forget_sums(self) -> None:
        """Reset the sums; the events stay."""
        with self._lock:
            self._sum_up(len(self.rows))
            self._sums.clear()
