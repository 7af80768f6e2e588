"""Shapes and the order of axes, arrays joined, cut and repeated."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np

from ...builder import Unsupported
from ...registry import exports
from ..shape import LAST, reshape_sizes, split_at

if TYPE_CHECKING:
    from ...builder import Builder, Value

# `_npx_reshape`'s numbers for the codes of `Reshape`; -3 omits an axis of size 1.
_CODES = {-2: 0, -4: -2, -5: -3, -6: -4}


@exports("_np_reshape", "_npx_reshape", ignores=("order",))
def reshape(on: Builder, x: Value, *, newshape: Any, reverse: Any = False, operator: str) -> Value:
    shape = on.shape
    if shape is not None and shape.count(None) <= 1 and 0 not in shape:
        return on.reshape(x, [-1 if size is None else size for size in shape])
    codes = [newshape] if isinstance(newshape, int) else list(newshape)
    if operator == "_np_reshape" or reverse or -3 in codes:
        raise Unsupported(f"a reshape to {newshape}, of which several sizes may vary; npx.reshape has codes for that: -2 keeps a size, -5 joins two")
    return on.reshape(x, reshape_sizes(on, on.dims(x), [_CODES.get(code, code) for code in codes]))


@exports("_np_transpose")
def transpose(on: Builder, x: Value, *, axes: Any) -> Value:
    return on.transpose(x, [a % x.ndim for a in axes or ()] or list(range(x.ndim))[::-1])


@exports("_np_moveaxis")
def moveaxis(on: Builder, x: Value, *, source: Any, destination: Any) -> Value:
    pairs = [[a % x.ndim for a in ([axes] if isinstance(axes, int) else axes)] for axes in (source, destination)]
    order = [a for a in range(x.ndim) if a not in pairs[0]]
    for place, axis in sorted(zip(*pairs[::-1])):
        order.insert(place, axis)
    return on.transpose(x, order)


@exports("_np_squeeze")
def squeeze(on: Builder, x: Value, *, axis: Any) -> Value:
    axes = [i for i, s in enumerate(x.shape) if s == 1] if axis is None else [a % x.ndim for a in ([axis] if isinstance(axis, int) else axis)]
    return on.squeeze(x, *axes) if axes else x


@exports("_np_atleast_1d", "_np_atleast_2d", "_np_atleast_3d", ignores=("num_args",))
def atleast(on: Builder, *values: Value, operator: str) -> Any:
    return [on.reshape(x, [-1 if s is None else s for s in out.shape]) if x.ndim < int(operator[-2]) else x for x, out in zip(values, on.out)]


def _joined(on, values, axis):
    return on.concat([on.cast(x, on.dtype) for x in values], axis)


@exports("_npi_concatenate", ignores=("num_args", "dim"))
def concatenate(on: Builder, *values: Value, axis: int | None) -> Value:
    if axis is None:
        return _joined(on, [on.reshape(x, [-1]) for x in values], 0)
    return _joined(on, values, axis % values[0].ndim)


@exports("_npi_vstack", "_npi_hstack", "_npi_dstack", "_npi_column_stack", ignores=("num_args", "dim"))
def stacked(on: Builder, *values: Value, operator: str) -> Value:
    least = {"_npi_vstack": 2, "_npi_hstack": 1, "_npi_dstack": 3, "_npi_column_stack": 2}[operator]
    made = []
    for x in values:
        if operator == "_npi_column_stack" and x.ndim == 1:
            x = on.unsqueeze(x, 1)
        elif operator == "_npi_dstack" and x.ndim == 2:
            x = on.unsqueeze(x, 2)
        elif operator == "_npi_dstack" and x.ndim < 2:
            x = on.unsqueeze(on.reshape(x, [1, -1]), 2)
        elif x.ndim < least:
            x = on.reshape(x, [1] * (least - x.ndim) + [-1] * x.ndim)
        made.append(x)
    axis = {"_npi_vstack": 0, "_npi_dstack": 2, "_npi_column_stack": 1}.get(operator)
    return _joined(on, made, min(1, max(values[0].ndim, 1) - 1) if axis is None else axis)


@exports("_npi_hsplit", "_npi_dsplit", ignores=("axis",))
def split(on: Builder, x: Value, *, indices: Any, squeeze_axis: bool, sections: int, operator: str) -> list[Value]:
    axis = 2 if operator == "_npi_dsplit" else min(1, x.ndim - 1)
    size = x.shape[axis]
    if size is None:
        raise Unsupported(f"axis {axis}, which is split, has a size that may vary")
    sizes = [size // sections] * sections if sections else np.diff([*indices, size]).tolist()
    return split_at(on, x, sizes, axis, squeeze_axis)


@exports("_npi_broadcast_to")
def broadcast_to(on: Builder, x: Value, *, shape: Any) -> Value:
    if None not in on.shape:
        return on.Expand(x, on.sizes(on.shape))
    front = len(shape) - x.ndim
    return on.Expand(x, on.sizes([on.dim(x, i - front) if n == -2 else n for i, n in enumerate(shape)]))


@exports("_npi_flip")
def flip(on: Builder, x: Value, *, axis: Any) -> Value:
    axes = list(range(x.ndim)) if axis is None else [a % x.ndim for a in ([axis] if isinstance(axis, int) else axis)]
    return on.Slice(x, [LAST] * len(axes), [-LAST] * len(axes), axes, [-1] * len(axes))


@exports("_np_roll")
def roll(on: Builder, x: Value, *, shift: Any, axis: Any) -> Value:
    flat = axis is None
    data = on.reshape(x, [-1]) if flat else x
    axes = [0] if flat else [a % x.ndim for a in ([axis] if isinstance(axis, int) else axis)]
    shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    for along, by in zip(axes, shifts * (len(axes) // max(len(shifts), 1)) if len(shifts) == 1 else shifts):
        size = int(np.prod(x.shape)) if flat and x.fixed else data.shape[along] if data.shape is not None else None
        if size is None:
            raise Unsupported("roll along an axis whose size may vary")
        cut = -by % size if size else 0
        if cut:
            shape = data.shape
            data = on.Concat(on.slice(data, cut, LAST, along), on.slice(data, 0, cut, along), axis=along, out_shape=shape)
    return on.reshape(data, on.dims(x)) if flat else data


@exports("_npi_pad", ignores=("reflect_type",))
def pad(on: Builder, x: Value, *, pad_width: Any, mode: str, constant_value: float) -> Value:
    if mode not in ("constant", "edge", "reflect"):
        raise Unsupported(f"mode={mode!r}; there are constant, edge and reflect")
    before, behind = np.asarray(ast.literal_eval(pad_width)).reshape(-1, 2).T.tolist()
    return on.Pad(x, [*before, *behind], on.const(constant_value, x.dtype) if mode == "constant" else None, mode=mode)


@exports("_npi_tril")
def tril(on: Builder, x: Value, *, k: int) -> Value:
    sizes = x.shape[-2:]
    if x.ndim < 2 or None in sizes:
        raise Unsupported("the triangle of a matrix whose sizes may vary, or of a vector")
    return on.Where(on.const(np.tri(*sizes, k, dtype=bool), bool), x, on.const(0, x.dtype))
