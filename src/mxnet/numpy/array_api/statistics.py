"""Functions that reduce axes, and sums along them."""
import builtins
from collections.abc import Callable
from typing import Any

import torch

from ...ops import dtypes
from ...ops.numpy import unsigned
from ..multiarray import ndarray
from .calls import apply, is_integer, require_arrays, to_torch
from .manipulation import axes_of


def sum_type(dtype: Any, given: torch.dtype) -> torch.dtype:
    """Return the type of a sum: that asked for; of integers at least the default one's size."""
    if dtype is not None:
        return to_torch(dtype)
    if given is torch.bool:
        return torch.int64
    if is_integer(given):
        return torch.int64 if given.is_signed else torch.uint64
    return given


def _reduced(name: str, function: Callable, x: ndarray, axis: Any, keepdims: builtins.bool) -> ndarray:
    """Return the result of ``function(tensor, axis, keepdim)`` over one axis, into which those that are reduced are joined."""
    require_arrays(name, x)
    axes = axes_of(name, axis, x.ndim)
    other_axes = [i for i in range(x.ndim) if i not in axes]
    shape = [x.shape[i] for i in other_axes]
    count = 1
    for i in axes:
        count *= x.shape[i]
    final = [1 if i in axes else x.shape[i] for i in range(x.ndim)] if keepdims else shape
    return apply(name, lambda t: function(t.permute([*other_axes, *axes]).reshape([*shape, count])).reshape(final), x)


def sum(x: ndarray, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """Return the sum over axes; that of integers has 64 bits."""
    require_arrays("sum", x)
    target = sum_type(dtype, x._data.dtype)
    return _reduced("sum", lambda t: unsigned.by_bits(lambda s: torch.sum(s, -1, dtype=s.dtype), t.to(target)), x, axis, keepdims)


def prod(x: ndarray, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """Return the product over axes; that of integers has 64 bits."""
    require_arrays("prod", x)
    target = sum_type(dtype, x._data.dtype)
    return _reduced("prod", lambda t: unsigned.by_bits(lambda s: torch.prod(s, -1, dtype=s.dtype), t.to(target)), x, axis, keepdims)


def _require_floating(name: str, x: ndarray, compound: builtins.bool = False) -> None:
    require_arrays(name, x)
    dtype = x._data.dtype
    if not (dtype.is_floating_point or compound and dtype.is_complex):
        raise TypeError(f"{name}: floating-point numbers expected, received {dtypes.name_of(dtype)}; convert with astype")


def mean(x: ndarray, /, *, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """Return the mean over axes, of floating-point numbers."""
    _require_floating("mean", x, True)
    return _reduced("mean", lambda t: torch.mean(t, -1), x, axis, keepdims)


def _variance(t: torch.Tensor, correction: float) -> torch.Tensor:
    return torch.sum((t - torch.mean(t, -1, keepdim=True)).square(), -1) / (t.shape[-1] - correction)


def var(x: ndarray, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False) -> ndarray:
    """Return the variance over axes: the sum of squared distances from the mean, divided by the count less `correction`."""
    _require_floating("var", x)
    return _reduced("var", lambda t: _variance(t, correction), x, axis, keepdims)


def std(x: ndarray, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False) -> ndarray:
    """Return the root of `var`."""
    _require_floating("std", x)
    return _reduced("std", lambda t: torch.sqrt(_variance(t, correction)), x, axis, keepdims)


def max(x: ndarray, /, *, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """Return the largest value over axes; not a number if one is not."""
    return _reduced("max", lambda t: unsigned.by_order(lambda s: torch.amax(s, -1), t), x, axis, keepdims)


def min(x: ndarray, /, *, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """Return the smallest value over axes; not a number if one is not."""
    return _reduced("min", lambda t: unsigned.by_order(lambda s: torch.amin(s, -1), t), x, axis, keepdims)


def all(x: ndarray, /, *, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """Return True where all elements over the axes are other than 0."""
    return _reduced("all", lambda t: torch.all(t != 0, -1), x, axis, keepdims)


def any(x: ndarray, /, *, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """Return True where an element over the axes is other than 0."""
    return _reduced("any", lambda t: torch.any(t != 0, -1), x, axis, keepdims)


def count_nonzero(x: ndarray, /, *, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """Return how many elements over the axes are other than 0, as int64."""
    return _reduced("count_nonzero", lambda t: torch.sum(t != 0, -1), x, axis, keepdims)


def _cumulative(name: str, function: Callable, first: int, x: ndarray, axis: int | None, dtype: Any, include_initial: builtins.bool) -> ndarray:
    require_arrays(name, x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{name}: an axis expected for an array of {x.ndim} axes, received None")
        axis = 0
    target = sum_type(dtype, x._data.dtype)

    def accumulated(t: torch.Tensor) -> torch.Tensor:
        out = unsigned.by_bits(lambda s: function(s, axis, dtype=s.dtype), t.to(target))
        if not include_initial:
            return out
        shape = list(out.shape)
        shape[axis] = 1
        return torch.cat([torch.full(shape, first, dtype=target, device=out.device), out], axis)

    return apply(name, accumulated, x)


def cumulative_sum(x: ndarray, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False) -> ndarray:
    """Return the sums of the elements up to each one along `axis`, behind a 0 if `include_initial`.

    Raises
    ------
    ValueError
        If `axis` is None and `x` has several axes.
    """
    return _cumulative("cumulative_sum", torch.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: ndarray, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False) -> ndarray:
    """Return the products of the elements up to each one along `axis`, behind a 1 if `include_initial`.

    Raises
    ------
    ValueError
        If `axis` is None and `x` has several axes.
    """
    return _cumulative("cumulative_prod", torch.cumprod, 1, x, axis, dtype, include_initial)


def diff(x: ndarray, /, *, axis: int = -1, n: int = 1, prepend: ndarray | None = None, append: ndarray | None = None) -> ndarray:
    """Return the differences between neighbours along `axis`, taken `n` times, of `x` between `prepend` and `append`."""
    arrays = [a for a in (prepend, x, append) if a is not None]

    def differences(*tensors: torch.Tensor) -> torch.Tensor:
        t = torch.cat([s.to(x._data.dtype) for s in tensors], axis) if len(tensors) > 1 else tensors[0]
        for _ in range(n):
            t = _difference(t, axis)
        return t.clone() if not n else t

    return apply("diff", differences, *arrays)


def _difference(t: torch.Tensor, axis: int) -> torch.Tensor:
    size = t.shape[axis]
    if size < 1:
        return t
    later, earlier = t.narrow(axis, 1, size - 1), t.narrow(axis, 0, size - 1)
    return later ^ earlier if t.dtype is torch.bool else unsigned.by_bits(torch.sub, later, earlier)
