"""The table that `distributed.py` fills: rows register here."""
from collections.abc import Callable
from typing import NamedTuple

ROWS = {}


class Row(NamedTuple):
    """What is measured, against whom, and the function that does it: from the options to ``(what was measured, whether that is the goal)``."""

    name: str
    against: str
    goal: str
    measure: Callable


def row(name, against, goal):
    """A decorator for the function that measures a row."""
    def register(measure):
        ROWS[name] = Row(name, against, goal, measure)
        return measure
    return register
