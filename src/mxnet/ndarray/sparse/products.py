"""Matrix products with a sparse operand."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ...base import MXNetError
from ...ops.unique import unique_inverse
from .. import dispatch
from ..ndarray import NDArray
from .arrays import CSRNDArray, RowSparseNDArray, cast_storage
from .dispatch import coordinates, densified_call, kernel, recorded_as
from .rows import Product, times

if TYPE_CHECKING:
    from ...ops.registry import Operator


@kernel("dot", differentiable=True)
def dot(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Return a product in MXNet's storage type: ``csr.T x dense`` row_sparse, ``dense x csr`` csr, others dense; or in `forward_stype`."""
    lhs, rhs = arrays
    ta, tb = bool(attributes.get("transpose_a")), bool(attributes.get("transpose_b"))
    wanted = attributes.get("forward_stype")
    if isinstance(lhs, CSRNDArray) and rhs.stype != "csr" and not tb and rhs.ndim <= 2 and not _needs_gradient(lhs):
        wanted = wanted or ("row_sparse" if ta and rhs.ndim == 2 else "default")
        return _csr_first(op, lhs, rhs, attributes, ta, wanted)
    if isinstance(rhs, CSRNDArray) and lhs.stype == "default" and lhs.ndim == 2 and not ta:
        wanted = wanted or "csr"
        if not _needs_gradient(lhs) and not _needs_gradient(rhs):
            _check(op, lhs.shape[1], rhs.shape[1 if tb else 0], lhs, rhs)
            matrix = rhs._torch() if tb else _transposed(rhs._torch())
            return cast_storage(NDArray._new((matrix @ lhs._raw().T).T.contiguous(), lhs._ctx), wanted)
    result = densified_call(op, arrays, attributes, None, NDArray)
    if wanted in (None, "default") or result._autograd is not None or wanted == "csr" and result.ndim != 2:
        return result
    return cast_storage(result, wanted)


def _needs_gradient(array: NDArray) -> bool:
    return dispatch.mode.recording and dispatch.in_graph(array)


def _check(op: Operator, inner: int, other: int, lhs: Any, rhs: Any) -> None:
    if inner != other:
        raise MXNetError(f"{op.name}: shapes {lhs.shape} and {rhs.shape} do not match: axes of {inner} and {other} would be multiplied")


def _csr_first(op: Operator, lhs: Any, rhs: Any, attributes: dict[str, Any], transpose: bool, wanted: str) -> NDArray:
    _check(op, lhs.shape[0 if transpose else 1], rhs.shape[0], lhs, rhs)
    if not _needs_gradient(rhs) and rhs.ndim == 2 and (transpose and wanted == "row_sparse" or rhs._is_sparse and not transpose):
        return _by_rows(lhs, rhs, wanted) if transpose else cast_storage(_of_rows(lhs, rhs), wanted)
    if rhs._is_sparse and rhs._token is not None and _needs_gradient(rhs) and not transpose and rhs.ndim == 2:
        result, _ = dispatch.run(op, lambda t: Product.apply(t, lhs, rhs), (rhs._token,), {}, lhs._ctx)
        out = NDArray._new(result, lhs._ctx)
        dispatch.record(op, attributes, (lhs, rhs), (out,))
        return out if wanted == "default" else recorded_as(cast_storage(out.detach(), wanted), result, out._autograd)
    dense = rhs._data if not rhs._is_sparse or rhs._leaf is not None or rhs._token is not None else rhs._readable()
    matrix = _transposed(lhs._torch()) if transpose else lhs._torch()
    result, recorded = dispatch.run(op, CsrTimesDense.apply, (matrix, dense if rhs.ndim == 2 else dense.unsqueeze(1)), {}, lhs._ctx)
    if rhs.ndim == 1:
        result, _ = dispatch.run(op, lambda t: t.squeeze(1), (result,), {}, lhs._ctx)
    out = NDArray._new(result, lhs._ctx)
    if recorded:
        dispatch.record(op, attributes, (lhs, rhs), (out,))
        if wanted == "row_sparse":
            stored = cast_storage(out.detach(), wanted)
            return recorded_as(stored, result, out._autograd)
        return out
    return cast_storage(out, wanted) if wanted != "csr" or rhs.ndim == 2 else out


def _by_rows(lhs: Any, rhs: Any, wanted: str) -> RowSparseNDArray:
    """``lhs.T x rhs``: only rows for columns of `lhs` that store something are not zero."""
    rows, columns = coordinates(lhs)
    stored, number = unique_inverse(columns)
    compact = torch.sparse_coo_tensor(torch.stack([number, rows]), lhs._values, (len(stored), lhs.shape[0]), check_invariants=False)
    factor = rhs._readable() if rhs._is_sparse else rhs._raw()
    return RowSparseNDArray._make(torch.sparse.mm(compact, factor), [stored], (lhs.shape[1], rhs.shape[1]), lhs._ctx)


def _of_rows(lhs: Any, rhs: Any) -> NDArray:
    """``lhs x rhs`` for a row_sparse `rhs`: only the rows for the stored columns of `lhs` are read."""
    columns = lhs._aux[1].to(torch.int64)
    used, number = unique_inverse(columns)
    return NDArray._new(times(lhs, number, rhs._readable_rows(used)), lhs._ctx)


def _transposed(matrix: torch.Tensor) -> torch.Tensor:
    coo = matrix.to_sparse_coo()
    flipped = torch.sparse_coo_tensor(coo.indices().flip(0), coo.values(), (matrix.shape[1], matrix.shape[0]), check_invariants=False)
    return flipped.coalesce().to_sparse_csr()


class CsrTimesDense(torch.autograd.Function):
    """A sparse matrix times a dense one; differentiable in the dense one, of which a leaf's gradient has only the rows that were used."""

    @staticmethod
    def forward(ctx: Any, matrix: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
        ctx.matrix = matrix
        ctx.by_rows = dense.is_leaf
        if matrix.values().numel() >= dense.shape[0]:
            return matrix @ dense
        # Torch's product reads all of the dense matrix; this only the rows that are used.
        used, number = unique_inverse(matrix.col_indices())
        compact = torch.sparse_csr_tensor(matrix.crow_indices(), number, matrix.values(), (matrix.shape[0], len(used)), check_invariants=False)
        return compact @ dense[used]

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, torch.Tensor]:
        if not ctx.by_rows or torch.is_grad_enabled():
            return None, _transposed(ctx.matrix) @ gradient
        coo = ctx.matrix.to_sparse_coo()
        rows, columns = coo.indices()
        used, number = unique_inverse(columns)
        height, width = ctx.matrix.shape
        compact = torch.sparse_coo_tensor(torch.stack([number, rows]), coo.values(), (len(used), height), check_invariants=False)
        return None, torch.sparse_coo_tensor(used.unsqueeze(0), torch.sparse.mm(compact, gradient), (width, gradient.shape[1]),
                                             is_coalesced=True, check_invariants=False)
