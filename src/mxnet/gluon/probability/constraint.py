"""Conditions on parameters and values of distributions, for ``validate_args=True``.

MXNet 2 has a class for each property (`Positive`); those without bounds are here ready-made, too (`positive`).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import numpy as np
from ...suggestions import shortened

__all__ = ["Boolean", "Cat", "Constraint", "GreaterThan", "GreaterThanEq", "HalfOpenInterval", "IntegerGreaterThan", "IntegerGreaterThanEq",
           "IntegerHalfOpenInterval", "IntegerInterval", "IntegerLessThan", "IntegerLessThanEq", "IntegerOpenInterval", "Interval", "LessThan",
           "LessThanEq", "LowerCholesky", "LowerTriangular", "NonNegative", "NonNegativeInteger", "OneHot", "OpenInterval", "Positive",
           "PositiveDefinite", "PositiveInteger", "Real", "Simplex", "Stack", "UnitInterval", "boolean", "dependent", "dependent_property",
           "interval", "is_dependent", "lower_triangular", "nonnegative", "nonnegative_integer", "one_hot", "positive",
           "positive_definite", "real", "simplex", "unit_interval"]


class Constraint:
    """A property of arrays. A subclass defines `text`, a description of the values, and `holds`, the test of each value, or defines `check`."""

    @property
    def text(self) -> str:
        """The property in words, for messages."""
        return type(self).__name__

    def holds(self, value: Any) -> Any:
        """Where the property holds, as an array of booleans."""
        raise NotImplementedError(f"{type(self).__name__} must define check(value), or holds(value)")

    def check(self, value: Any) -> Any:
        """Return the value, if the property holds everywhere.

        Raises
        ------
        ValueError
            If it does not.
        """
        if not bool(np.all(self.holds(value))):
            raise ValueError(f"{self.text} expected, received {value}")
        return value

    def __repr__(self) -> str:
        return f"<{self.text}>"


def _is_integer(x: Any) -> Any:
    return x == np.floor(x)


def _sums_to_one(x: Any) -> Any:
    return np.abs(x.sum(-1) - 1) < 1e-4


class Real(Constraint):
    """Numbers, not NaN."""

    text = "numbers"

    def holds(self, value: Any) -> Any:
        """Where the property holds."""
        return value == value


class Boolean(Constraint):
    """0 or 1."""

    text = "0 or 1"

    def holds(self, value: Any) -> Any:
        """Where the property holds."""
        return (value == 0) + (value == 1)


class _Bounded(Constraint):
    """Numbers between two bounds of which either may be missing, with or without the bounds themselves; and integers alone if `_whole`."""

    _open_below = _open_above = _whole = False

    def __init__(self, lower_bound: Any = None, upper_bound: Any = None) -> None:
        self._lower_bound, self._upper_bound = lower_bound, upper_bound

    @property
    def text(self) -> str:
        """The property in words."""
        low, high = self._lower_bound, self._upper_bound
        text = "whole numbers" if self._whole else "numbers"
        if low is not None and high is not None and not (self._open_below or self._open_above):
            return f"{text} from {low} to {high}"
        bounds = [f"{'above' if self._open_below else 'of at least'} {low}"] if low is not None else []
        if high is not None:
            bounds.append(f"{'below' if self._open_above else 'of at most'} {high}")
        return f"{text} {' and '.join(bounds)}"

    def holds(self, value: Any) -> Any:
        """Where the property holds."""
        result = _is_integer(value) if self._whole else value == value
        if self._lower_bound is not None:
            result = result * (value > self._lower_bound if self._open_below else value >= self._lower_bound)
        if self._upper_bound is not None:
            result = result * (value < self._upper_bound if self._open_above else value <= self._upper_bound)
        return result


class Interval(_Bounded):
    """Numbers from `lower_bound` to `upper_bound`."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound, upper_bound)


class OpenInterval(Interval):
    """Numbers between `lower_bound` and `upper_bound`, without these."""

    _open_below = _open_above = True


class HalfOpenInterval(Interval):
    """Numbers from `lower_bound` to below `upper_bound`."""

    _open_above = True


class IntegerInterval(Interval):
    """Integers from `lower_bound` to `upper_bound`."""

    _whole = True


class IntegerOpenInterval(OpenInterval):
    """Integers between `lower_bound` and `upper_bound`, without these."""

    _whole = True


class IntegerHalfOpenInterval(HalfOpenInterval):
    """Integers from `lower_bound` to below `upper_bound`."""

    _whole = True


class UnitInterval(Interval):
    """Numbers from 0 to 1."""

    def __init__(self) -> None:
        super().__init__(0, 1)


class GreaterThanEq(_Bounded):
    """Numbers of at least `lower_bound`."""

    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound)


class GreaterThan(GreaterThanEq):
    """Numbers above `lower_bound`."""

    _open_below = True


class LessThanEq(_Bounded):
    """Numbers of at most `upper_bound`."""

    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound=upper_bound)


class LessThan(LessThanEq):
    """Numbers below `upper_bound`."""

    _open_above = True


class IntegerGreaterThan(GreaterThan):
    """Integers above `lower_bound`."""

    _whole = True


class IntegerGreaterThanEq(GreaterThanEq):
    """Integers of at least `lower_bound`."""

    _whole = True


class IntegerLessThan(LessThan):
    """Integers below `upper_bound`."""

    _whole = True


