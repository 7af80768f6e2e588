"""The analysis of a trace: time by operator and by layer, waiting times, memory, and advice."""
from __future__ import annotations

import collections
import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..ops.registry import OPERATORS
from .events import API, CUSTOM, DATA, GRAPH, LAYER, MEMORY, OPERATOR
from .trace import is_finite

_WAITING, _WORKING = "waiting for data", "making a batch"
_MOST = 200_000  # intervals that a page shows
_PATIENCE = 1.0  # seconds until a terminal shows the progress
_RESOLUTION = 0.5  # microseconds: neighbouring float64 numbers of the time since 1970 differ by a quarter of one
_MUCH = 0.1  # the share of the time that threads must have waited for a processor before advice mentions it
_NEARLY = 0.35  # a core with this load still counts as idle
_COMMUNICATION = ("Copy", "KVStore", "ElementwiseSum", "MXKVStore")


class Interval(NamedTuple):
    """An event with a duration; times in microseconds from the first one on."""

    name: str
    category: str
    start: float
    duration: float
    thread: tuple[Any, Any]  # process, where it is not this one, and thread
    node: str
    depth: int
    own: float  # the duration without that of what lies inside
    layer: str


class Row(NamedTuple):
    """A line of a table: milliseconds."""

    name: str
    calls: int
    total: float
    own: float
    longest: float


class Advice(NamedTuple):
    """Advice on performance: its text, the measured number behind it, and the share of the time that it concerns."""

    text: str
    number: str
    share: float


