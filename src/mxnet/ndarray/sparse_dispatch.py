"""Operators on sparse arrays: those that stay sparse, and the announced way back to dense for all others."""
import logging
import os
import warnings

import torch

from ..base import MXNetError
from ..ops.registry import get
from . import dispatch
from .ndarray import NDArray
from .sparse import CSRNDArray, RowSparseNDArray, cast_storage

_log = logging.getLogger("mxnet")
# Torch says of its csr layout that it is in beta; what is used of it here is tested.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
_KERNELS = {}
_announced = set()


def kernel(*names):
    """Register a function over arrays for operators: it returns NotImplemented where it does not apply."""
    def register(fn):
        for n in names:
            _KERNELS[get(n)] = fn
        return fn
    return register


def invoke_sparse(op, arrays, attrs, out, cls):
    """Call an operator of which an input is sparse.

    Where no sparse form applies the inputs are converted to dense, and that is said once for each operator, as MXNet does;
    ``MXNET_STORAGE_FALLBACK_LOG_VERBOSE=0`` silences it.
    """
    fn = _KERNELS.get(op)
    recording = dispatch.mode.recording and any(a is not None and a._data.requires_grad for a in arrays if a is not None)
    if fn is not None and not (recording and fn not in _DIFFERENTIABLE):
        result = fn(op, arrays, op.parse_cached(attrs))
        if result is not NotImplemented:
            return result if out is None else _write(out, result)
    _announce(op, arrays)
    dense = [_densified(a) for a in arrays]
    if out is not None and not isinstance(out, (list, tuple)) and out._is_sparse:
        out._set_values(dispatch.invoke(op, dense, attrs, None, NDArray)._raw())
        result = out
    else:
        result = dispatch.invoke(op, dense, attrs, out, cls if not getattr(cls, "_is_sparse", False) else NDArray)
    for i in op.mutated_indices:
        if i < len(arrays) and arrays[i] is not None and arrays[i]._is_sparse:
            arrays[i]._set_values(dense[i]._raw())
    return result


def _densified(a):
    if a is None or not a._is_sparse:
        return a
    out = NDArray._new(a._data, a._ctx)
    out._autograd = a._autograd
    return out


def _write(out, result):
    if isinstance(out, (list, tuple)):
        out = out[0]
    result.copyto(out) if result is not out else None
    return out


def _announce(op, arrays):
    if op in _announced or os.environ.get("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "1") == "0":
        return
    _announced.add(op)
    _log.warning("%s has no sparse form for inputs stored as %s: they are converted to dense. "
                 "Set MXNET_STORAGE_FALLBACK_LOG_VERBOSE=0 to silence this.", op.name, [a.stype for a in arrays if a is not None])


# f(0) = 0: only the stored values need computing.
@kernel("abs", "sign", "rint", "ceil", "floor", "trunc", "fix", "square", "sqrt", "cbrt", "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh",
        "arctanh", "expm1", "log1p", "degrees", "radians", "relu", "negative", "_copy", "round", "_mul_scalar", "_div_scalar")
def _on_values(op, arrays, attributes):
    a, = arrays
    return a._make(op.raw(a._values, **attributes), [x.clone() for x in a._aux], a.shape, a._ctx)


@kernel("zeros_like")
def _zeros_like(op, arrays, attributes):
    from .sparse import zeros
    a, = arrays
    return zeros(a.stype, a.shape, ctx=a._ctx, dtype=a.dtype)


@kernel("elemwise_add", "broadcast_add", "elemwise_sub", "broadcast_sub")
def _sum_of_two(op, arrays, attributes):
    a, b = arrays
    if a.shape != b.shape or a.stype != b.stype:
        return NotImplemented
    sign = -1 if op.name.endswith("sub") else 1
    if isinstance(a, RowSparseNDArray):
        rows, inverse = torch.unique(torch.cat([a._aux[0], b._aux[0]]), return_inverse=True)
        values = torch.zeros((len(rows), *a.shape[1:]), dtype=a._values.dtype, device=a._values.device)
        values.index_add_(0, inverse, torch.cat([a._values, b._values * sign if sign < 0 else b._values]))
        return RowSparseNDArray._make(values, [rows], a.shape, a._ctx)
    total = a._torch() + b._torch() * sign
    return CSRNDArray._make(total.values(), [total.crow_indices(), total.col_indices()], a.shape, a._ctx)


@kernel("dot")
def _dot(op, arrays, attributes):
    lhs, rhs = arrays
    if not isinstance(lhs, CSRNDArray) or rhs.stype == "csr" or attributes.get("transpose_b") or rhs.ndim > 2:
        return NotImplemented
    transpose = bool(attributes.get("transpose_a"))
    if lhs.shape[0 if transpose else 1] != rhs.shape[0]:
        raise MXNetError(f"dot: shapes {lhs.shape}{' transposed' if transpose else ''} and {rhs.shape} do not match")
    wanted = attributes.get("forward_stype") or ("row_sparse" if transpose and rhs.stype == "row_sparse" else "default")
    matrix = _transposed(lhs._torch()) if transpose else lhs._torch()
    dense = rhs._data if rhs.ndim == 2 else rhs._data.unsqueeze(1)
    result, recorded = dispatch.run(op, _CsrTimesDense.apply, (matrix, dense), {}, lhs._ctx)
    out = NDArray._new(result if rhs.ndim == 2 else result.squeeze(1), lhs._ctx)
    if recorded:
        out._autograd = dispatch.Recorded(dispatch.TapeNode(op, attributes, [dispatch.entry_of(lhs), dispatch.entry_of(rhs)]), 0)
        return out
    return cast_storage(out, wanted)


def _transposed(matrix):
    coo = matrix.to_sparse_coo()
    return torch.sparse_coo_tensor(coo.indices().flip(0), coo.values(), (matrix.shape[1], matrix.shape[0])).coalesce().to_sparse_csr()


class _CsrTimesDense(torch.autograd.Function):
    """A sparse matrix times a dense one; differentiable in the dense one."""

    @staticmethod
    def forward(ctx, matrix, dense):
        ctx.matrix = matrix
        return matrix @ dense

    @staticmethod
    def backward(ctx, gradient):
        return None, _transposed(ctx.matrix) @ gradient


@kernel("cast_storage")
def _cast(op, arrays, attributes):
    return cast_storage(arrays[0], attributes["stype"])


@kernel("sum", "mean")
def _reduce(op, arrays, attributes):
    a, = arrays
    if attributes.get("axis") not in (None, ()) or attributes.get("exclude") or attributes.get("keepdims"):
        return NotImplemented
    total = a._values.sum()
    return NDArray._new((total / a.size if op.name == "mean" else total).reshape(1), a._ctx)


_DIFFERENTIABLE = {_dot}

from . import sparse_graph  # noqa: E402,F401  (registers its kernels with what stands above)
