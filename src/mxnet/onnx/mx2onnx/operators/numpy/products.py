"""Products of matrices and sums of products."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...builder import Unsupported
from ...registry import exports

if TYPE_CHECKING:
    from ...builder import Builder, Value


@exports("_npi_matmul")
def matmul(on: Builder, a: Value, b: Value) -> Value:
    return on.MatMul(on.cast(a, on.dtype), on.cast(b, on.dtype))


def _summed(on, a, b, left, right):
    """Contract two values over the axes `left` and `right`."""
    a, b = on.cast(a, on.dtype), on.cast(b, on.dtype)
    rest = [i for i in range(a.ndim) if i not in left], [i for i in range(b.ndim) if i not in right]
    shared = math.prod(a.shape[i] or 0 for i in left)
    if not shared:
        raise Unsupported("sums over axes whose size may vary, or is 0")
    dims = [on.dim(a, i) for i in rest[0]] + [on.dim(b, i) for i in rest[1]]
    rows = on.reshape(on.transpose(a, [*rest[0], *left]), [-1, shared])
    columns = on.reshape(on.transpose(b, [*right, *rest[1]]), [shared, -1])
    return on.reshape(on.MatMul(rows, columns), dims)


@exports("_np_dot")
def dot(on: Builder, a: Value, b: Value) -> Value:
    """Contract the last axis of one and the last but one axis of the other."""
    if not a.ndim or not b.ndim:
        return on.Mul(on.cast(a, on.dtype), on.cast(b, on.dtype))
    if max(a.ndim, b.ndim) <= 2:
        return matmul(on, a, b)
    return _summed(on, a, b, [a.ndim - 1], [max(b.ndim - 2, 0)])


@exports("_npi_tensordot")
def tensordot(on: Builder, a: Value, b: Value, *, a_axes_summed: Any, b_axes_summed: Any) -> Value:
    return _summed(on, a, b, [i % a.ndim for i in a_axes_summed], [i % b.ndim for i in b_axes_summed])


@exports("_npi_tensordot_int_axes")
def tensordot_of_last(on: Builder, a: Value, b: Value, *, axes: Any) -> Value:
    return _summed(on, a, b, list(range(a.ndim - axes, a.ndim)), list(range(axes)))


@exports("_npi_einsum", ignores=("num_args", "optimize"))
def einsum(on: Builder, *values: Value, subscripts: str) -> Value:
    return on.Einsum(*(on.cast(x, on.dtype) for x in values), equation=subscripts.replace(" ", ""))
