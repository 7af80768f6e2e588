"""Reductions over axes."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..builder import INT64
from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value

_KINDS = {"max": "ReduceMax", "min": "ReduceMin", "mean": "ReduceMean", "prod": "ReduceProd", "max_axis": "ReduceMax", "min_axis": "ReduceMin"}


def _axes(x, axis, exclude=False):
    """Return the reduced axes, counted from the front."""
    if axis in (None, ()):
        return [] if exclude and axis is None else list(range(x.ndim))
    named = [a % x.ndim for a in ([axis] if isinstance(axis, int) else axis)]
    return [a for a in range(x.ndim) if a not in named] if exclude else sorted(named)


def _shaped(on, out, axes, x, keepdims):
    """Reshape the result: a reduction over all axes is a vector of one element in MXNet."""
    return on.reshape(out, [1]) if len(axes) == x.ndim and not keepdims else out


@exports(*_KINDS, "sum", "sum_axis", "_square_sum")
def reduction(on: Builder, x: Value, *, axis: Any, keepdims: bool, exclude: bool, operator: str) -> Value:
    axes = _axes(x, axis, exclude)
    if not axes:
        return x
    if x.dtype == bool:
        x = on.cast(x, "int32")
    if operator in _KINDS:
        out = getattr(on, _KINDS[operator])(x, axes=axes, keepdims=int(keepdims))
    else:
        out = on.sum(on.Mul(x, x) if operator == "_square_sum" else x, axes, keepdims)
    return _shaped(on, out, axes, x, keepdims)


@exports("norm", ignores=("out_dtype",))
def norm(on: Builder, x: Value, *, ord: Any, axis: Any, keepdims: bool) -> Value:
    axes = _axes(x, axis)
    out = (on.ReduceL1 if ord == 1 else on.ReduceL2)(on.cast(x, on.dtype), axes=axes, keepdims=int(keepdims))
    return _shaped(on, out, axes, x, keepdims)


@exports("argmax", "argmin")
def arg_extreme(on: Builder, x: Value, *, axis: int | None, keepdims: bool, operator: str) -> Value:
    kind = on.ArgMax if operator == "argmax" else on.ArgMin
    if axis is None:
        return on.reshape(kind(on.reshape(x, [-1]), axis=0, keepdims=1), [1] * (x.ndim if keepdims else 1))
    return _shaped(on, kind(x, axis=axis % x.ndim, keepdims=int(keepdims)), [axis], x, keepdims)


@exports("argmax_channel")
def argmax_channel(on: Builder, x: Value) -> Value:
    return on.ArgMax(x, axis=1, keepdims=0)


@exports("moments", ignores=("num_outputs",))
def moments(on: Builder, x: Value, *, axes: Any, keepdims: bool) -> list[Value]:
    axes = _axes(x, axes)
    mean = on.ReduceMean(x, axes=axes, keepdims=1)
    apart = on.Sub(x, mean)
    variance = on.ReduceMean(on.Mul(apart, apart), axes=axes, keepdims=int(keepdims))
    mean = mean if keepdims else on.squeeze(mean, *axes)
    return [_shaped(on, mean, axes, x, keepdims), _shaped(on, variance, axes, x, keepdims)]


@exports("_np_cumsum", "cumsum", ignores=("dtype",))
def cumsum(on: Builder, x: Value, *, axis: int | None) -> Value:
    x = on.cast(x, on.dtype)
    if axis is None:
        x, axis = on.reshape(x, [-1]), 0
    return on.CumSum(x, on.const(axis, INT64))