class Analysis:
    """Computes tables, shares of the time and advice from a trace.

    Parameters
    ----------
    events : list of dict
        The result of `trace.read`. MXNet's traces, whose intervals are pairs of B and E, are also accepted.
    """

    def __init__(self, events: Sequence[dict[str, Any]]) -> None:
        self.processes = {e.get("pid"): _named(e) for e in events if e.get("ph") == "M" and e.get("name") == "process_name"}
        machine = next((e.get("args") or {} for e in events if e.get("ph") == "M" and e.get("name") == "machine"), {})
        self.machine: dict[str, Any] = {key: value for key, value in machine.items() if isinstance(value, str) or is_finite(value)}
        names = {(e.get("pid"), e.get("tid")): _named(e) for e in events if e.get("ph") == "M" and e.get("name") == "thread_name"}
        raw = _intervals(events)
        self.origin = min((r[2] for r in raw), default=0.0)
        self.intervals = self._nested(raw)
        self.threads = {i.thread: "" for i in self.intervals}
        for (pid, tid), name in names.items():
            thread = self._thread(pid, tid)
            if thread in self.threads:
                self.threads[thread] = name if not thread[0] else f"{thread[0]}, {name}"
        self.memory = self._memory(events)
        self.waited, self.idle = self._reported(events, "waited_ms"), self._reported(events, "idle_cores")

    def _thread(self, pid: Any, tid: Any) -> tuple[Any, Any]:
        """Return the key of a thread: traces of this package use a pid per category, except for the named worker processes."""
        name = self.processes.get(pid, "")
        return (name if name.startswith("DataLoader worker") else "", tid)

    def _nested(self, raw: Iterable[tuple[str, str, float, float, Any, Any, str]]) -> list[Interval]:
        from tqdm import tqdm
        intervals: list[Interval] = []
        open_: dict[tuple[Any, Any], list[list[Any]]] = collections.defaultdict(list)  # by thread: [interval's place, end, time inside]

        def close(stack: list[list[Any]]) -> None:
            place, end, inside = stack.pop()
            intervals[place] = intervals[place]._replace(own=max(intervals[place].duration - inside, 0.0))
            start = end - intervals[place].duration
            for outer in reversed(stack):  # time behind the end of one interval belongs to the next outer one
                outer[2] += max(min(end, outer[1]) - start, 0.0)
                start = max(start, outer[1])
                if start >= end:
                    break

        ordered = sorted(raw, key=lambda r: (r[2], -r[3]))
        for name, category, start, duration, pid, tid, node in tqdm(ordered, "profile", unit=" events", delay=_PATIENCE, leave=False, disable=None):
            thread, end = self._thread(pid, tid), start + duration
            stack = open_[thread]
            while stack and (stack[-1][1] <= start or stack[-1][1] < min(start + _RESOLUTION, end)):
                close(stack)
            layer = next((intervals[place].name for place, *_ in reversed(stack) if intervals[place].category == LAYER), "")
            stack.append([len(intervals), end, 0.0])
            intervals.append(Interval(name, category, start - self.origin, duration, thread, node, len(stack) - 1, duration, layer))
        for stack in open_.values():
            while stack:
                close(stack)
        return intervals

    def _memory(self, events: Iterable[dict[str, Any]]) -> dict[str, list[tuple[float, float]]]:
        series: dict[str, list[tuple[float, float]]] = {}
        for e in events:
            if e.get("ph") == "C" and e.get("cat") == MEMORY:
                for name, value in (e.get("args") or {}).items():
                    if isinstance(value, (int, float)) and is_finite(value):
                        series.setdefault(str(name), []).append((float(e.get("ts", 0)) - self.origin, float(value)))
        return {name: sorted(points) for name, points in series.items()}

    @staticmethod
    def _reported(events: Iterable[dict[str, Any]], name: str) -> float:
        """Return a number from the trace's ``machine`` metadata event; 0 if it has none of that name."""
        values = [(e.get("args") or {}).get(name) for e in events if e.get("ph") == "M" and e.get("name") == "machine"]
        return max((float(value) for value in values if isinstance(value, (int, float)) and is_finite(value)), default=0.0)

    # -- tables --------------------------------------------------------------------------------------------------------------

    def operators(self) -> list[Row]:
        """Return the rows of the table by operator, sorted by exclusive time, largest first."""
        return _rows((i.name, i) for i in self.intervals if i.category in (OPERATOR, CUSTOM))

    def layers(self) -> list[Row]:
        """Return the rows of the table by layer: the node of a graph, or else the innermost block around an operator."""
        return _rows((i.node or i.layer, i) for i in self.intervals if i.category in (OPERATOR, CUSTOM) and (i.node or i.layer))

    def others(self) -> list[Row]:
        """Return the rows of the table by name for calls of the API, graphs, data, and the program's own ranges."""
        return _rows((f"{i.category}: {i.name}", i) for i in self.intervals if i.category not in (OPERATOR, CUSTOM, LAYER))

    @functools.cached_property
    def main(self) -> tuple[Any, Any] | None:
        """The thread that runs most operators."""
        counts = collections.Counter(i.thread for i in self.intervals if i.category == OPERATOR)
        return counts.most_common(1)[0][0] if counts else next((i.thread for i in self.intervals), None)

    @functools.cached_property
    def wall(self) -> float:
        """The time from the start of the main thread's first event to the end of its last, in ms."""
        own = [i for i in self.intervals if i.thread == self.main]
        return (max(i.start + i.duration for i in own) - min(i.start for i in own)) / 1000 if own else 0.0

    def shares(self) -> dict[str, float]:
        """Return the main thread's time by kind of work, in ms."""
        seconds = dict.fromkeys(("operators", "communication", "data", "waiting for data", "waiting for results", "Python and the rest"), 0.0)
        for i in self.intervals:
            if i.thread != self.main:
                continue
            if i.name == _WAITING:
                seconds["waiting for data"] += i.own / 1000
            elif i.category == DATA:
                seconds["data"] += i.own / 1000
            elif i.name == "WaitForVar":
                seconds["waiting for results"] += i.own / 1000
            elif i.name.startswith(_COMMUNICATION):
                seconds["communication"] += i.own / 1000
            elif i.category in (OPERATOR, CUSTOM, GRAPH):
                seconds["operators"] += i.own / 1000
        seconds["Python and the rest"] = max(self.wall - sum(seconds.values()), 0.0)
        return seconds

    # -- advice --------------------------------------------------------------------------------------------------------------

    def advice(self) -> list[Advice]:
        """Return at most five pieces of advice, sorted by the share of the time that they concern, largest first."""
        wall, shares = self.wall, self.shares()
        if not wall:
            return []
        part = {name: value / wall for name, value in shares.items()}
        lines = []
        own = [i for i in self.intervals if i.thread == self.main]
        operators = [i for i in own if i.category == OPERATOR and not i.name.startswith("WaitForVar")]
        loose = [i for i in operators if not i.node and not i.name.startswith(("_backward_", *_COMMUNICATION)) and "_update" not in i.name]
        if part["waiting for data"] > 0.1:
            lines.append(Advice("The program waits for data. Give the DataLoader more workers (num_workers), or the iterator more threads "
                                "(preprocess_threads); keep images smaller, or decoded.", f"{part['waiting for data']:.0%} of the time",
                                part["waiting for data"]))
        if part["data"] > 0.1:
            lines.append(Advice("Batches are made between the steps. Let workers make them meanwhile: DataLoader(..., num_workers=...), or a "
                                "PrefetchingIter.", f"{part['data']:.0%} of the time", part["data"]))
        alone = sum(i.own for i in loose) / 1000 / wall
        if len(loose) > max(len(operators) / 4, 20) and (part["Python and the rest"] > 0.25 or alone > 0.3):
            lines.append(Advice("Operators are called one by one. Hybridize the network (net.hybridize()): then Python takes no time between them, "
                                "and neighbours are computed at once.", f"{len(loose)} calls, {part['Python and the rest']:.0%} of the time "
                                "between them", max(part["Python and the rest"], alone / 3)))
        if part["communication"] > 0.15 and any("GPU" in i.name for i in own):
            lines.append(Advice("Gradients and batches are copied and added up between devices. Use fewer devices of one host, a larger batch on "
                                "each, or another kvstore ('device' where gradients stay on GPUs).", f"{part['communication']:.0%} of the time",
                                part["communication"]))
        sums = sum(i.name == "ElementwiseSum" for i in own)
        if sums and not any("GPU" in i.name for i in own):
            lines.append(Advice("The gradients of several contexts of one processor are added up. They share its cores and its memory: one context "
                                "with the whole batch does the same work once.", f"{sums} sums, {part['communication']:.0%} of the time for them "
                                "and for copies", max(part["communication"], 0.2)))
        mean = sum(i.own for i in operators) / len(operators) if operators else 0.0
        if operators and mean < 25 and len(operators) > 200:
            lines.append(Advice("Operators are so short that calling them counts. Use larger batches, and hybridize.",
                                f"{mean:.0f} µs on average, {len(operators)} of them", part["operators"] / 2))
        lines += self._about_threads(part["operators"])
        heavy = sum(i.own for i in own if i.category == OPERATOR and _heavy(i.name)) / 1000 / wall
        served = any(i.category == GRAPH and i.name == "openvino" for i in own)
        if heavy > 0.4 and served and self.machine.get("bfloat16"):
            lines.append(Advice("Convolutions and products of matrices take most of the time, and this processor multiplies bfloat16 faster: "
                                "optimize_for(x, backend='openvino', precision='bfloat16'), or INT8 with contrib.quantization.",
                                f"{heavy:.0%} of the time", heavy / 2))
        elif heavy > 0.4 and self.machine.get("bfloat16") and any(i.name.startswith("_backward_") for i in own):
            lines.append(Advice("Convolutions and products of matrices take most of the time, and this processor multiplies bfloat16 faster: "
                                "train with contrib.amp, amp.init(target_dtype='bfloat16').", f"{heavy:.0%} of the time", heavy / 2))
        return sorted(lines, key=lambda a: -a.share)[:5]

    def _about_threads(self, share: float) -> list[Advice]:
        """Return advice on the number of threads for operators that take this share of the time; none without measured waiting or idle cores."""
        waited = self.waited / self.wall
        threads, cores = (value if isinstance(value, (int, float)) else 0 for value in map(self.machine.get, ("threads", "cores")))
        if waited > _MUCH and threads > max(int(cores), 1) > 0 < cores:
            return [Advice(f"Set OMP_NUM_THREADS={max(int(cores), 1)}: more threads than cores take turns.",
                           f"{threads} threads, {cores:g} cores, {self.waited:.0f} ms of waiting in {self.wall:.0f} ms", max(waited, share / 2))]
        if waited > _MUCH:
            fixed = str(self.machine.get("policy", "")).startswith(("OMP_NUM_THREADS", "torch.set_num_threads"))
            remedy = "Set no number of threads: it then follows what others leave" if fixed else "Give this one fewer threads (OMP_NUM_THREADS)"
            return [Advice(f"Threads waited for processors that other programs have. {remedy}; or let those that wait sleep "
                           "(OMP_WAIT_POLICY=passive).", f"{self.waited:.0f} ms of waiting in {self.wall:.0f} ms", waited)]
        wanted = min(int(threads + self.idle + _NEARLY), int(cores))
        if wanted > threads > 0:
            measured = f"{threads} threads, {self.idle:.1f} of {cores:g} cores idle"
            return [Advice(f"Set OMP_NUM_THREADS={wanted}: cores are idle.", measured, share / 2)]
        return []

    # -- for the page --------------------------------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        """Return the data of the HTML page as plain lists and dicts. At most `_MOST` intervals are included, the longest ones."""
        shown = self.intervals
        if len(shown) > _MOST:  # the longest, in order
            least = sorted((i.duration for i in shown), reverse=True)[_MOST - 1]
            shown = [i for i in shown if i.duration >= least][:_MOST]
        names = list(dict.fromkeys((i.name, i.category, i.node) for i in shown))
        number, threads = {n: k for k, n in enumerate(names)}, {t: k for k, t in enumerate(self.threads)}
        return {"wall": self.wall, "shares": self.shares(), "advice": [a._asdict() for a in self.advice()], "machine": self.machine,
                "operators": [r._asdict() for r in self.operators()], "layers": [r._asdict() for r in self.layers()],
                "others": [r._asdict() for r in self.others()], "names": names, "threads": [self.threads[t] or str(t[1]) for t in threads],
                "intervals": [[number[i.name, i.category, i.node], round(i.start, 3), round(i.duration, 3), threads[i.thread], i.depth]
                              for i in shown],
                "left_out": len(self.intervals) - len(shown),
                "memory": {name: [[round(t, 1) for t, _ in points], [v for _, v in points]] for name, points in self.memory.items()}}


