"""Reductions; over all axes the result is an array without axes."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...builder import Unsupported
from ...registry import exports

if TYPE_CHECKING:
    from ...builder import Builder, Value

_KINDS = {"_np_max": "ReduceMax", "_np_min": "ReduceMin", "_npi_mean": "ReduceMean", "_np_prod": "ReduceProd"}


def axes_of(x: Value, axis: Any) -> list[int]:
    """Return the reduced axes, counted from the front."""
    if axis is None:
        return list(range(x.ndim))
    return sorted(a % x.ndim for a in ([axis] if isinstance(axis, int) else axis))


@exports("_np_sum", "_np_max", "_np_min", "_npi_mean", "_np_prod", ignores=("dtype",))
def reduction(on: Builder, x: Value, *, axis: Any, keepdims: bool, initial: Any, operator: str) -> Value:
    if initial is not None:
        raise Unsupported(f"initial={initial}; add or compare it afterwards")
    axes, x = axes_of(x, axis), on.cast(x, on.dtype)
    if not axes:
        return x
    if operator == "_np_sum":
        return on.sum(x, axes, keepdims)
    return getattr(on, _KINDS[operator])(x, axes=axes, keepdims=int(keepdims))


@exports("_npi_var", "_npi_std", ignores=("dtype",))
def spread(on: Builder, x: Value, *, axis: Any, ddof: int, keepdims: bool, operator: str) -> Value:
    axes, x = axes_of(x, axis), on.cast(x, on.dtype)
    apart = on.Sub(x, on.ReduceMean(x, axes=axes, keepdims=1))
    variance = on.ReduceMean(on.Mul(apart, apart), axes=axes, keepdims=int(keepdims))
    if ddof:
        sizes = [x.shape[a] for a in axes]
        if None in sizes:
            raise Unsupported(f"ddof={ddof} over an axis whose size may vary")
        count = math.prod(sizes)
        variance = on.Mul(variance, count / (count - ddof))
    return on.Sqrt(variance) if operator == "_npi_std" else variance


@exports("_np_any", "_np_all")
def truth(on: Builder, x: Value, *, axis: Any, keepdims: bool, operator: str) -> Value:
    axes = axes_of(x, axis)
    number = on.cast(on.cast(x, bool), np.int32)
    result = (on.ReduceMax if operator == "_np_any" else on.ReduceMin)(number, axes=axes, keepdims=int(keepdims))
    return on.cast(result, bool)


@exports("_npi_argmax", "_npi_argmin")
def place(on: Builder, x: Value, *, axis: int | None, keepdims: bool, operator: str) -> Value:
    kind = on.ArgMax if operator == "_npi_argmax" else on.ArgMin
    if axis is not None:
        return kind(x, axis=axis % x.ndim, keepdims=int(keepdims))
    index = kind(on.reshape(x, [-1]), axis=0, keepdims=0)
    return on.reshape(index, [1] * x.ndim) if keepdims else index


@exports("_npi_norm")
def norm(on: Builder, x: Value, *, ord: Any, axis: Any, flag: int, keepdims: bool) -> Value:
    axes, x = axes_of(x, axis if axis is not None or flag == -2 or x.ndim < 2 else (-2, -1)), on.cast(x, on.dtype)
    if flag in (-2, 1) or len(axes) == 1 and flag == -1 and ord == 2:
        return on.ReduceL2(x, axes=axes, keepdims=int(keepdims))
    if len(axes) == 1 and flag == -1 and ord == 1:
        return on.ReduceL1(x, axes=axes, keepdims=int(keepdims))
    raise Unsupported(f"the norm with ord={ord} over {len(axes)} axes; there are those of vectors with 1 and 2, and the root of the sum of squares")
