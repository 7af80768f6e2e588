"""Operators that take elements by their positions."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..builder import INT64
from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value


def _within(on, positions, x, axis, mode):
    """Clip or wrap positions along an axis of `x` to its range."""
    positions = on.cast(positions, INT64)
    size = on.dim(x, axis)
    if mode == "wrap":
        return on.Mod(positions, size if not isinstance(size, int) else on.const(size, INT64))
    last = on.const(size - 1, INT64) if isinstance(size, int) else on.squeeze(on.Sub(size, 1), 0)
    return on.Clip(positions, 0, last)


@exports("take")
def take(on: Builder, x: Value, indices: Value, *, axis: int | None, mode: str) -> Value:
    """Write Gather; in mode ``raise`` the runtime checks that the positions are inside."""
    axis %= x.ndim
    positions = on.cast(indices, INT64) if mode == "raise" else _within(on, indices, x, axis, mode)
    return on.Gather(x, positions, axis=axis)


@exports("pick")
def pick(on: Builder, x: Value, index: Value, *, axis: int | None, keepdims: bool, mode: str) -> Value:
    axis %= x.ndim
    positions = _within(on, index, x, axis, mode)
    if index.ndim < x.ndim:
        positions = on.unsqueeze(positions, axis)
    out = on.GatherElements(x, positions, axis=axis)
    return out if keepdims else on.squeeze(out, axis)


@exports("gather_nd")
def gather_nd(on: Builder, x: Value, indices: Value) -> Value:
    return on.GatherND(x, on.transpose(on.cast(indices, INT64), (*range(1, indices.ndim), 0)))


@exports("one_hot", ignores=("dtype",))
def one_hot(on: Builder, indices: Value, *, depth: int, on_value: float, off_value: float) -> Value:
    """Write OneHot, with no hot value for positions outside of the depth; ONNX would count negative ones from the end."""
    positions = on.cast(indices, INT64)
    positions = on.Where(on.Less(positions, 0), on.const(depth, INT64), positions)
    values = on.const([off_value, on_value], np.int64 if on.dtype == np.int64 else np.float32)
    return on.OneHot(positions, on.const(depth, INT64), values, axis=-1, dtype=values.dtype)
