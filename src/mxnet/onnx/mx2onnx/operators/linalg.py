"""Products of matrices."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..builder import Unsupported
from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value


def last_two_swapped(on: Builder, x: Value) -> Value:
    return on.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@exports("dot", ignores=("forward_stype",))
def dot(on: Builder, lhs: Value, rhs: Value, *, transpose_a: bool, transpose_b: bool) -> Value:
    """Contract the last axis of one and the first axis of the other, for any number of axes."""
    if transpose_a and lhs.ndim > 1:
        lhs = on.transpose(lhs, (*range(1, lhs.ndim), 0))
    if transpose_b and rhs.ndim > 1:
        rhs = on.transpose(rhs, (rhs.ndim - 1, *range(rhs.ndim - 1)))
    if lhs.ndim <= 2 and rhs.ndim <= 2:
        out = on.MatMul(lhs, rhs)
        return on.reshape(out, [1]) if lhs.ndim == rhs.ndim == 1 else out
    left, right = on.dims(lhs)[:-1], on.dims(rhs)[1:]
    shared = on.dim(lhs, lhs.ndim - 1)
    out = on.MatMul(on.reshape(lhs, [-1, shared]), on.reshape(rhs, [shared, -1]))
    return on.reshape(out, (left + right) or [1])


@exports("batch_dot", ignores=("forward_stype",))
def batch_dot(on: Builder, lhs: Value, rhs: Value, *, transpose_a: bool, transpose_b: bool) -> Value:
    return on.MatMul(last_two_swapped(on, lhs) if transpose_a else lhs, last_two_swapped(on, rhs) if transpose_b else rhs)


@exports("_linalg_gemm2", "_linalg_gemm")
def gemm(on: Builder, lhs: Value, rhs: Value, added: Value | None = None, *, transpose_a: bool, transpose_b: bool, alpha: float, axis: int | None,
         beta: float = 1.0) -> Value:
    if axis not in (-2, lhs.ndim - 2):
        raise Unsupported(f"the rows of the matrices are expected on axis -2, received axis={axis}")
    out = on.MatMul(last_two_swapped(on, lhs) if transpose_a else lhs, last_two_swapped(on, rhs) if transpose_b else rhs)
    if alpha != 1:
        out = on.Mul(out, float(alpha))
    return out if added is None else on.Add(out, added if beta == 1 else on.Mul(added, float(beta)))
