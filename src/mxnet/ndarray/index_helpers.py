"""Index arithmetic for the private functions of MXNet's arrays; our own indexing (`indexing`) does not use it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import integer_types

EMPTY_TUPLE = 2  # a kind of key, beside those in `indexing`
# The value of a scalar boolean among the indices, or that there is none.
NO_BOOLEAN, BOOLEAN_FALSE, BOOLEAN_TRUE = -1, 0, 1
INT32_LIMIT = 2**31 - 1  # the most elements of an array that int32 can number


def int_to_slice(idx: int) -> slice:
    """Return the slice that selects the same as a number: ``slice(-1, None)`` for -1."""
    return slice(idx, idx + 1 or None)


def is_advanced(idx: Any) -> bool:
    """Return True if an index takes part in advanced indexing: arrays, sequences and numbers do, slices and None do not.

    Raises
    ------
    RuntimeError
        If it is no valid index.
    """
    if isinstance(idx, slice) or idx is None:
        return False
    if isinstance(idx, (np.ndarray, list, tuple, range, *integer_types)) or hasattr(idx, "asnumpy"):
        return True
    raise RuntimeError(f"an array, a list, a number, a slice or None expected as index, received {type(idx)}")


def index_range(start: int | None, stop: int | None, length: int, step: int | None = 1) -> tuple[int, int, int]:
    """Start, stop and step of a slice of `length` entries, as numbers from 0 to `length`; a stop of -1 is the one before the first entry.

    Raises
    ------
    ValueError
        If `step` is 0 or `length` is negative.
    """
    step = 1 if step is None else step
    if step == 0:
        raise ValueError("a step other than 0 expected, received 0")
    if length < 0:
        raise ValueError(f"a length of at least 0 expected, received {length}")

    def within(place: int) -> int:
        return max(place + length, 0) if place < 0 else min(place, length)

    first, last = (0, length) if step > 0 else (length - 1, -1)
    return first if start is None else within(start), last if stop is None else within(stop), step


def slice_size(start: int, stop: int, step: int) -> int:
    """Return the number of entries from `start` to `stop`.

    Raises
    ------
    AssertionError
        If `step` is 0, or leads away from `stop`.
    """
    if step == 0 or (stop - start) * step < 0:
        raise AssertionError(f"a step that leads from {start} to {stop} expected, received {step}")
    return len(range(start, stop, step))


def slice_length(slc: slice, seq_length: int) -> int:
    """Return how many of `seq_length` entries a slice selects."""
    return len(range(*slc.indices(seq_length)))


def shape_for_broadcast(shape: Sequence[int], target_ndim: int, new_axes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape with further axes of size 1, `target_ndim` in all: at `new_axes` if it has fewer, and in front."""
    ones = set(new_axes) if len(shape) < target_ndim else set()
    sizes = list(shape)
    filled = [1 if axis in ones or not sizes else sizes.pop() for axis in reversed(range(target_ndim))]
    return tuple(reversed(filled))


def broadcast_shapes(seq: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape that arrays are broadcast to together."""
    return np.broadcast_shapes(*(x.shape for x in seq))


def broadcast_shape_of(*arrays: Any) -> tuple[int, ...]:
    """`broadcast_shapes` of its arguments."""
    return broadcast_shapes(arrays)


def check_boolean_shape(array_shape: Sequence[int], axis: int, bool_shape: Sequence[int]) -> None:
    """Raise an IndexError unless a boolean index has the sizes of the axes of an array from `axis` on."""
    for ax, size in enumerate(bool_shape, start=axis):
        if array_shape[ax] != size:
            raise IndexError(f"a boolean index must have the sizes of the array's axes: axis {ax} has {array_shape[ax]} entries, the index {size}")


def axes_after_basic(axes: Sequence[int], key: Sequence[Any]) -> tuple[int, ...]:
    """Where axes of an expanded basic key are in the result: each number among its entries takes an axis away."""
    return tuple(sum(not isinstance(k, integer_types) for k in key[:axis]) for axis in axes)


def axes_after_advanced(key: Sequence[Any], adv_axs: Sequence[int], bcast_adv_ndim: int, adv_are_adjacent: bool) -> tuple[int, ...]:
    """Where the new axes (None) of an expanded key are in the result.

    Parameters
    ----------
    key : sequence
    adv_axs : sequence of int
        Which of its entries are advanced; in the result there are `bcast_adv_ndim` axes for them,
    adv_are_adjacent : bool
        in their place if they stand together, else in front.
    """
    first = 0 if adv_are_adjacent else bcast_adv_ndim
    return tuple(first + sum(other not in adv_axs for other in range(axis)) for axis, k in enumerate(key) if k is None)


def broadcast_indices(arrays: Sequence[Any], block_axes: Sequence[int]) -> tuple[Any, ...]:
    """Index arrays, one for each axis, broadcast against one another.

    Parameters
    ----------
    arrays : sequence of NDArray
        Those at `block_axes`, which are consecutive, broadcast to a block of any axes; each other one has one axis of its own.

    Returns
    -------
    tuple of NDArray
        All of one shape.
    """
    lead, behind = block_axes[0], block_axes[-1] + 1
    block = broadcast_shapes([arrays[axis] for axis in block_axes])
    before, after = [tuple(a.shape[0] for a in part) for part in (arrays[:lead], arrays[behind:])]
    shape = before + block + after

    def placed(axis: int) -> tuple[int, ...]:
        place = axis if axis < lead else axis + len(block) - len(block_axes)
        return tuple(shape[place] if i == place else 1 for i in range(len(shape)))

    out = []
    for axis, array in enumerate(arrays):
        if lead <= axis < behind:
            own = tuple(array.shape)
            array = array.reshape((1,) * (len(before) + len(block) - len(own)) + own + (1,) * len(after))
        else:
            array = array.reshape(placed(axis))
        out.append(array.broadcast_to(shape))
    return tuple(out)
