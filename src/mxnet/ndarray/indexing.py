"""Indexing ``x[...]``: MXNet's rules, converted to keys that torch accepts."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..base import integer_types
from ..suggestions import shortened

UNSUPPORTED, BASIC, ADVANCED = -1, 0, 1  # the kinds of keys that `get_indexing_dispatch_code` returns


def is_basic(key: Any) -> bool:
    """True if the key selects a regular grid: integers, slices, None and Ellipsis only."""
    if type(key) is int or type(key) is slice or key is None or key is Ellipsis:
        return True
    if isinstance(key, tuple):
        return all(k is None or k is Ellipsis or isinstance(k, (slice, *integer_types)) and not isinstance(k, (bool, np.bool_)) for k in key)
    return isinstance(key, integer_types) and not isinstance(key, (bool, np.bool_))


def check_integer(index: Any, axis: int, size: int) -> int:
    """Return the index as a non-negative number.

    Raises
    ------
    IndexError
        If it is out of range.
    """
    index = int(index)
    if not -size <= index < size:
        raise IndexError(f"axis {axis} has {size} entries, received index {index}")
    return index + size if index < 0 else index


def expand(key: Any, ndim: int) -> tuple[Any, ...]:
    """Return the key as a tuple with one entry for each axis, Ellipsis replaced by full slices. None entries stay."""
    key = key if isinstance(key, tuple) else (key,)
    used = sum(_consumed(k) for k in key if k is not None and k is not Ellipsis)
    if used > ndim:
        raise IndexError(f"too many indices for an array of {ndim} axes: {used} were given")
    ellipses = [i for i, k in enumerate(key) if k is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError(f"an index can hold one Ellipsis ('...') only, received {len(ellipses)}")
    at = ellipses[0] if ellipses else len(key)
    return key[:at] + (slice(None),) * (ndim - used) + key[at + 1:]


def _consumed(k: Any) -> int:
    return k.ndim if isinstance(k, torch.Tensor) and k.dtype == torch.bool else 1


def _is_index(part: Any) -> bool:
    """Return True for an integer array without axes of ``mx.np`` or NumPy."""
    try:
        operator.index(part)
    except TypeError:
        return False
    return True


def takes_all(s: slice) -> bool:
    """Return True for ``:``; unlike ``==``, without a comparison of arrays."""
    return s.start is None and s.stop is None and s.step is None


def normalize_slice(s: slice, size: int) -> tuple[int, int, int, int]:
    """Return start, stop and step of a slice on an axis of `size` entries, and the number of entries it selects."""
    for part in (s.start, s.stop, s.step):
        if part is not None and not isinstance(part, integer_types) and not _is_index(part):
            raise IndexError(f"slice entries must be integers or None, received {shortened(part)}")
    start, stop, step = slice(*(None if p is None else int(p) for p in (s.start, s.stop, s.step))).indices(size)
    step = max(-size, min(step, size)) or 1  # which selects the same; torch counts in 64 bits
    return start, stop, step, len(range(start, stop, step))


def side_by_side(slices: Sequence[slice], shape: Sequence[int]) -> bool:
    """Return True if slices, one for each axis, select a contiguous part of the memory of an array of that shape."""
    taken = [normalize_slice(s, size)[2:] for s, size in zip(slices, shape, strict=True)]
    counts = [count for _, count in taken]
    first = next((axis for axis, count in enumerate(counts) if count > 1), len(counts))  # behind it everything must be taken, in order
    return 0 in counts or all(count == 1 or step == 1 for step, count in taken) and counts[first + 1:] == list(shape[first + 1:])


def basic_view(tensor: torch.Tensor, key: Any) -> torch.Tensor:
    """Return the torch view (or, for negative steps, copy) that a basic key selects."""
    out, axis, source_axis = tensor, 0, 0
    for k in expand(key, tensor.dim()):
        if k is None:
            out = out.unsqueeze(axis)
            axis += 1
            continue
        size = tensor.shape[source_axis]
        if isinstance(k, slice):
            if not takes_all(k):
                start, stop, step, count = normalize_slice(k, size)
                if count == 0:
                    out = out.narrow(axis, 0, 0)
                elif step < 0:
                    places = torch.arange(start, stop, step, device=tensor.device)
                    # Torch's index_select has no unsigned integers of more than 8 bits.
                    out = out.index_select(axis, places) if out.dtype.is_signed or out.dtype.itemsize == 1 else out[(_ALL,) * axis + (places,)]
                else:
                    out = out[(slice(None),) * axis + (slice(start, stop, step),)]
            axis += 1
        else:
            out = out.select(axis, check_integer(k, source_axis, size))
        source_axis += 1
    return out


_ALL = slice(None)


def advanced_key(key: Any, shape: Sequence[int], device: torch.device, as_tensor: Callable[[Any], torch.Tensor]) -> tuple[Any, ...]:
    """Return a key for torch's indexing out of one that holds arrays or lists, with indices checked.

    `as_tensor` turns the array types of the caller into tensors.
    """
    items: list[Any] = []
    for k in key if isinstance(key, tuple) else (key,):
        if k is None or k is Ellipsis or isinstance(k, slice) or type(k) is int:
            items.append(k)
        elif isinstance(k, integer_types) and not isinstance(k, (bool, np.bool_)):
            items.append(int(k))
        else:
            t = as_tensor(k)
            items.append(t.to(device) if t.dtype in (torch.bool, torch.int64) else t.to(device, torch.int64))
    out: list[Any] = []
    axis, backward = 0, []
    for k in expand(tuple(items), len(shape)):
        if k is None:
            out.append(None)
            continue
        if isinstance(k, torch.Tensor) and k.dtype == torch.bool:
            if tuple(k.shape) != tuple(shape[axis:axis + k.dim()]):
                raise IndexError(f"boolean index of shape {tuple(k.shape)} does not match axes {tuple(shape[axis:axis + k.dim()])}")
            out.extend(k.nonzero(as_tuple=True))
            axis += k.dim()
            continue
        size = shape[axis]
        if isinstance(k, slice):
            start, stop, step, count = normalize_slice(k, size)
            if step < 0:  # torch has no negative steps: the same entries, counted from the other end
                backward.append(axis)
                start, step = size - 1 - start, -step
                stop = start + count * step
            out.append(slice(start, stop if count else start, step))
        elif isinstance(k, int):
            out.append(check_integer(k, axis, size))
        else:
            if k.numel() and size == 0:
                raise IndexError(f"index arrays cannot select from axis {axis}, which has no entries")
            if k.numel():
                low, high = k.min().item(), k.max().item()
                if low < -size or high >= size:
                    raise IndexError(f"axis {axis} has {size} entries, received index {low if low < -size else high}")
            out.append(k)
        axis += 1
    if backward:
        places = torch.arange(math.prod(shape), device=device).reshape(tuple(shape)).flip(backward)[tuple(out)]
        return torch.unravel_index(places, tuple(shape))
    return tuple(out)