class IntegerLessThanEq(LessThanEq):
    """Integers of at most `upper_bound`."""

    _whole = True


class Positive(GreaterThan):
    """Numbers above 0."""

    def __init__(self) -> None:
        super().__init__(0)


class NonNegative(GreaterThanEq):
    """Numbers of at least 0."""

    def __init__(self) -> None:
        super().__init__(0)


class PositiveInteger(IntegerGreaterThan):
    """Integers above 0."""

    def __init__(self) -> None:
        super().__init__(0)


class NonNegativeInteger(IntegerGreaterThanEq):
    """Integers of at least 0."""

    def __init__(self) -> None:
        super().__init__(0)


class Simplex(Constraint):
    """Numbers of at least 0 whose sum along the last axis is 1."""

    text = "numbers of at least 0 with the sum 1 along the last axis"

    def holds(self, value: Any) -> Any:
        """Where the property holds."""
        return np.all(value >= 0, axis=-1) * _sums_to_one(value)


class OneHot(Constraint):
    """0, and a single 1 along the last axis."""

    text = "0, and a single 1 along the last axis"

    def holds(self, value: Any) -> Any:
        """Where the property holds."""
        return np.all((value == 0) + (value == 1), axis=-1) * _sums_to_one(value)


class LowerTriangular(Constraint):
    """Lower triangular matrices."""

    text = "lower triangular matrices"

    def holds(self, value: Any) -> Any:
        """Where the property holds."""
        return np.tril(value) == value


class LowerCholesky(Constraint):
    """Lower triangular matrices with positive diagonals."""

    text = "lower triangular matrices with positive diagonals"

    def holds(self, value: Any) -> Any:
        """Where the property holds."""
        return np.all(np.tril(value) == value, axis=-1) * (np.diagonal(value, axis1=-2, axis2=-1) > 0)


class PositiveDefinite(Constraint):
    """Symmetric positive definite matrices."""

    text = "positive definite matrices"

    def holds(self, value: Any) -> Any:
        """Where the property holds."""
        return np.linalg.eigvalsh(value) > 0


class _Parts(Constraint):
    """Arrays whose parts along an axis have a property each."""

    def __init__(self, constraint_seq: Sequence[Constraint], axis: int = 0) -> None:
        if not all(isinstance(constraint, Constraint) for constraint in constraint_seq):
            raise TypeError(f"{type(self).__name__}: a sequence of Constraints expected, received {shortened(constraint_seq)}")
        self._constraint_seq, self._axis = list(constraint_seq), axis

    @property
    def text(self) -> str:
        """The property in words."""
        return f"along axis {self._axis} {', then '.join(constraint.text for constraint in self._constraint_seq)}"


class Cat(_Parts):
    """Arrays that are joined along an axis, of parts with a property each.

    Parameters
    ----------
    constraint_seq : sequence of Constraint
    axis : int
    lengths : sequence of int, optional
        The lengths of the parts; 1 by default.
    """

    def __init__(self, constraint_seq: Sequence[Constraint], axis: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(constraint_seq, axis)
        self._lengths = [1] * len(self._constraint_seq) if lengths is None else list(lengths)
        if len(self._lengths) != len(self._constraint_seq):
            raise ValueError(f"Cat: a length for each of the {len(self._constraint_seq)} constraints expected, received {len(self._lengths)}")

    def check(self, value: Any) -> Any:
        """Return the value, if each part has its property; raise a ValueError that names the first without it."""
        start = 0
        for constraint, length in zip(self._constraint_seq, self._lengths):
            constraint.check(np.take(value, np.arange(start, start + length, dtype="int32"), axis=self._axis))
            start += length
        return value


class Stack(_Parts):
    """Arrays that are stacked along an axis, of entries with a property each.

    Parameters
    ----------
    constraint_seq : sequence of Constraint
    axis : int
    """

    def check(self, value: Any) -> Any:
        """Return the value, if each entry has its property; raise a ValueError that names the first without it."""
        if value.shape[self._axis] != len(self._constraint_seq):
            raise ValueError(f"Stack: axis {self._axis} with {len(self._constraint_seq)} entries expected, received an array of shape {value.shape}")
        for i, constraint in enumerate(self._constraint_seq):
            constraint.check(np.take(value, np.array(i, dtype="int32"), axis=self._axis))
        return value


class _Dependent(Constraint):
    """A property that depends on other parameters, so that only a distribution object determines it."""

    def check(self, value: Any) -> Any:
        """Raise an error, since the class alone has no parameters to determine the property."""
        raise ValueError("a dependent constraint holds for the parameters of one distribution; ask that distribution for it")


class _DependentProperty(property, _Dependent):
    """A property of a distribution that is a `Constraint`; of the class it is a dependent one. A decorator, like ``property``."""


def is_dependent(constraint: Any) -> bool:
    """Return True if a constraint depends on the parameters of a distribution."""
    return isinstance(constraint, _Dependent)


def interval(low: Any, high: Any, whole: bool = False) -> Constraint:
    """Numbers from `low` to `high`; with `whole` integers."""
    return (IntegerInterval if whole else Interval)(low, high)


real, positive, nonnegative, unit_interval = Real(), Positive(), NonNegative(), UnitInterval()
nonnegative_integer, boolean, simplex, one_hot = NonNegativeInteger(), Boolean(), Simplex(), OneHot()
positive_definite, lower_triangular = PositiveDefinite(), LowerTriangular()
dependent = _Dependent()
dependent_property = _DependentProperty
