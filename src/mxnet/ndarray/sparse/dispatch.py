"""Dispatch of operators on sparse arrays: to a sparse kernel, or to the storage fallback on dense arrays, which is logged.

The kernels are in `kernels` (element by element, sums, rows), `products`, `updates` (optimizers) and `graph_sampling`.
"""
from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from ...base import MXNetError
from ...ops.registry import get
from .. import dispatch
from ..ndarray import NDArray
from .arrays import BaseSparseNDArray, CSRNDArray, RowSparseNDArray, cast_storage
from .on_demand import RowsOnDemand
from .rows import RowByRow

if TYPE_CHECKING:
    from ...context import Context
    from ...ops.registry import Operator

    Kernel: TypeAlias = Callable[[Operator, Sequence[Any], dict[str, Any]], Any]

_log = logging.getLogger("mxnet")
# Torch marks its csr layout as beta; the functions used here are tested.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
_kernels: dict[Operator, Kernel] = {}
_differentiable: set[Kernel] = set()
_masked: set[Kernel] = set()
_row_by_row: set[Kernel] = set()
_refusals: dict[Operator, Kernel] = {}
_announced: set[tuple] = set()


def kernel(*names: str, differentiable: bool = False, masked: bool = False, row_by_row: bool = False) -> Callable[[Kernel], Kernel]:
    """Register a function of (operator, arrays, attributes) for operators.

    It returns NotImplemented where it does not apply. `differentiable` means that it records by itself, `masked` that the operator itself
    differs from the kernel where nothing is stored, `row_by_row` that each row of a result follows from that row of the one array.
    """
    def register(fn: Kernel) -> Kernel:
        for n in names:
            _kernels[get(n)] = fn
        _differentiable.update([fn] if differentiable else ())
        _masked.update([fn] if masked else ())
        _row_by_row.update([fn] if row_by_row else ())
        return fn
    return register


def error_kernel(name: str) -> Callable[[Kernel], Kernel]:
    """Register a function of (operator, arrays, attributes) that raises where an operator takes no sparse arrays."""
    def register(fn: Kernel) -> Kernel:
        _refusals[get(name)] = fn
        return fn
    return register


class Update:
    """The changed rows of a weight, not yet written to an array."""

    _is_sparse = False

    def __init__(self, weight: Any, rows: torch.Tensor | slice, values: torch.Tensor) -> None:
        self.weight, self.rows, self.values = weight, rows, values

    def copyto(self, out: Any) -> Any:
        """Write to `out`, which is the weight itself as a rule."""
        if out is not self.weight:
            self.weight.copyto(out)
        if out._is_sparse:
            if isinstance(out, RowSparseNDArray):
                out._all_rows()[self.rows] = self.values
                out._refresh_leaf()
            else:
                dense = out._dense()
                dense[self.rows] = self.values
                out._set_values(dense)
        else:
            out._writable()[self.rows] = self.values
        return out

    def as_array(self) -> Any:
        """Return a new array with the updated weight."""
        return self.copyto(self.weight.copyto(self.weight.context))


def invoke_sparse(op: Operator, arrays: Sequence[Any], attrs: dict[str, Any], out: Any, cls: type[Any]) -> Any:
    """Call an operator of which an input is sparse.

    Where no kernel applies the inputs are converted to dense, and that is logged once for each operator and kinds of inputs, as MXNet
    does; ``MXNET_STORAGE_FALLBACK_LOG_VERBOSE=0`` silences it.
    """
    for a in arrays:
        if a is not None and not isinstance(a, NDArray):
            dispatch.refuse_input(op, arrays)
    if op in _refusals:
        _refusals[op](op, arrays, op.parse_cached(attrs))
    fn = _kernels.get(op)
    if fn is not None:
        result = _explained(fn, op, arrays, op.parse_cached(attrs))
        if result is not NotImplemented:
            if dispatch.mode.recording and fn not in _differentiable and any(a is not None and dispatch.in_graph(a) for a in arrays):
                result = _recorded(op, arrays, attrs, result, fn in _masked, fn in _row_by_row)
            if out is not None:
                return _write(out, result)
            return result.as_array() if isinstance(result, Update) else result
    return densified_call(op, arrays, attrs, out, cls)


