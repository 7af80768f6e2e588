"""`Value`: a value of an ONNX graph during the import."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....base import MXNetError
from .reading import UnknownValue


class Value:
    """A value of an ONNX graph: arrays that are known, an output of a Symbol, or both.

    Open sizes of the file are replaced by two sets of trial numbers. A result that is the same for both holds for all; an array that differs
    (the shape of a batch of unknown size) has no value, but operators that use it may still be imported: see `reshaping`.

    Attributes
    ----------
    name : str
        That in the file.
    arrays : list of numpy.ndarray, or None
        One for each set of sizes.
    entry : (Node, int), or None
        The output of a node that has the value when the network runs.
    scalar : bool
        ONNX has no axes where the Symbol has one of size 1.
    boolean : bool
        ONNX has truth values where the Symbol may have numbers 0 and 1.
    recipe : callable, or None
        Makes a `Value` with an entry, for arrays that differ.
    reader : callable, or None
        Reads the array where the network is running, see `running`.
    sequence : list of Value, or None
        The elements of a value that is a sequence, or the one of an optional value.
    later : bool
        It is computed by a part of the graph that is imported when the network runs, see `deferring`.
    """

    __slots__ = ("name", "arrays", "entry", "scalar", "boolean", "recipe", "reader", "sequence", "later")

    def __init__(self, name: str, arrays: Any = None, entry: Any = None, scalar: bool = False, boolean: bool = False,
                 recipe: Callable[[], Value] | None = None, reader: Callable[[], np.ndarray] | None = None, sequence: Any = None,
                 later: bool = False):
        self.name, self.arrays, self.entry, self.scalar, self.boolean, self.recipe = name, arrays, entry, scalar, boolean, recipe
        self.reader, self.sequence, self.later = reader, sequence, later

    @property
    def array(self) -> np.ndarray | None:
        """The array if it does not depend on open sizes, else None."""
        if self.arrays is None:
            return None
        first = self.arrays[0]
        return first if all(same(first, other) for other in self.arrays[1:]) else None

    def constant(self, what: str) -> np.ndarray:
        """Return the array, which the import of a node needs.

        Raises
        ------
        UnknownValue
            If the value is known only when the network runs.
        """
        array = self.array
        if array is None and self.reader is not None:
            array = self.reader()
        if array is None:
            raise UnknownValue(f"`{what}` (the value '{self.name}') must be known when the file is imported, and follows from the network's "
                               "inputs")
        return array

    def candidates(self, what: str) -> list[np.ndarray]:
        """Return the arrays, one for each set of sizes; errors as for `constant`."""
        return [self.constant(what)] if self.arrays is None else self.arrays

    def elements(self, what: str) -> Any:
        """Return the elements of a sequence.

        Raises
        ------
        MXNetError
            If the value is no sequence.
        """
        if self.sequence is None:
            raise MXNetError(f"`{what}` (the value '{self.name}') must be a sequence, received an array")
        return self.sequence

    def integers(self, what: str) -> tuple[int, ...]:
        """Return the numbers of an array of at most one axis, as a tuple of int; errors as for `constant`."""
        return as_integers(self.constant(what), what)

    def number(self, what: str) -> Any:
        """Return the one number of an array; errors as for `constant`."""
        array = self.constant(what)
        if array.size != 1:
            raise MXNetError(f"`{what}` must be one number, received an array of shape {array.shape}")
        return array.reshape(-1)[0].item()


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Return True if two arrays are equal in type, shape and values; NaN equals NaN."""
    return a is b or a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def as_integers(array: np.ndarray, what: str) -> tuple[int, ...]:
    """Return the numbers of an array of at most one axis, as a tuple of int.

    Raises
    ------
    MXNetError
        If it has more axes, or other than integers.
    """
    if array.ndim > 1 or array.dtype.kind not in "iub":
        raise MXNetError(f"`{what}` must be integers in one axis, received {array.dtype} of shape {array.shape}")
    return tuple(int(number) for number in array.reshape(-1))
