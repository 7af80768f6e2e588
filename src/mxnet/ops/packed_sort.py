"""Stable order of 32-bit numbers: each is joined with its position to an integer of 64 bits, which NumPy sorts with vector instructions."""
from __future__ import annotations

import torch

_INTEGERS = torch.int32, torch.int16, torch.int8, torch.uint8
_WORTHWHILE = 1 << 12  # elements from which on it is faster than torch
_FULL, _SELECT = 8, 64  # ratios of an axis to the requested elements, from which on it is not fully sorted, or torch is faster
_POSITION = (1 << 32) - 1


def suits(data: torch.Tensor, axis: int, count: int) -> bool:
    """Return whether `first` takes this tensor, and finds the first `count` elements along `axis` faster than torch does."""
    return (type(data) is torch.Tensor and data.is_cpu and (data.dtype is torch.float32 or data.dtype in _INTEGERS)
            and data.numel() >= _WORTHWHILE and 0 < count and count * _SELECT > data.shape[axis] <= _POSITION and not torch.compiler.is_compiling())


def first(data: torch.Tensor, axis: int, count: int, descending: bool) -> torch.Tensor:
    """Return the positions (int64) along `axis` of the `count` least elements, or the greatest, in order; equal ones stay in theirs.

    NaN counts as greater than any number, as in torch.

    Example
    -------
    >>> first(torch.tensor([5, 2, 5, 9], dtype=torch.int32), 0, 3, True).tolist()
    [3, 0, 2]
    """
    size = data.shape[axis]
    keys = _integers(data.movedim(axis, -1).contiguous())
    if descending:
        keys.bitwise_not_()
    keys <<= 32
    keys |= torch.arange(size)
    array = keys.numpy()
    if count * _FULL <= size:
        array.partition(count - 1, axis=-1)
        array = array[..., :count].copy()
    array.sort(axis=-1)
    return (torch.from_numpy(array)[..., :count] & _POSITION).movedim(-1, axis).contiguous()


def _integers(data: torch.Tensor) -> torch.Tensor:
    """Return int64 numbers of 32 bits in the order of the elements."""
    if data.dtype is not torch.float32:
        return data.to(torch.int64)
    # As integers with a sign positive floats are in order, and negative ones in reverse. Adding 0 makes -0 equal to 0.
    bits = torch.where(data.isnan(), torch.nan, data + 0.0).view(torch.int32)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(torch.int64)
