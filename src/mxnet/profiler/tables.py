"""The statistics of a profile in MXNet's output formats: text, or JSON."""
import json
from typing import Any

from ..base import MXNetError
from ..suggestions import shortened
from .events import API, MEMORY, Events

SORT_KEYS = {"total": "Total", "avg": "Avg", "min": "Min", "max": "Max", "count": "Count"}
# Kind of number ("Time" or "Memory") -> category -> name -> column -> number.
Tables = dict[str, dict[str, dict[str, dict[str, Any]]]]


def statistics(events: Events, sort_by: str = "total", ascending: bool = False) -> Tables:
    """Return the statistics by category and name: times in ms, memory in kB.

    Raises
    ------
    MXNetError
        If `sort_by` is unknown.
    """
    if sort_by not in SORT_KEYS:
        raise MXNetError(f"dumps: sort_by must be one of {', '.join(SORT_KEYS)}, received {shortened(sort_by)}")
    tables: Tables = {"Time": {}, "Memory": {}}
    for (category, name), (count, total, least, most, counter) in events.totals().items():
        memory = category == MEMORY
        scale = 1 if counter else 1e-6
        row = {"Count": count, "Total": total * scale, "Min": least * scale, "Max": most * scale,
               "Avg": (least + most) / 2 if memory else total * scale / max(count, 1)}
        if memory:
            del row["Total"]
        tables["Memory" if memory else "Time"].setdefault(category, {})[name] = row
    calls = sum(count for (category, _), (count, _, _, _, counter) in events.totals().items() if category == API and not counter)
    if calls:
        tables["Time"][API]["MXNet C API Calls"] = {"Count": calls, "Total": calls, "Min": 1, "Max": calls, "Avg": (1 + calls) / 2}
    key = SORT_KEYS[sort_by]
    for kind in tables.values():
        for category in kind:
            kind[category] = dict(sorted(kind[category].items(), key=lambda item: item[1][key if key in item[1] else "Max"], reverse=not ascending))
    return tables


def format_table(tables: Tables) -> str:
    """Return the statistics as text, in MXNet's columns."""
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
    """Return the statistics as JSON text, in MXNet's schema."""
    return json.dumps({**tables, "Unit": {"Time": "ms", "Memory": "kB"}}, indent=4)