def _explained(fn: Kernel, op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    try:
        return fn(op, arrays, attributes)
    except MXNetError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        inputs = ", ".join(f"{a.stype}{a.shape}" for a in arrays if a is not None)
        raise MXNetError(f"{op.name}: {str(error).splitlines()[0]} [inputs: {inputs}]") from error


def densified_call(op: Operator, arrays: Sequence[Any], attrs: dict[str, Any], out: Any, cls: type[Any], announce: bool = True) -> Any:
    """Call an operator with all inputs converted to dense."""
    if announce:
        _announce(op, arrays)
    dense = [_densified(a, i in op.mutated_indices) for i, a in enumerate(arrays)]
    if getattr(cls, "_is_sparse", False):
        cls = NDArray
    if isinstance(out, BaseSparseNDArray):
        out._set_values(dispatch.invoke(op, dense, attrs, None, NDArray)._raw())
        result = out
    else:
        result = dispatch.invoke(op, dense, attrs, out, cls)
    for i in op.mutated_indices:
        if i < len(arrays) and arrays[i] is not None and arrays[i]._is_sparse:
            arrays[i]._set_values(dense[i]._raw())
    return result


def _densified(a: Any, written: bool = False) -> Any:
    if a is None or not a._is_sparse:
        return a
    out = NDArray._new(a._dense() if written else a._data if a._leaf is not None or a._token is not None else a._readable(), a._ctx)
    dispatch.share_history(out, a._autograd)
    return out


def on_demand(op: Operator, arrays: Sequence[Any], attrs: dict[str, Any]) -> RowsOnDemand | None:
    """Return the lazy result (`RowsOnDemand`) of an operator that works row by row on a row_sparse array, or None if it does not.

    The array must not be changed while the result is in use.
    """
    if len(arrays) != 1 or _kernels.get(op) not in _row_by_row or not isinstance(arrays[0], RowSparseNDArray):
        return None
    source, attributes = arrays[0], op.parse_cached(attrs)
    values = op.raw(source._values[:0], **attributes)
    if values.shape[:1] != (0,) or values.dim() != source.ndim:
        return None
    result = RowsOnDemand(source, op, attributes, (source.shape[0], *values.shape[1:]))
    if dispatch.mode.recording and dispatch.in_graph(source):
        return _recorded(op, arrays, attrs, result, False, True)
    return result


def _recorded(op: Operator, arrays: Sequence[Any], attrs: dict[str, Any], result: Any, masked: bool, row_by_row: bool) -> Any:
    """Return a kernel's result with the history of the same call on dense arrays, or of the used rows for row-by-row operators."""
    source = arrays[0]
    if row_by_row and result._is_sparse and getattr(source, "_token", None) is not None:
        attributes = op.parse_cached(attrs)
        made, _ = dispatch.run(op, lambda t: RowByRow.apply(t, source, op, attributes, result.shape), (source._token,), {}, result._ctx)
        result._token = made
        dispatch.record(op, attrs, (source,), (result,))
        return result
    dense = dispatch.invoke(op, [_densified(a) for a in arrays], attrs, None, NDArray)
    if not result._is_sparse:
        return dense
    tensor = dense._data
    if masked:
        places = result._like(torch.ones_like(result._values))._dense() != 0
        tensor, _ = dispatch.run(op, torch.where, (places, tensor, torch.zeros_like(tensor)), {}, result._ctx)
    return recorded_as(result, tensor, dense._autograd)


def recorded_as(array: Any, tensor: torch.Tensor, mark: Any) -> Any:
    """Return a sparse array whose values torch has computed as the dense `tensor`."""
    if array is not None and tensor.requires_grad:
        array._leaf = tensor
    dispatch.share_history(array, mark)
    return array


def _write(out: Any, result: Any) -> Any:
    if isinstance(out, (list, tuple)):
        if len(out) != 1:
            raise MXNetError(f"`out` holds {len(out)} arrays, the operator returns 1")
        out = out[0]
    if not isinstance(out, NDArray):
        raise TypeError(f"`out` must be an NDArray, received {type(out).__name__}")
    if result is not out:
        result.copyto(out)
    return out


def _announce(op: Operator, arrays: Sequence[Any]) -> None:
    kinds = op, *[a.stype for a in arrays if a is not None]
    if kinds in _announced or os.environ.get("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "1") == "0":
        return
    _announced.add(kinds)
    _log.warning("Storage type fallback: %s has no sparse form for inputs stored as %s; they are converted to dense for it. "
                 "Set MXNET_STORAGE_FALLBACK_LOG_VERBOSE=0 to silence this.", op.name, list(kinds[1:]))


def coordinates(matrix: CSRNDArray) -> tuple[torch.Tensor, torch.Tensor]:
    """Row and column of each stored value of a csr matrix."""
    return matrix._row_numbers(), matrix._aux[1].to(torch.int64)


def csr_from_coordinates(values: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, shape: Sequence[int], ctx: Context) -> CSRNDArray:
    """Return a csr matrix out of values in order of rows, and of columns within a row."""
    indptr = torch.zeros(shape[0] + 1, dtype=torch.int64, device=values.device)
    indptr[1:] = torch.bincount(rows, minlength=shape[0]).cumsum(0)
    return CSRNDArray._make(values, [indptr, columns], shape, ctx)


__all__ = ["Update", "cast_storage", "coordinates", "csr_from_coordinates", "densified_call", "invoke_sparse", "kernel", "on_demand", "recorded_as",
           "error_kernel"]
