"""Operators that order elements, all by ONNX's TopK."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..builder import INT64
from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value


def _ordered(on, x, axis, count, ascending):
    """Return values and positions of the first `count` (a `dim`, or None for all) along an axis, in a stable order."""
    if axis is None:
        x, axis = on.reshape(x, [-1]), 0
        count = count or on.Shape(x)
    axis %= x.ndim if x.shape is not None else 1
    count = count or on.dim(x, axis)
    values = on.cast(x, np.int64) if x.dtype.kind in "iu" else on.cast(x, np.float32) if x.dtype.itemsize == 2 else x
    values, indices = on.TopK(values, on.const([count], INT64) if isinstance(count, int) else count, axis=axis, largest=int(not ascending), sorted=1,
                              outputs=2)
    indices.dtype = INT64
    return on.cast(values, x.dtype), indices, axis


@exports("topk", ignores=("dtype",))
def topk(on: Builder, x: Value, *, axis: int | None, k: int, ret_typ: str, is_ascend: bool) -> Any:
    values, indices, along = _ordered(on, x, axis, k if k > 0 else None, is_ascend)
    if ret_typ == "mask":
        flat = on.reshape(x, [-1]) if axis is None else x
        zeros = on.ConstantOfShape(on.Shape(flat), value=np.zeros(1, np.float32), dtype=np.float32)
        ones = on.ConstantOfShape(on.Shape(indices), value=np.ones(1, np.float32), dtype=np.float32)
        return on.reshape(on.ScatterElements(zeros, indices, ones, axis=along), on.dims(x))
    return {"both": [values, indices], "value": values, "indices": indices}[ret_typ]


@exports("argsort", ignores=("dtype",))
def argsort(on: Builder, x: Value, *, axis: int | None, is_ascend: bool) -> Value:
    return _ordered(on, x, axis, None, is_ascend)[1]


@exports("sort")
def sort(on: Builder, x: Value, *, axis: int | None, is_ascend: bool) -> Value:
    return _ordered(on, x, axis, None, is_ascend)[0]
