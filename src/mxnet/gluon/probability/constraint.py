"""What parameters and values of distributions must be, for ``validate_args=True``."""
from __future__ import annotations

from typing import Any

from ... import numpy as np

__all__ = ["Constraint", "boolean", "interval", "lower_triangular", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite",
           "real", "simplex", "unit_interval"]


class Constraint:
    """A property of arrays.

    Parameters
    ----------
    text : str
        What the values are then, for messages.
    holds : callable
        From an array to an array of booleans.
    """

    def __init__(self, text: str, holds: Any) -> None:
        self._text, self._holds = text, holds

    def check(self, value: Any) -> Any:
        """The value, if the property holds everywhere.

        Raises
        ------
        ValueError
            If it does not.
        """
        if not bool(np.all(self._holds(value))):
            raise ValueError(f"{self._text} expected, received {value}")
        return value

    def __repr__(self) -> str:
        return f"<{self._text}>"


def _is_integer(x: Any) -> Any:
    return x == np.floor(x)


def _sums_to_one(x: Any) -> Any:
    return np.abs(x.sum(-1) - 1) < 1e-4


real = Constraint("numbers", lambda x: x == x)
positive = Constraint("numbers above 0", lambda x: x > 0)
nonnegative = Constraint("numbers of at least 0", lambda x: x >= 0)
unit_interval = Constraint("numbers from 0 to 1", lambda x: (x >= 0) * (x <= 1))
nonnegative_integer = Constraint("whole numbers of at least 0", lambda x: _is_integer(x) * (x >= 0))
boolean = Constraint("0 or 1", lambda x: (x == 0) + (x == 1))
simplex = Constraint("numbers of at least 0 with the sum 1 along the last axis", lambda x: np.all(x >= 0, axis=-1) * _sums_to_one(x))
one_hot = Constraint("0, and a single 1 along the last axis", lambda x: np.all((x == 0) + (x == 1), axis=-1) * _sums_to_one(x))
positive_definite = Constraint("positive definite matrices", lambda x: np.linalg.eigvalsh(x) > 0)
lower_triangular = Constraint("lower triangular matrices", lambda x: np.tril(x) == x)


def interval(low: Any, high: Any, whole: bool = False) -> Constraint:
    """Numbers from `low` to `high`; with `whole` integers."""
    text = f"{'whole ' if whole else ''}numbers from {low} to {high}"
    return Constraint(text, lambda x: (x >= low) * (x <= high) * (_is_integer(x) if whole else x == x))