def _named(event: dict[str, Any]) -> str:
    return str((event.get("args") or {}).get("name"))


@functools.cache
def _heavy(name: str) -> bool:
    """Return True if an operator named by the event is on the low-precision (16-bit) list of mixed precision."""
    kinds = [OPERATORS[part].amp for part in name.removeprefix("_backward_").split("+") if part in OPERATORS]
    return any("low" in kind if isinstance(kind, tuple) else kind == "low" for kind in kinds)


def _intervals(events: Iterable[dict[str, Any]]) -> list[tuple[str, str, float, float, Any, Any, str]]:
    """Return (name, category, start, duration, process, thread, node) of all X events, and of all pairs of B and E."""
    intervals: list[tuple[str, str, float, float, Any, Any, str]] = []
    begun: dict[Any, list[float]] = {}
    for e in events:
        phase, name, pid, tid = e.get("ph"), str(e.get("name")), e.get("pid"), e.get("tid")
        try:
            start = float(e.get("ts", 0))
            duration = float(e.get("dur", 0))
        except (TypeError, ValueError):
            continue
        if phase == "B":
            begun.setdefault((pid, tid, name), []).append(start)
        elif phase == "E" and begun.get((pid, tid, name)):
            first = begun[pid, tid, name].pop()
            intervals.append((name, str(e.get("cat")), first, start - first, pid, tid, ""))
        elif phase == "X":
            details = e.get("args")
            intervals.append((name, str(e.get("cat")), start, duration, pid, tid, str(details.get("node", "")) if isinstance(details, dict) else ""))
    return intervals


def _rows(named: Iterable[tuple[str, Interval]]) -> list[Row]:
    sums: dict[str, list[float]] = {}
    for name, i in named:
        row = sums.setdefault(name, [0, 0.0, 0.0, 0.0])
        row[0] += 1
        row[1] += i.duration / 1000
        row[2] += i.own / 1000
        row[3] = max(row[3], i.duration / 1000)
    return sorted((Row(name, int(c), total, own, longest) for name, (c, total, own, longest) in sums.items()), key=lambda r: -r.own)


__all__ = ["API", "Advice", "Analysis", "Interval", "Row"]
