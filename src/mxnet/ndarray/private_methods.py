"""Underscore methods of MXNet's arrays that programs call, although they are not public API."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..base import MXNetError
from ..ops import host_arrays
from ..ops.registry import get
from ..suggestions import shortened
from .dispatch import invoke
from .index_helpers import index_range
from .ndarray import NDArray


def _sync_copyfrom(self: NDArray, source_array: Any) -> None:
    """Copy the values of a NumPy array, or nested list, of this array's shape.

    Raises
    ------
    ValueError
        If it has another shape.
    TypeError
        If it is not made of numbers.
    """
    try:
        values = host_arrays.as_tensor(source_array, self._data.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"_sync_copyfrom: an array of numbers expected, received {shortened(source_array)}: {error}") from None
    if tuple(values.shape) != self.shape:
        raise ValueError(f"_sync_copyfrom: shape {self.shape} expected, received {tuple(values.shape)}")
    self._set_values(values)


def _slice(self: NDArray, start: int | None, stop: int | None) -> NDArray:
    """Return the entries of the first axis from `start` up to `stop`, sharing memory."""
    first, last, _ = index_range(start, stop, len(self))
    if first > last:
        raise MXNetError(f"_slice: a start of at most {last} expected, received {first}")
    return self[first:last]


def _at(self: NDArray, idx: int) -> NDArray:
    """Return one entry of the first axis, sharing memory."""
    count = len(self)
    if not -count <= idx < count:
        raise MXNetError(f"_at: an index from {-count} to {count - 1} expected, received {idx}")
    entry = self[idx:idx + 1 or None]
    return entry if self.ndim == 1 else entry.reshape(self.shape[1:])


def _full(self: NDArray, value: float) -> NDArray:
    """Set all values to a number, and return the array."""
    if not isinstance(value, (int, float, np.number, np.bool_)):
        raise MXNetError(f"_full: a number expected, received {shortened(value)}")
    self[...] = value
    return self


def _scatter_set_nd(self: NDArray, value_nd: NDArray, indices: NDArray) -> NDArray:
    """Set the elements that `indices` names as `gather_nd` reads them, and return the array."""
    return invoke(get("_scatter_set_nd"), (self, value_nd, indices), {"shape": self.shape}, self, type(self))


for _method in (_sync_copyfrom, _slice, _at, _full, _scatter_set_nd):
    setattr(NDArray, _method.__name__, _method)
