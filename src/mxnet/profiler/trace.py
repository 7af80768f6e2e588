"""Chrome traces: written at once, or in pieces with valid JSON after each; read also if their writer was killed."""
import json
import os
from collections.abc import Iterable
from types import NoneType
from typing import Any

from .. import files, processor, threads
from ..base import MXNetError
from .events import HOST, OPERATOR, Event, Kind

_HEAD = b'{\n"traceEvents": [\n'
_BINDS = {"s": "", "f": ', "bp": "e"'}  # flow events (start, end) belong to the event that encloses them
_TAIL = b'\n],\n"displayTimeUnit": "ms"\n}\n'


def machine(waited_ms: float = 0.0, idle_cores: float = 0.0) -> dict[str, Any]:
    """Return a profile's record of the machine.

    It has the threads of an operator, the usable cores, the time that threads waited for a core, the average number of idle cores while events
    were recorded, and True if the processor has fast bfloat16 products.
    """
    return {"waited_ms": round(waited_ms, 1), "idle_cores": round(idle_cores, 2), "name": processor.name() or "unknown",
            "threads": threads.usual(), "cores": float(threads.usable()), "policy": threads.policy.reason,
            "bfloat16": bool({"avx512_bf16", "amx_bf16", "bf16"} & set(processor.flags()))}


class Encoder:
    """Encodes events as lines of JSON; the first event of a process or thread is preceded by its name.

    Parameters
    ----------
    origin : int
        The offset from a start to ns since 1970.
    threads : dict of int to str
        The names of threads; entries may be added later.
    waited_ms, idle_cores : float
        The arguments of `machine`.
    """

    def __init__(self, origin: int, threads: dict[int, str], waited_ms: float = 0.0, idle_cores: float = 0.0) -> None:
        self._origin, self._threads, self._waits = origin, threads, (waited_ms, idle_cores)
        self._processes: dict[str, int] = {}
        self._known: set[tuple[int, int]] = set()
        self._heads: dict[Kind, tuple[int, str]] = {}

    def lines(self, events: Iterable[Event]) -> list[str]:
        """Return the lines, one for each object of the trace."""
        texts: list[str] = []
        if not self._processes:
            self._process(HOST, texts)
            texts.append(json.dumps({"ph": "M", "args": machine(*self._waits), "pid": 0, "name": "machine"}))
        for kind, start, value, thread in events:
            known = self._heads.get(kind)
            if known is None:
                known = self._heads[kind] = self._head(kind, texts)
            pid, head = known
            if (pid, thread) not in self._known:
                self._known.add((pid, thread))
                texts.append(json.dumps({"ph": "M", "args": {"name": self._threads.get(thread, str(thread))}, "pid": pid, "tid": thread,
                                         "name": "thread_name"}))
            texts.append(f'{head}"ts": {(start + self._origin) / 1000:.3f}, "tid": {thread}, {_tail(kind, value)}}}')
        return texts

    def _head(self, kind: Kind, texts: list[str]) -> tuple[int, str]:
        pid = self._process(kind.place or (HOST if kind.category == OPERATOR else kind.category), texts)
        details = {k: v for k, v in (("node", kind.node), ("note", kind.note)) if v}
        given = f', "args": {json.dumps(details)}' if details and kind.phase == "X" else ""
        return pid, f'{{"name": {json.dumps(kind.name)}, "cat": {json.dumps(kind.category)}, "ph": "{kind.phase}", "pid": {pid}{given}, '

    def _process(self, name: str, texts: list[str]) -> int:
        pid = self._processes.get(name)
        if pid is None:
            pid = self._processes[name] = len(self._processes)
            texts.append(json.dumps({"ph": "M", "args": {"name": name}, "pid": pid, "name": "process_name"}))
        return pid


def _tail(kind: Kind, value: Any) -> str:
    """Return the JSON fields of an event besides its name, place and time: duration, scope, flow binding or value."""
    if kind.phase == "X":
        return f'"dur": {value / 1000}'
    if kind.phase == "i":
        return f'"s": "{value}"'
    if kind.phase in _BINDS:
        return f'"id": {value}{_BINDS[kind.phase]}'
    number = f"{value:g}" if value % 1 else str(int(value))
    return f'"args": {{{json.dumps(kind.name)}: {number}}}'


class Writer:
    """Writes a trace to one file: first atomically, then only the new events.

    The file always ends in the same bytes, and each piece replaces them in one write: it is valid JSON before and after.
    """

    def __init__(self, path: str, encoder: Encoder) -> None:
        self.path, self._encoder = path, encoder
        self._end = 0  # the offset of the next piece; 0 before the first

    def append(self, events: Iterable[Event]) -> None:
        """Write events. If the file was removed or changed meanwhile, they begin a new one."""
        lines = self._encoder.lines(events)
        if self._end and self._appended(lines):
            return
        text = _HEAD + ",\n".join(lines).encode()
        files.write_bytes(self.path, text + _TAIL)
        self._end = len(text)

    def _appended(self, lines: list[str]) -> bool:
        if not lines:
            return os.path.exists(self.path)
        text = b",\n" + ",\n".join(lines).encode()
        try:
            with open(self.path, "r+b") as f:
                if f.seek(0, os.SEEK_END) != self._end + len(_TAIL):
                    return False
                f.seek(self._end)
                f.write(text + _TAIL)
        except OSError:
            return False
        self._end += len(text)
        return True


def read(path: str) -> list[dict[str, Any]]:
    """Return the events of a Chrome trace of any program as dicts. A trace may break off in the middle of a line.

    Raises
    ------
    MXNetError
        If it is no trace.
    """
    text = files.read_bytes(path).decode("utf-8", "replace")
    try:
        content = json.loads(text)
    except ValueError:
        content = _unfinished(text)
    except RecursionError:
        content = None
    rows = content.get("traceEvents") if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise MXNetError(f"{path} is no trace: expected is JSON, a list of events, or an object that has one under \"traceEvents\"")
    return [row for row in rows if _is_event(row)]


def _is_event(row: Any) -> bool:
    """Return True if an entry of a trace is a valid event; `read` drops the others."""
    return (isinstance(row, dict) and isinstance(row.get("args") or {}, dict) and all(is_finite(row.get(key, 0)) for key in ("ts", "dur"))
            and all(isinstance(row.get(key), (int, str, float, NoneType)) for key in ("pid", "tid", "ph", "cat")))


def is_finite(value: Any) -> bool:
    """Return True if the value is a number, or text of one, below 2**63 in magnitude, so that sums of such times and sizes are finite."""
    try:
        return abs(float(value)) < 2.0 ** 63
    except (TypeError, ValueError, OverflowError):
        return False


def _unfinished(text: str) -> list[Any] | None:
    """Return the complete events of a truncated trace, or None if the text is no trace."""
    at = text.find("[")
    if at < 0 or not (text[:at].strip() == "" or '"traceEvents"' in text[:at]):
        return None
    decoder, end = json.JSONDecoder(), at + 1
    events: list[Any] = []
    while True:
        while end < len(text) and text[end] in " \t\r\n,":
            end += 1
        if end >= len(text) or text[end] != "{":
            return events
        try:
            row, end = decoder.raw_decode(text, end)
        except (ValueError, RecursionError):
            return events
        events.append(row)
