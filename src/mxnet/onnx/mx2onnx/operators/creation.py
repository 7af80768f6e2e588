"""Operators that create arrays, with a given shape or that of another array."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..builder import INT64, Unsupported
from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value

_LIKE = {"zeros_like": 0, "ones_like": 1}
_FILLED = {"_zeros": 0, "_ones": 1}


def fill(on: Builder, sizes: Value, value: Any) -> Value:
    return on.fill(sizes, value, on.dtype, on.shape)


def fixed_shape(on: Builder) -> Value:
    if None in on.shape:
        raise Unsupported("its size follows from an input's that may vary; pass the array as an input of the network instead")
    return on.shape


@exports("_zeros", "_ones", "_full", "_zeros_without_dtype", ignores=("shape", "dtype", "device"))
def filled(on: Builder, *, value: Any = None, operator: str) -> Value:
    return fill(on, on.sizes(fixed_shape(on)), _FILLED.get(operator, 0) if value is None else value)


@exports("zeros_like", "ones_like", ignores=("dtype",))
def like(on: Builder, x: Value, *, operator: str) -> Value:
    return fill(on, on.sizes(on.dims(x)), _LIKE[operator])


def _ramp(count, start, step, repeat, dtype):
    """Return ``start, start + step, ...``, each `repeat` times; integers in integer steps."""
    if dtype.kind in "iu":
        start, step = int(start), int(step)
    return (start + np.arange(count) // repeat * step).astype(dtype)


@exports("_arange", ignores=("dtype", "device"))
def arange(on: Builder, *, start: float, stop: Any, step: float, repeat: int, infer_range: bool) -> Value:
    """Write the values as a constant; without `stop` they end before `start`, unless the length is inferred (`infer_range`)."""
    return on.const(_ramp(fixed_shape(on)[0], start if stop is not None or infer_range else 0, step, repeat, on.dtype), on.dtype)


@exports("_contrib_arange_like")
def arange_like(on: Builder, x: Value, *, start: float, step: float, repeat: int, axis: int | None) -> Value:
    if x.fixed:
        count = x.shape[axis] if axis is not None else int(np.prod(x.shape))
        values = _ramp(count, start, step, repeat, x.dtype)
        return on.const(values if axis is not None else values.reshape(x.shape), x.dtype)
    count = on.unsqueeze(on.Size(x, dtype=INT64), 0) if axis is None else on.sizes([on.dim(x, axis)])
    steps = on.Range(on.const(0, INT64), on.squeeze(count, 0), on.const(1, INT64))
    if repeat != 1:
        steps = on.Div(steps, on.const(repeat, INT64))
    values = on.Add(on.Mul(on.cast(steps, x.dtype), float(step)), float(start))
    return values if axis is not None else on.reshape(values, on.dims(x))


@exports("_eye", ignores=("dtype", "device"))
def eye(on: Builder, *, N: int | None, M: int | None, k: int) -> Value:
    return on.const(np.eye(N, M or N, k), on.dtype)
