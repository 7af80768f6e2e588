"""Reductions along axes: sums, means, largest and smallest elements, and their places."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ... import symbol as sym
from ...symbol import Symbol
from .registry import converts
from .values import Call, Value


def _axes(data: Value, axes: Any) -> tuple[int, ...]:
    """The axes, counted from the front; all of them if none is given."""
    rank = len(data.shape)
    given = [axes] if isinstance(axes, int) else list(axes or ())
    return tuple(a % rank for a in given) if given else tuple(range(rank))


def _reduce(names: tuple[str, ...], function: Callable[..., Symbol]) -> None:
    @converts(*names)
    def convert(call: Call, data: Value, axes: Any = None, keepdim: bool = False, *rest: Any) -> Value:
        if not isinstance(keepdim, bool):  # of the overload without axes that is the type
            keepdim = False
        if isinstance(axes, torch.dtype):
            axes = None
        return call.value(function(call.cast(data, call.stored), axis=_axes(data, axes), keepdims=keepdim))


_reduce(("sum", ), sym.sum)
_reduce(("mean", ), sym.mean)
_reduce(("amax", "max.default"), sym.max)
_reduce(("amin", "min.default"), sym.min)
_reduce(("prod", ), sym.prod)


@converts("any", "all")
def any_or_all(call: Call, data: Value, axes: Any = None, keepdim: bool = False) -> Value:
    function = sym.max if call.target._schema.name == "aten::any" else sym.min
    return call.value(function(call.cast(data, torch.float32) != 0, axis=_axes(data, axes), keepdims=keepdim), torch.float32)


@converts("max.dim", "min.dim")
def max_along(call: Call, data: Value, axis: int, keepdim: bool = False) -> list[Value]:
    largest = call.target._schema.name == "aten::max"
    values = (sym.max if largest else sym.min)(data.symbol, axis=axis, keepdims=keepdim)
    places = (sym.argmax if largest else sym.argmin)(data.symbol, axis=axis, keepdims=keepdim)
    return [call.value(values, data.dtype), Value(call.shape, torch.int64, sym.Cast(places, dtype="int64"))]


@converts("argmax", "argmin")
def argmax(call: Call, data: Value, axis: int | None = None, keepdim: bool = False) -> Value:
    function = sym.argmax if call.target._schema.name == "aten::argmax" else sym.argmin
    symbol = data.symbol if axis is not None else sym.reshape(data.symbol, shape=(-1,))
    return call.value(sym.Cast(function(symbol, axis=0 if axis is None else axis, keepdims=keepdim), dtype="int64"))


def _variance(call: Call, data: Value, axes: Any, correction: Any, keepdim: bool) -> Symbol:
    along = _axes(data, axes)
    count = 1
    for size in call.sizes([data.shape[a] for a in along], "the number of elements varies"):
        count *= size
    centered = sym.broadcast_sub(data.symbol, sym.mean(data.symbol, axis=along, keepdims=True))
    correction = 1 if correction is None else correction
    return sym.sum(sym.square(centered), axis=along, keepdims=keepdim) / max(count - float(correction), 0.0)


@converts("var.correction")
def var(call: Call, data: Value, axes: Sequence[int] | None = None, correction: Any = None, keepdim: bool = False) -> Value:
    return call.value(_variance(call, data, axes, correction, keepdim))


@converts("var.dim")
def var_unbiased(call: Call, data: Value, axes: Sequence[int] | None = None, unbiased: bool = True, keepdim: bool = False) -> Value:
    return call.value(_variance(call, data, axes, int(unbiased), keepdim))


@converts("std.correction")
def std(call: Call, data: Value, axes: Sequence[int] | None = None, correction: Any = None, keepdim: bool = False) -> Value:
    return call.value(sym.sqrt(_variance(call, data, axes, correction, keepdim)))


@converts("linalg_vector_norm")
def vector_norm(call: Call, data: Value, order: Any = 2, axes: Any = None, keepdim: bool = False, *rest: Any) -> Value:
    if order not in (1, 2):
        raise call.refuse(f"the order is {order}")
    return call.value(sym.norm(call.cast(data, call.stored), ord=int(order), axis=_axes(data, axes), keepdims=keepdim))


@converts("cumsum")
def cumsum(call: Call, data: Value, axis: int, *rest: Any) -> Value:
    return call.value(sym.cumsum(call.cast(data, call.stored), axis=axis))
