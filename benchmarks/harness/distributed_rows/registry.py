"""The registry of the rows of `distributed.py`."""
from collections.abc import Callable
from typing import NamedTuple

ROWS = {}


class Row(NamedTuple):
    """A measurement with its baseline and goal; `measure` takes the options and returns ``(text of the result, True if it reaches the goal)``."""

    name: str
    baseline: str
    goal: str
    measure: Callable


def row(name, baseline, goal):
    """Return a decorator that registers the function that measures a row."""
    def register(measure):
        ROWS[name] = Row(name, baseline, goal, measure)
        return measure
    return register
