"""Making sparse arrays: from their parts, from other arrays, or without stored values."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...base import MXNetError, integer_types
from ...ops import dtypes, host_arrays
from ..dense import dense_array, filled, place
from ..ndarray import NDArray
from .arrays import BaseSparseNDArray, CSRNDArray, RowSparseNDArray, cast_storage

if TYPE_CHECKING:
    from ...context import Context
    from ..ndarray import DType, Sizes

_INDEX = torch.int64
_KINDS = {"csr": CSRNDArray, "row_sparse": RowSparseNDArray}


# Types that torch stores and hardly computes with.
_NO_KERNELS = (torch.uint16, torch.uint32, torch.uint64)


def _tensor(source: Any, device: torch.device, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return a new tensor out of anything array-like."""
    if isinstance(source, NDArray):
        t = source._raw()
    else:
        if dtype is None and not isinstance(source, np.ndarray):
            dtype = torch.float32
        return host_arrays.as_tensor(source, dtype, copy=True).to(device)
    return t.to(device, dtype or t.dtype, copy=True)


def csr_matrix(arg1: Any, shape: Sequence[int] | None = None, ctx: Context | None = None, dtype: DType | None = None) -> CSRNDArray:
    """Return a `CSRNDArray`.

    Parameters
    ----------
    arg1 : tuple, NDArray, numpy array or scipy matrix
        ``(data, indices, indptr)``; ``(data, (row, col))``; a shape ``(M, N)`` for an empty one; or an array to convert.
    shape : tuple of int, optional
        Found from the indices where not given.
    ctx : Context, optional
    dtype : str or type, optional
        That of the data, or float32 for lists.

    Raises
    ------
    ValueError
        If the parts make no matrix of that shape.
    """
    ctx, device = place(ctx)
    want = dtypes.to_torch(dtype) if dtype is not None else None
    if isinstance(arg1, tuple):
        if len(arg1) == 2 and isinstance(arg1[1], tuple) and len(arg1[1]) == 2:
            data, row, col = _coordinates(*arg1, shape, device)
            if want is not None:
                data = data.to(want)
            shape = shape or (int(row.max()) + 1, int(col.max()) + 1)
            order = torch.argsort(row * shape[1] + col, stable=True)
            key = (row * shape[1] + col)[order]
            unique, inverse = torch.unique(key, return_inverse=True)
            values = torch.zeros(len(unique), dtype=data.dtype, device=device).index_add_(0, inverse, data[order])
            indptr = torch.zeros(shape[0] + 1, dtype=_INDEX, device=device)
            indptr[1:] = torch.bincount(unique // shape[1], minlength=shape[0]).cumsum(0)
            return _checked(CSRNDArray._make(values, [indptr, unique % shape[1]], shape, ctx))
        if len(arg1) == 2:
            if shape is not None and tuple(shape) != tuple(arg1):
                raise ValueError(f"Shape mismatch detected. {tuple(shape)} v.s. {tuple(arg1)}")
            return zeros("csr", arg1, ctx=ctx, dtype=dtype)
        if len(arg1) == 3:
            data, indices, indptr = _tensor(arg1[0], device, want), _tensor(arg1[1], device, _INDEX), _tensor(arg1[2], device, _INDEX)
            if shape is None:
                if not len(indices):
                    raise ValueError("invalid shape: it cannot be found from an empty list of indices, received shape=None")
                shape = (len(indptr) - 1, int(indices.max()) + 1)
            return _checked(CSRNDArray._make(data, [indptr, indices], shape, ctx))
        raise ValueError(f"Unexpected length of input tuple: {len(arg1)}; expected (data, indices, indptr), (data, (row, col)) or (M, N)")
    return _converted(arg1, "csr", shape, ctx, dtype)


def _coordinates(data: Any, places: tuple[Any, Any], shape: Sequence[int] | None, device: torch.device) -> list[torch.Tensor]:
    """Return values, row and column numbers as tensors, of the types that SciPy gives them: as they are, float32 for float16."""
    tensors = [_tensor(data if isinstance(data, NDArray) else np.asarray(data), device), *(_tensor(x, device, _INDEX) for x in places)]
    if any(t.dim() != 1 for t in tensors) or len({len(t) for t in tensors}) > 1:
        raise ValueError("values, rows and columns of one axis and one length expected, received shapes "
                         + ", ".join(str(tuple(t.shape)) for t in tensors))
    if shape is None and not len(tensors[0]):
        raise ValueError("invalid shape: it cannot be found from empty lists of rows and columns, received shape=None")
    for name, numbers, size in zip(("row", "column"), tensors[1:], shape or (None, None)):
        if len(numbers) and (numbers.min() < 0 or size is not None and numbers.max() >= size):
            raise ValueError(f"{name} numbers must be at least 0{'' if size is None else f' and below {size}'}, "
                             f"received {int(numbers.min())} to {int(numbers.max())}")
    if tensors[0].dtype is torch.float16:
        tensors[0] = tensors[0].float()
    return tensors


def row_sparse_array(arg1: Any, shape: Sequence[int] | None = None, ctx: Context | None = None, dtype: DType | None = None) -> RowSparseNDArray:
    """Return a `RowSparseNDArray`.

    Parameters
    ----------
    arg1 : tuple, NDArray or numpy array
        ``(data, indices)``; a shape for an empty one; or an array to convert.
    shape, ctx, dtype
        As for `csr_matrix`.
    """
    ctx, device = place(ctx)
    if isinstance(arg1, tuple):
        if len(arg1) == 2 and not all(isinstance(x, integer_types) for x in arg1):
            data = _tensor(arg1[0], device, dtypes.to_torch(dtype) if dtype is not None else None)
            indices = _tensor(arg1[1], device, _INDEX).reshape(-1)
            if shape is None:
                if not len(indices):
                    raise ValueError("invalid shape: it cannot be found from an empty list of indices, received shape=None")
                shape = (int(indices.max()) + 1, *data.shape[1:])
            return _checked(RowSparseNDArray._make(data, [indices], shape, ctx))
        if shape is not None and tuple(shape) != tuple(arg1):
            raise ValueError(f"Shape mismatch detected. {tuple(shape)} v.s. {tuple(arg1)}")
        return zeros("row_sparse", arg1, ctx=ctx, dtype=dtype)
    return _converted(arg1, "row_sparse", shape, ctx, dtype)


def _checked(array: Any) -> Any:
    _check_type(array._values.dtype)
    try:
        array.check_format(full_check=False)
    except MXNetError as error:
        raise ValueError(str(error)) from None
    return array


def _check_type(dtype: torch.dtype) -> None:
    if dtype in _NO_KERNELS:
        raise TypeError(f"sparse arrays hold no {dtypes.name_of(dtype)}; name a dtype such as int32, int64 or float32")


def _converted(source: Any, stype: str, shape: Sequence[int] | None, ctx: Context, dtype: DType | None) -> Any:
    if isinstance(source, BaseSparseNDArray):
        result = cast_storage(source.as_in_context(ctx), stype)
        result = result.copyto(ctx) if result is source else result
    elif hasattr(source, "tocsr"):
        m = source.tocsr(copy=True)
        m.sum_duplicates()
        m.sort_indices()
        result = csr_matrix((m.data, m.indices, m.indptr), shape=m.shape, ctx=ctx, dtype=dtype)
    else:
        dtype = dtype if dtype is not None or isinstance(source, NDArray) or not hasattr(source, "dtype") else source.dtype
        dense = dense_array(source, ctx=ctx, dtype=dtype)
        _check_type(dense._data.dtype)
        result = cast_storage(dense, stype)
    if shape is not None and tuple(shape) != result.shape:
        raise ValueError(f"Shape mismatch detected. {tuple(shape)} v.s. {result.shape}")
    return result.astype(dtype, copy=False) if dtype is not None else result


def zeros(stype: str, shape: Sizes, ctx: Context | None = None, dtype: DType | None = None, **kwargs: Any) -> Any:
    """Return an array without stored values.

    Parameters
    ----------
    stype : {'csr', 'row_sparse', 'default'}
    shape : int or tuple of int
    """
    if kwargs:
        raise TypeError(f"zeros got unexpected arguments {sorted(kwargs)}")
    if stype == "default":
        return filled(shape, 0, ctx, dtype, {})
    if stype not in _KINDS:
        raise ValueError(f"unknown storage type {stype!r}; expected 'default', 'csr' or 'row_sparse'")
    return _KINDS[stype]._nothing_stored((shape,) if isinstance(shape, int) else tuple(shape), dtypes.to_torch(dtype), place(ctx)[0])


def empty(stype: str, shape: Sizes, ctx: Context | None = None, dtype: DType | None = None) -> Any:
    """Return a sparse array without stored values."""
    return zeros(stype, shape, ctx=ctx, dtype=dtype)


def array(source_array: Any, ctx: Context | None = None, dtype: DType | None = None) -> Any:
    """Return a sparse array from a sparse NDArray or a scipy csr matrix, of the same storage type."""
    if isinstance(source_array, NDArray):
        if not source_array._is_sparse:
            raise ValueError(f"sparse.array: a sparse NDArray or a scipy matrix expected, received {type(source_array)}; call mx.nd.array for that")
        return _converted(source_array, source_array.stype, None, place(ctx)[0], dtype)
    if hasattr(source_array, "tocsr"):
        if getattr(source_array, "format", "csr") != "csr":
            raise ValueError(f"scipy matrices must be csr, received {source_array.format}; call .tocsr() first")
        return _converted(source_array, "csr", None, place(ctx)[0], dtype)
    raise ValueError(f"Unexpected source_array type: {type(source_array)}; dense sources belong to mx.nd.array")
