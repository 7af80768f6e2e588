"""Training steps in a trace, the phases of each (data, forward, backward, update), and the tree of a flame graph."""
from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .events import CUSTOM, DATA, GRAPH, OPERATOR

if TYPE_CHECKING:
    from .analysis import Interval

PHASES = ("data", "forward", "backward", "update", "communication", "waiting", "rest")
COMMUNICATION = ("Copy", "KVStore", "ElementwiseSum", "MXKVStore")
WAITING = "waiting for data"
_MOST_STEPS = 500  # that a page shows, the last ones
_MOST_NODES = 3000  # of the flame graph, the largest ones
_DEEPEST = 60  # level of the flame graph


def phase(interval: Interval) -> str:
    """Return the phase of a training step that an event belongs to: one of `PHASES`."""
    name, category = interval.name, interval.category
    if name == "WaitForVar":
        return "waiting"
    if category == DATA or name == WAITING:
        return "data"
    if name.startswith(COMMUNICATION):
        return "communication"
    if name.startswith("_backward_"):
        return "backward"
    if category in (OPERATOR, CUSTOM, GRAPH):
        return "update" if _updates(name) else "forward"
    return "rest"


def _updates(name: str) -> bool:
    return "_update" in name or name.endswith("multi_sum_sq")


def split(intervals: Iterable[Interval], wall: float) -> dict[str, float]:
    """Return the time of each phase in `intervals`, of one thread, in ms; the rest of `wall` is Python's."""
    times = dict.fromkeys(PHASES, 0.0)
    for interval in intervals:
        times[phase(interval)] += interval.own / 1000
    times["rest"] = max(wall - sum(value for name, value in times.items() if name != "rest"), 0.0)
    return times


def steps(intervals: Sequence[Interval]) -> list[dict[str, float]]:
    """Return the training steps of a thread, whose intervals are in the order of their starts.

    A step ends with the last of its updates. It begins where the one before has ended, the first one with the first interval; what follows the last
    update is no step.

    Returns
    -------
    list of dict
        The phases of each step, its ``start`` and its ``duration``, in ms.
    """
    results: list[dict[str, float]] = []
    inside: list[Interval] = []
    begin, end, updated = intervals[0].start if intervals else 0.0, 0.0, False

    def finish() -> None:
        wall = (end - begin) / 1000
        results.append({"start": begin / 1000, "duration": wall, **split(inside, wall)})

    for interval in intervals:
        kind = phase(interval)
        if updated and kind in ("data", "forward", "backward"):
            finish()
            inside, begin, updated = [], end, False
        inside.append(interval)
        if kind == "update":
            end, updated = interval.start + interval.duration, True
    if updated:
        inside = [i for i in inside if i.start < end]
        finish()
    return results[-_MOST_STEPS:]


def tree(intervals: Iterable[Interval]) -> list[Any]:
    """Return the call tree of a thread: ``[name, ms, calls, children]``, equal names below one parent taken together, the longest first.

    Of more than `_MOST_NODES` nodes, the longest are kept; of more than `_DEEPEST` levels, the outer ones.
    """
    root = _Node("all")
    path = [root]
    for interval in intervals:
        if interval.depth >= _DEEPEST:
            continue
        del path[interval.depth + 1:]
        parent = path[-1]
        node = parent.children.setdefault(interval.name, _Node(interval.name))
        node.time += interval.duration / 1000
        node.calls += 1
        path.append(node)
    root.time = sum(child.time for child in root.children.values())
    waiting, least = collections.deque([root]), []
    while waiting:
        node = waiting.popleft()
        least.append(node.time)
        waiting.extend(node.children.values())
    limit = sorted(least, reverse=True)[_MOST_NODES] if len(least) > _MOST_NODES else -1.0
    return root.data(limit)


class _Node:
    __slots__ = ("calls", "children", "name", "time")

    def __init__(self, name: str) -> None:
        self.name, self.time, self.calls = name, 0.0, 0
        self.children: dict[str, _Node] = {}

    def data(self, limit: float) -> list[Any]:
        children = sorted((child for child in self.children.values() if child.time > limit), key=lambda child: -child.time)
        return [self.name, round(self.time, 4), self.calls, [child.data(limit) for child in children]]


__all__ = ["PHASES", "phase", "split", "steps", "tree"]
