"""Where profiled events are kept: a list for the trace, running sums for the table."""
import collections
import json
import os
import threading
import time
from typing import Any

import torch

from .. import files
from ..base import MXNetError
from ..ndarray import dispatch
from ..operator import custom_function

# One row of the trace: (phase, name, category, start ns, duration ns or value, thread)
Event = collections.namedtuple("Event", "phase name category start value thread")
_SORT_KEYS = {"total": "Total", "avg": "Avg", "min": "Min", "max": "Max", "count": "Count"}
# Kind of number ("Time" or "Memory") -> category -> name -> column -> number.
Tables = dict[str, dict[str, dict[str, dict[str, Any]]]]
MEMORY = "Device Storage"
CUSTOM = "Custom Operator"


class Settings:
    """What is recorded, and where it goes; the keywords of `set_config`."""

    symbolic = imperative = memory = api = False
    filename = "profile.json"
    gpu_memory_prefix = "gpu_memory_profile"
    continuous_dump = False
    dump_period = 1.0
    aggregate_stats = False


class Recorder:
    """Collects events while it is running and not paused."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.running = self.paused = False
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._sums: dict[tuple[str, str], list[Any]] = {}  # (category, name) -> [count, total, least, most]
        self._origin = time.time_ns() - time.perf_counter_ns()

    @property
    def active(self) -> bool:
        """True while events are taken."""
        return self.running and not self.paused

    def update(self) -> None:
        """Hook into the operator calls, or out of them: a call pays nothing while nothing is recorded."""
        on, wanted = self.active, self.settings
        dispatch.observer = self.operator if on and wanted.imperative else None
        dispatch.graph_observer = self.operator if on and wanted.symbolic else None
        dispatch.call_observer = self.call if on and wanted.api else None

    def add(self, phase: str, name: str, category: str, start: int, value: Any, aggregate: bool = True) -> None:
        """Record one event; times in ns of `time.perf_counter_ns`."""
        event = Event(phase, name, category, start, value, threading.get_ident())
        with self._lock:
            self._events.append(event)
            if aggregate and self.settings.aggregate_stats:
                row = self._sums.get((category, name))
                if row is None:
                    self._sums[category, name] = [1, value, value, value]
                else:
                    row[0] += 1
                    row[1] = row[1] + value if phase == "X" else value
                    row[2], row[3] = min(row[2], value), max(row[3], value)

    def operator(self, name: str, start: int, end: int, inputs: Any, result: Any) -> None:
        """The observer of operator calls (see ``ndarray.dispatch.observer``)."""
        first = result[0] if isinstance(result, (tuple, list)) and result else result
        if isinstance(first, torch.Tensor):
            if first.is_cuda:
                torch.cuda.synchronize(first.device)  # the time of the kernel, not of its launch
                end = time.perf_counter_ns()
            if first.grad_fn is not None:
                self._time_backward(first.grad_fn, name)
        custom = dispatch.mode.custom_operator
        if custom is not None and name != custom_function.name:
            self.add("X", f"{custom}::{name}", CUSTOM, start, end - start)
        else:
            self.add("X", name, "operator", start, end - start)
        if self.settings.memory:
            self._sample_memory(first)

    def call(self, name: str, start: int, end: int) -> None:
        """The observer of calls that span several operators."""
        self.add("X", name, "API", start, end - start)

    def _time_backward(self, grad_fn: Any, name: str) -> None:
        started = []

        def before(_):
            started.append(time.perf_counter_ns())

        def after(_, __):
            if started and self.active:
                start = started.pop()
                self.add("X", f"_backward_{name}", "operator", start, time.perf_counter_ns() - start)

        grad_fn.register_prehook(before)
        grad_fn.register_hook(after)

    def _sample_memory(self, tensor: Any) -> None:
        now = time.perf_counter_ns()
        if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
            device = tensor.device.index or 0
            self.add("C", f"Memory: gpu/{device}", MEMORY, now, torch.cuda.memory_allocated(device) / 1000)
        else:
            used = _resident_kilobytes()
            if used is not None:
                self.add("C", "Memory: cpu/0", MEMORY, now, used)

    # -- output ------------------------------------------------------------------------------------------------------------

    def write_trace(self) -> None:
        """Write all events as a Chrome trace: whole or not at all."""
        with self._lock:
            events = list(self._events)
        processes = list(dict.fromkeys(["cpu/0", *(e.category for e in events if e.category != "operator")]))
        number = {name: i for i, name in enumerate(processes)}
        rows = [{"ph": "M", "args": {"name": name}, "pid": i, "name": "process_name"} for name, i in number.items()]
        for e in events:
            row = {"name": e.name, "cat": e.category, "ph": e.phase, "ts": (e.start + self._origin) / 1000,
                   "pid": number.get(e.category, 0), "tid": e.thread}
            if e.phase == "X":
                row["dur"] = e.value / 1000
            elif e.phase == "C":
                row["args"] = {e.name: e.value}
            elif e.phase == "i":
                row["s"] = e.value
            rows.append(row)
        text = '{\n"traceEvents": [\n' + ",\n".join(map(json.dumps, rows)) + '\n],\n"displayTimeUnit": "ms"\n}\n'
        files.write_bytes(self.settings.filename, text.encode())

    def statistics(self, sort_by: str, ascending: bool) -> Tables:
        """Sums by category and name: times in ms, memory in kB."""
        if sort_by not in _SORT_KEYS:
            raise MXNetError(f"dumps: sort_by must be one of {', '.join(_SORT_KEYS)}, received {sort_by!r}")
        with self._lock:
            rows = {k: list(v) for k, v in self._sums.items()}
        tables: Tables = {"Time": {}, "Memory": {}}
        for (category, name), (count, total, least, most) in rows.items():
            memory = category == MEMORY
            counter = not memory and category != "operator" and (category, name) in self._counters()
            scale = 1 if memory or counter else 1e-6
            row = {"Count": count, "Total": total * scale, "Min": least * scale, "Max": most * scale,
                   "Avg": ((least + most) / 2 if memory else total * scale / count)}
            if memory:
                del row["Total"]
            tables["Memory" if memory else "Time"].setdefault(category, {})[name] = row
        key = _SORT_KEYS[sort_by]
        for kind in tables.values():
            for category in kind:
                kind[category] = dict(sorted(kind[category].items(), key=lambda item: item[1][key if key in item[1] else "Max"],
                                             reverse=not ascending))
        return tables

    def _counters(self) -> set[tuple[str, str]]:
        return {(e.category, e.name) for e in self._events if e.phase == "C"}

    def reset_statistics(self) -> None:
        """Forget the sums; the trace stays."""
        with self._lock:
            self._sums.clear()


def _resident_kilobytes() -> float | None:
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1000
    except (OSError, ValueError, IndexError):
        return None


def format_table(tables: Tables) -> str:
    """The statistics as text, in MXNet's columns."""
    lines = ["", "Profile Statistics:", "\tNote the difference in units for different entries."]
    for kind, heads in (("Memory", ("Total Count", "Min Use  (kB)", "Max Use  (kB)", "Avg Use  (kB)")),
                        ("Time", ("Total Count", "Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)"))):
        columns = ("Count", "Min", "Max", "Avg") if kind == "Memory" else ("Count", "Total", "Min", "Max", "Avg")
        for category, rows in tables[kind].items():
            lines += [category, "=" * 17, f"{'Name':<25}" + "".join(f" {h:>16}" for h in heads),
                      f"{'----':<25}" + "".join(f" {'-' * len(h):>16}" for h in heads)]
            for name, row in rows.items():
                cells = "".join(f" {row[c]:>16d}" if c == "Count" else f" {row[c]:>16.4f}" for c in columns)
                lines.append(f"{name:<25}{cells}")
            lines.append("")
    return "\n".join(lines) + "\n"


def format_json(tables: Tables) -> str:
    """The statistics as JSON text, in MXNet's form."""
    return json.dumps({**tables, "Unit": {"Time": "ms", "Memory": "kB"}}, indent=4)


recorder = Recorder()  # the one that programs start and stop
