"""Cumulative products along an axis, and scattering with a reduction."""
from typing import Literal

import torch

from ..base import MXNetError
from .axes import normalize_axis
from .bounds import within
from .registry import op
from .shapes import known, unify

_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@op("_contrib_cumprod", complete_rule="shape", result_type="data", amp=None)
def cumprod(data, *, axis: int = 0):
    """Products of each element and all before it along an axis, in the type of `data`.

    Raises
    ------
    MXNetError
        If there is no such axis.

    Example
    -------
    >>> mx.nd.contrib.cumprod(mx.nd.array([[1, 2, 3], [4, 5, 6]]), axis=1).asnumpy()
    array([[  1.,   2.,   6.],
           [  4.,  20., 120.]], dtype=float32)
    """
    axis = normalize_axis("_contrib_cumprod", axis, data.dim())
    return data.cumprod(axis, dtype=data.dtype)


@cumprod.shape_rule
def _(in_shapes, out_shapes, *, axis):
    shape = unify(in_shapes[0], out_shapes[0])
    if shape is not None:
        normalize_axis("_contrib_cumprod", axis, len(shape))
    return [shape], [shape]


@op("_contrib_scatter_reduce", complete_rule="shape", amp=None)
def scatter_reduce(data, indices, updates, *, axis: int = 0, reduction: Literal["none", "add", "mul", "max", "min"] = "none"):
    """`data` with elements replaced by, or joined with, those of `updates`, whose places along an axis are `indices`.

    `indices` and `updates` have one shape, which along all other axes is not larger than that of `data`. Indices below 0 count from the end.

    Raises
    ------
    MXNetError
        If the shapes do not fit, or an index is outside of the axis.

    Example
    -------
    >>> x, at, new = mx.nd.array([[1, 2, 3]]), mx.nd.array([[0, 0]], dtype='int64'), mx.nd.array([[4, 5]])
    >>> mx.nd.contrib.scatter_reduce(x, at, new, axis=1, reduction='mul').asnumpy()
    array([[20.,  2.,  3.]], dtype=float32)
    """
    axis = _scattered_axis(axis, data.shape, indices.shape, updates.shape)
    places = indices.long()
    size = data.shape[axis]
    (places,) = within("_contrib_scatter_reduce", [places], [size])
    places = torch.where(places < 0, places + size, places)
    if reduction == "none":
        return data.scatter(axis, places, updates.to(data.dtype))
    if data.dtype is torch.bool and reduction in ("max", "min"):
        return data.to(torch.uint8).scatter_reduce(axis, places, updates.to(torch.uint8), _REDUCTIONS[reduction]).bool()
    return data.scatter_reduce(axis, places, updates.to(data.dtype), _REDUCTIONS[reduction])


def _scattered_axis(axis, data, indices, updates):
    """The axis counted from the front, if the shapes fit."""
    axis = normalize_axis("_contrib_scatter_reduce", axis, len(data))
    if indices != updates or len(indices) != len(data) or any(i != axis and n > m for i, (n, m) in enumerate(zip(indices, data))):
        raise MXNetError(f"_contrib_scatter_reduce: `indices` and `updates` must have one shape, not larger than that of `data` but along axis "
                         f"{axis}; received {tuple(data)}, {tuple(indices)} and {tuple(updates)}")
    return axis


@scatter_reduce.shape_rule
def _(in_shapes, out_shapes, *, axis, reduction):
    data = unify(in_shapes[0], out_shapes[0])
    both = unify(in_shapes[1], in_shapes[2])
    if known(data) and known(both):
        _scattered_axis(axis, data, both, both)
    return [data, both, both], [data]


@scatter_reduce.dtype_rule
def _(in_types, out_types, *, axis, reduction):
    first = in_types[0] or out_types[0] or in_types[2]
    return [first, in_types[1] or torch.int64, in_types[2] or first], [first]
