"""Where profiled events are kept: the rows of the trace in 32 bytes each, and running sums for the table.

A million events take 32 MB, and what tells one kind of event from another is kept once. Sums are kept only if they are asked for.
"""
import array
import struct
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

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

    phase: str  # of Chrome's trace format: X, C or i
    name: str
    category: str
    place: str = ""  # the process of the trace; by default the category, or the CPU for operators
    node: str = ""  # of the graph, or several with "+" between them
    note: str = ""


class Event(NamedTuple):
    """One row of the trace; times in ns of `time.perf_counter_ns`. `value` is the duration of an X, the number of a C, the scope of an i."""

    kind: Kind
    start: int
    value: Any
    thread: int


class Sum:
    """Count, total, least and most of one name in one category."""

    __slots__ = ("count", "total", "least", "most", "counts")

    def __init__(self, value: float, count: int, counts: bool) -> None:
        self.count, self.total, self.least, self.most, self.counts = count, value, value, value, counts


_DOUBLE, _LONG = struct.Struct("d"), struct.Struct("q")
_SCOPES = "gpt"  # of moments


class Events:
    """Events, in the order in which they ended. Threads may add to it at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kinds: list[Kind] = []
        self._numbers: dict[Kind, int] = {}
        self._rows = array.array("q")  # of each event: the number of its kind, start, value, thread
        self._sums: dict[tuple[str, str], Sum] = {}
        self.threads: dict[int, str] = {}  # their names
        self.sums = False  # whether to keep them

    def __len__(self) -> int:
        return len(self._rows) // 4

    def number(self, kind: Kind) -> int:
        """The number of a kind, for `append`."""
        found = self._numbers.get(kind)
        if found is None:
            with self._lock:
                found = self._numbers.setdefault(kind, len(self._kinds))
                if found == len(self._kinds):
                    self._kinds.append(kind)
        return found

    def append(self, number: int, start: int, value: int, summed: int | None = None, count: int = 1, thread: int | None = None) -> None:
        """Add an interval.

        Parameters
        ----------
        number : int
            Of its kind.
        start, value : int
            Its start and duration, in ns.
        summed : int, optional
            What counts in the table, by default `value`; -1 for nothing.
        count : int
            0 if it goes on with an event that was added before.
        thread : int, optional
            By default this one.
        """
        if thread is None:
            thread = threading.get_ident()
            if thread not in self.threads:
                self.threads[thread] = threading.current_thread().name
        with self._lock:
            self._rows.extend((number, start, value, thread))
            if self.sums and summed != -1:
                kind = self._kinds[number]
                self._sum(kind.category, kind.name, value if summed is None else summed, count, False)

    def add(self, kind: Kind, start: int, value: Any, table: bool = True, thread: int | None = None) -> None:
        """Add an event of any kind; `table` tells whether it counts there."""
        if kind.phase == "X":
            self.append(self.number(kind), start, value, None if table else -1, thread=thread)
            return
        number, ident = self.number(kind), threading.get_ident() if thread is None else thread
        self.threads.setdefault(ident, threading.current_thread().name)
        packed = _LONG.unpack(_DOUBLE.pack(value))[0] if kind.phase == "C" else _SCOPES.index(value)
        with self._lock:
            self._rows.extend((number, start, packed, ident))
            if self.sums and table:
                self._sum(kind.category, kind.name, value, 1, kind.phase == "C")

    def _sum(self, category: str, name: str, value: float, count: int, counter: bool) -> None:
        row = self._sums.get((category, name))
        if row is None:
            self._sums[category, name] = Sum(value, count, counter)
            return
        row.count += count
        row.total = value if counter else row.total + value
        if count:
            row.least, row.most = min(row.least, value), max(row.most, value)

    def take(self) -> array.array:
        """The rows of all events, which are no longer kept here; for `decoded`."""
        with self._lock:
            rows, self._rows = self._rows, array.array("q")
        return rows

    def put_back(self, rows: array.array) -> None:
        """Keep rows again that were taken."""
        with self._lock:
            self._rows[:0] = rows

    def copy(self) -> array.array:
        """The rows of all events, which stay here, too."""
        with self._lock:
            return self._rows[:]

    def decoded(self, rows: array.array, first: int = 0, count: int | None = None) -> Iterator[Event]:
        """The events of rows, from event `first` on."""
        for i in range(4 * first, len(rows) if count is None else min(4 * (first + count), len(rows)), 4):
            kind = self._kinds[rows[i]]
            value: Any = rows[i + 2]
            if kind.phase == "C":
                value = _DOUBLE.unpack(_LONG.pack(value))[0]
            elif kind.phase == "i":
                value = _SCOPES[value]
            yield Event(kind, rows[i + 1], value, rows[i + 3])

    def totals(self) -> dict[tuple[str, str], tuple[int, float, float, float, bool]]:
        """By category and name: count, total, least, most, and whether it is a counter (whose total is its last number)."""
        with self._lock:
            return {k: (s.count, s.total, s.least, s.most, s.counts) for k, s in self._sums.items()}

    def forget_sums(self) -> None:
        """Start new sums; the events stay."""
        with self._lock:
            self._sums.clear()
