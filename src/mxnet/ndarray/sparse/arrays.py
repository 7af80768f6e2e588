"""The two kinds of sparse arrays, and conversion between storage types."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch

from ...base import MXNetError, NotSupportedForSparseNDArray, integer_types, numeric_types
from ...context import Context, current_context, intern_context
from ...ops import dtypes, host_arrays
from ...ops.grad_mode import enable_grad
from ...ops.unique import unique_inverse
from ...suggestions import shortened
from .. import dispatch, lazy_zeros
from ..dispatch import Marked
from ..functions import operator_function, replace
from ..ndarray import GRAD_REQS, NDArray
from .rows import Dense, token

if TYPE_CHECKING:
    from ..ndarray import DType

    Number = float | np.number[Any] | np.bool_

_INDEX = torch.int64


class BaseSparseNDArray(NDArray):
    """The base of the two kinds of sparse arrays.

    Example
    -------
    >>> x = mx.nd.sparse.zeros('csr', (2, 3))
    >>> isinstance(x, mx.nd.sparse.BaseSparseNDArray), x.stype, x.shape
    (True, 'csr', (2, 3))
    """

    __slots__ = ("_values", "_aux", "_full_shape", "_leaf", "_token")
    _is_sparse = True
    _values: torch.Tensor
    _aux: list[torch.Tensor]
    _full_shape: tuple[int, ...]
    _leaf: Any  # the dense tensor that torch differentiates through, while recording
    _token: Any  # the token for differentiation of some rows only, in its place (see `rows`)

    if TYPE_CHECKING:  # defined by each of the two kinds
        def _dense(self) -> torch.Tensor: ...

        @classmethod
        def _nothing_stored(cls, shape: Sequence[int], dtype: torch.dtype, ctx: Context) -> Any: ...

    def __init__(self, handle: Any, writable: bool = True) -> None:
        if handle is not None:  # None is how pickles start an array that __setstate__ then fills
            raise TypeError("build sparse arrays with mx.nd.sparse.csr_matrix, row_sparse_array or x.tostype(...); received a handle of type "
                            f"{type(handle).__name__}")
        self._values, self._aux, self._full_shape = torch.empty(0), [], (0,)
        self._ctx, self._autograd, self._leaf, self._token = current_context(), None, None, None

    @classmethod
    def _make(cls, values: torch.Tensor, aux: Iterable[torch.Tensor], shape: Sequence[int], ctx: Context) -> Any:
        self = cls.__new__(cls)
        self._values, self._aux, self._full_shape = values, list(aux), tuple(shape)
        self._ctx, self._autograd, self._leaf, self._token = ctx, None, None, None
        return self

    @staticmethod
    def _slots() -> tuple[str, ...]:
        return "_values", "_aux", "_full_shape", "_ctx", "_autograd", "_leaf", "_token"

    @property
    def _data(self) -> torch.Tensor:  # type: ignore[override]  # it has no setter
        """The dense tensor; while recording the one that torch differentiates through."""
        return self._leaf if self._leaf is not None else self._dense()

    def _raw(self) -> torch.Tensor:
        return self._dense()

    def _aux_tensors(self) -> list[torch.Tensor]:
        return self._aux

    @property
    def shape(self) -> tuple[int, ...]:
        return self._full_shape

    @property
    def ndim(self) -> int:
        return len(self._full_shape)

    @property
    def size(self) -> int:
        return int(np.prod(self._full_shape))

    @property
    def dtype(self) -> Any:
        return dtypes.to_numpy(self._values.dtype)

    @property
    def data(self) -> NDArray:
        """A copy of the stored values, an NDArray."""
        return NDArray._new(self._values.clone(), self._ctx)

    @property
    def indices(self) -> NDArray:
        """A copy of the places of the stored values: columns (csr) or rows (row_sparse), int64."""
        return NDArray._new(self._aux[-1].clone(), self._ctx)

    @property
    def _num_aux(self) -> int:
        return len(self._aux)

    @property
    def _aux_types(self) -> list[Any]:
        return [dtypes.to_numpy(a.dtype) for a in self._aux]

    def _aux_type(self, i: int) -> Any:
        return self._aux_types[i]

    def _aux_data(self, i: int) -> NDArray:
        return NDArray._new(self._aux[i].clone(), self._ctx)

    def __repr__(self) -> str:
        return f"\n<{type(self).__name__} {'x'.join(map(str, self.shape))} @{self._ctx}>"

    def asnumpy(self) -> np.ndarray:
        """Return the array, all of it, as a dense numpy array."""
        return NDArray._new(self._dense(), self._ctx).asnumpy()

    def wait_to_read(self) -> None:
        """Return when the values are computed."""
        NDArray._new(self._values, self._ctx).wait_to_read()

    def as_torch(self) -> torch.Tensor:
        """Return a dense torch tensor with the values; a copy."""
        return self._dense()

    def astype(self, dtype: DType | None, copy: bool = True) -> Any:
        """Return the stored values converted to `dtype`, stored the same way."""
        target = dtypes.to_torch(dtype)
        if not copy and target == self._values.dtype:
            return self
        return self._make(self._values.to(target, copy=True), [a.clone() for a in self._aux], self.shape, self._ctx)

    def copyto(self, other: NDArray | Context) -> Any:
        """Copy to an array, dense or sparse, or to a device; see `NDArray.copyto`."""
        if isinstance(other, Context):
            ctx = intern_context(other)
            device = ctx.torch_device
            return self._make(self._values.to(device, copy=True), [a.to(device, copy=True) for a in self._aux], self.shape, ctx)
        if isinstance(other, NDArray):
            if other is self:
                import warnings
                warnings.warn("copyto: source and target are one array, nothing was copied", RuntimeWarning, stacklevel=2)
                return False
            if other.shape != self.shape:
                raise MXNetError(f"copyto: the target has shape {other.shape}, the source {self.shape}")
            if other._is_sparse:
                other._take(self if other.stype == self.stype else cast_storage(self, other.stype))  # type: ignore[attr-defined]  # sparse ones have it
            else:
                other[:] = self
            return other
        raise TypeError(f"copyto does not support type {type(other)}")

    def detach(self) -> Any:
        """Return the same values, detached from the recorded computation."""
        return self._make(self._values, self._aux, self.shape, self._ctx)

    def _end_history(self) -> None:
        self._leaf = self._token = self._autograd = None

    def tostype(self, stype: str) -> NDArray:
        """Return the values stored as ``'default'``, ``'csr'`` or ``'row_sparse'``."""
        return cast_storage(self, stype)

    def check_format(self, full_check: bool = True) -> None:
        """Raise an MXNetError if the index arrays don't describe an array of this shape; `full_check` looks at every index."""
        raise NotImplementedError(f"{type(self).__name__} has no format to check; CSRNDArray and RowSparseNDArray have")

    def _like(self, values: torch.Tensor) -> Any:
        """Return an array with other values in the same places."""
        return self._make(values, [a.clone() for a in self._aux], self.shape, self._ctx)

    def _take(self, other: Any) -> None:
        """Copy the content of another sparse array of the same kind and shape; memory is not shared."""
        device = self._ctx.torch_device
        self._values = other._values.to(device, self._values.dtype, copy=True)
        self._aux = [a.to(device, copy=True) for a in other._aux]
        self._refresh_leaf()

    def _take_dense(self, tensor: torch.Tensor, add: bool = False) -> None:
        """Replace the content by the sparse form of a tensor, or of the sum with it."""
        if tensor.is_sparse:
            tensor = tensor.to_dense()
        total = tensor + self._dense() if add else tensor
        self._take(cast_storage(NDArray._new(total, self._ctx), self.stype))

    def _set_values(self, tensor: torch.Tensor) -> None:
        self._take_dense(tensor.detach())

    def _release(self) -> None:
        """Drop the stored values; the array is all zeros until `_take` or `_adopt`."""
        empty = self._nothing_stored(self.shape, self._values.dtype, self._ctx)
        self._values, self._aux = empty._values, empty._aux

    def _allocate(self) -> None:
        """Do nothing, since `_take` and `_adopt` allocate the memory."""

    def _adopt(self, other: Any) -> None:
        """Take over the memory of another array of the same kind, shape and type, which must not be used afterwards."""
        if other._values.dtype is not self._values.dtype or other._values.device != self._values.device:
            self._take(other)
            return
        self._values, self._aux = other._values, other._aux
        self._refresh_leaf()

    def _refresh_leaf(self) -> None:
        if self._leaf is not None:
            self._leaf.data.copy_(self._readable())

    def _readable(self) -> torch.Tensor:
        """Return a dense tensor for reading only: it may be the stored values themselves."""
        return self._dense()

    def _mark(self, grad: Any, grad_req: str) -> None:
        if grad_req not in GRAD_REQS:
            raise KeyError(f"grad_req must be one of {tuple(GRAD_REQS)}, received {shortened(grad_req)}")
        self._autograd = Marked(grad, grad_req)
        self._leaf = self._token = None
        if grad_req != "null" and self._values.dtype.is_floating_point:
            self._variable().register_post_accumulate_grad_hook(self._autograd.deliver)

    def _variable(self) -> torch.Tensor:
        """Create a new leaf tensor, through which autograd records the array from now on."""
        self._leaf = self._dense().requires_grad_()
        return self._leaf

    def __setitem__(self, key: Any, value: Any) -> None:
        if key is not Ellipsis and key != slice(None):
            raise TypeError(f"{type(self).__name__} only supports [:] for assignment, received {shortened(key)}")
        if isinstance(value, NDArray):
            if value is not self:
                value.copyto(self)
        elif isinstance(value, numeric_types) and value == 0:
            self._take(self._nothing_stored(self.shape, self._values.dtype, self._ctx))
        elif isinstance(value, (np.ndarray, *numeric_types)):
            values = host_arrays.as_tensor(value, self._values.dtype).to(self._values.device)
            try:
                values = values.expand(self.shape)
            except RuntimeError:
                raise MXNetError(f"{type(self).__name__}: values that broadcast to shape {self.shape} expected, "
                                 f"received shape {tuple(values.shape)}") from None
            self._take_dense(values)
        else:
            raise TypeError(f"type {type(value)} not supported")

    def reshape(self, *shape: Any, **kwargs: Any) -> NoReturn:
        """Not offered for sparse arrays, as in MXNet."""
        raise NotSupportedForSparseNDArray(self.reshape, None, shape)

    # In place: the result of the operation, in this array's storage type.

    def __iadd__(self, other: NDArray | Number) -> Any:
        return (self + other).copyto(self)

    def __isub__(self, other: NDArray | Number) -> Any:
        return (self - other).copyto(self)

    def __imul__(self, other: NDArray | Number) -> Any:
        return (self * other).copyto(self)

    def __itruediv__(self, other: NDArray | Number) -> Any:
        return (self / other).copyto(self)


class CSRNDArray(BaseSparseNDArray):
    """A matrix stored as compressed rows: row i holds ``data[indptr[i]:indptr[i+1]]`` in the columns ``indices[indptr[i]:indptr[i+1]]``.

    Example
    -------
    >>> import mxnet as mx
    >>> a = mx.nd.sparse.csr_matrix(([1, 2], [0, 2], [0, 1, 2]), shape=(2, 3))
    >>> a.asnumpy()
    array([[1., 0., 0.],
           [0., 0., 2.]], dtype=float32)
    """

    __slots__ = ()

    @classmethod
    def _nothing_stored(cls, shape: Sequence[int], dtype: torch.dtype, ctx: Context) -> CSRNDArray:
        """Return an array of zeros, of a torch type."""
        device = ctx.torch_device
        if len(shape) != 2:
            raise MXNetError(f"a csr array has 2 axes, received shape {shape}")
        indptr, indices = (torch.zeros(n, dtype=_INDEX, device=device) for n in (shape[0] + 1, 0))
        return cls._make(torch.empty(0, dtype=dtype, device=device), [indptr, indices], shape, ctx)

    @property
    def stype(self) -> str:
        return "csr"

    @property
    def indptr(self) -> NDArray:
        """A copy of the places where rows start in `data`, int64, one entry more than rows."""
        return NDArray._new(self._aux[0].clone(), self._ctx)

    def _dense(self) -> torch.Tensor:
        rows, columns = self.shape
        out = torch.zeros((rows, columns), dtype=self._values.dtype, device=self._values.device)
        if self._values.numel():
            out.index_put_((self._row_numbers(), self._aux[1].to(_INDEX)), self._values, accumulate=True)
        return out

    def _row_numbers(self) -> torch.Tensor:
        counts = self._aux[0].to(_INDEX).diff()
        return torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)

    def _torch(self) -> torch.Tensor:
        """Return the torch tensor of this layout that shares memory."""
        return torch.sparse_csr_tensor(self._aux[0], self._aux[1], self._values, self.shape, check_invariants=False)

    def check_format(self, full_check: bool = True) -> None:
        """Raise an MXNetError if the index arrays are not those of a csr matrix; `full_check` looks at every index."""
        indptr, indices = self._aux
        rows, columns = self.shape if len(self.shape) == 2 else (-1, -1)
        if rows < 0 or indptr.dim() != 1 or indices.dim() != 1 or self._values.dim() != 1:
            raise MXNetError(f"CSRNDArray: shape must have 2 axes, and data, indices and indptr one, received {len(self.shape)}, "
                             f"{self._values.dim()}, "
                             f"{indices.dim()} and {indptr.dim()}")
        if len(indptr) != rows + 1 or len(indices) != len(self._values):
            raise MXNetError(f"CSRNDArray: {rows} rows need {rows + 1} entries in indptr, received {len(indptr)}; data and indices must be "
                             f"of one length, received {len(self._values)} and {len(indices)}")
        if full_check:
            if indptr[0] != 0 or indptr[-1] != len(indices):  # which NaN never equals
                raise MXNetError(f"CSRNDArray: indptr must go from 0 to the number of values, {len(indices)}, received {indptr[0]} to {indptr[-1]}")
            if not bool((indptr.diff() >= 0).all()):
                raise MXNetError("CSRNDArray: indptr must not decrease")
            if len(indices) == 0:
                return
            if not bool(((indices >= 0) & (indices < columns)).all()):
                raise MXNetError(f"CSRNDArray: column indices must be in [0, {columns})")
            same_row = self._row_numbers().diff() == 0
            if not bool((indices.diff()[same_row] > 0).all()):
                raise MXNetError("CSRNDArray: column indices must increase within a row")

    def __getitem__(self, key: Any) -> CSRNDArray:
        rows = self.shape[0]
        if isinstance(key, integer_types):
            if not -rows <= key < rows:
                raise IndexError(f"axis 0 has {rows} entries, received index {key}")
            key = int(key) % rows
            key = slice(key, key + 1)
        if not isinstance(key, slice):
            raise ValueError(f"Undefined behaviour for {key!r}: CSRNDArray supports an integer or a slice of rows")
        if key.step not in (None, 1):
            raise ValueError(f"a csr matrix is sliced in steps of 1, received {key}")
        start, stop, _ = key.indices(rows)
        stop = max(start, stop)
        indptr = self._aux[0][start:stop + 1]
        low, high = int(indptr[0]), int(indptr[-1])
        return self._make(self._values[low:high].clone(), [indptr - low, self._aux[1][low:high].clone()], (stop - start, self.shape[1]), self._ctx)

    def asscipy(self) -> Any:
        """Return the same matrix as a `scipy.sparse.csr_matrix`."""
        from scipy.sparse import csr_matrix as scipy_csr
        return scipy_csr(tuple(t.cpu().numpy().copy() for t in (self._values, self._aux[1], self._aux[0])), shape=self.shape)


class RowSparseNDArray(BaseSparseNDArray):
    """An array of which only some rows are stored: ``data[k]`` is row ``indices[k]``, the others are zero.

    Example
    -------
    >>> import mxnet as mx
    >>> a = mx.nd.sparse.row_sparse_array(([[1, 2]], [1]), shape=(3, 2))
    >>> a.asnumpy()
    array([[0., 0.],
           [1., 2.],
           [0., 0.]], dtype=float32)
    """

    __slots__ = ("_complete",)
    _complete: Any  # (row numbers, whether they are all, in order)

    def __init__(self, handle: Any, writable: bool = True) -> None:
        super().__init__(handle, writable)
        self._complete = None, None

    @classmethod
    def _make(cls, values: torch.Tensor, aux: Iterable[torch.Tensor], shape: Sequence[int], ctx: Context) -> Any:
        self = super()._make(values, aux, shape, ctx)
        self._complete = None, None
        return self

    @classmethod
    def _nothing_stored(cls, shape: Sequence[int], dtype: torch.dtype, ctx: Context) -> RowSparseNDArray:
        """Return an array of zeros, of a torch type."""
        device = ctx.torch_device
        return cls._make(torch.empty((0, *shape[1:]), dtype=dtype, device=device), [torch.empty(0, dtype=_INDEX, device=device)], shape, ctx)

    @property
    def stype(self) -> str:
        return "row_sparse"

    def _dense(self) -> torch.Tensor:
        out = torch.zeros(self.shape, dtype=self._values.dtype, device=self._values.device)
        if self._values.numel():
            out[self._aux[0].to(_INDEX)] = self._values
        return out

    @property
    def _data(self) -> torch.Tensor:  # type: ignore[override]  # it has no setter
        if self._leaf is None and self._token is not None:
            with enable_grad():
                return Dense.apply(self._token, self)
        return super()._data

    def _variable(self) -> torch.Tensor:
        self._token = token(self._values, self.shape).requires_grad_()
        return self._token

    def detach(self) -> Any:
        """Return the same values, detached from the recorded computation."""
        detached = super().detach()
        detached._complete = self._complete
        return detached

    def _has_all_rows(self) -> bool:
        numbers = self._aux[0]
        if len(numbers) != self.shape[0]:
            return False
        of, known = self._complete
        if of is not numbers:
            known = _counts(numbers)
            self._complete = numbers, known
        return known

    def _readable(self) -> torch.Tensor:
        return self._values if self._has_all_rows() else self._dense()

    def _all_rows(self) -> torch.Tensor:
        """Store all rows from now on, and return their values for writing."""
        if not self._has_all_rows():
            self._values = self._dense() if len(self._values) else lazy_zeros.zeros(self.shape, self._values.dtype, self._values.device, by_rows=True)
            self._aux = [torch.arange(self.shape[0], device=self._values.device)]
            self._complete = self._aux[0], True
        return self._values

    def _rows(self, wanted: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the rows whose numbers are in `wanted` (int64), zero where they are not stored."""
        if self._has_all_rows():
            return self._values.index_select(0, wanted)
        stored, order = self._aux[0].to(_INDEX).sort()
        if not len(stored):
            return self._values.new_zeros((len(wanted), *self.shape[1:]))
        at = torch.searchsorted(stored, wanted).clamp_(max=len(stored) - 1)
        present = (stored[at] == wanted).reshape(-1, *[1] * (len(self.shape) - 1))
        return self._values[order[at]].where(present, self._values.new_zeros(()))

    def _readable_rows(self, wanted: torch.Tensor) -> torch.Tensor:
        """Return the rows of `_rows` for reading only: it may be the stored tensor itself."""
        return self._values if torch.equal(self._aux[0], wanted) else self._rows(wanted)

    def _take_dense(self, tensor: torch.Tensor, add: bool = False) -> None:
        if not tensor.is_sparse:
            return super()._take_dense(tensor, add)
        # A gradient that is row-sparse in torch, too. Torch loses the flag that its rows are in order.
        if not tensor.is_coalesced() and bool((tensor._indices()[0].diff() > 0).all()):
            rows, values = tensor._indices()[0], tensor._values()
        else:
            tensor = tensor.coalesce()
            rows, values = tensor.indices()[0], tensor.values()
        if add and len(self._aux[0]):
            rows, values = summed_rows([self._aux[0].to(_INDEX), rows], [self._values, values])
        stored = self._make(values, [rows.clone()], self.shape, self._ctx)
        # Unshared memory has three uses here: by torch's sparse tensor, by `values`, and by the storage object.
        if tensor._values().data_ptr() == values.data_ptr() and torch._C._storage_Use_Count(values.untyped_storage()._cdata) > 3:
            self._take(stored)
        else:
            self._adopt(stored)

    def check_format(self, full_check: bool = True) -> None:
        """Raise an MXNetError if the index array is not that of a row_sparse array; `full_check` looks at every index."""
        indices = self._aux[0]
        if not self.shape or indices.dim() != 1 or tuple(self._values.shape[1:]) != self.shape[1:] or len(indices) != len(self._values):
            raise MXNetError(f"RowSparseNDArray: data of shape {tuple(self._values.shape)} and {tuple(indices.shape)} indices do not make "
                             f"an array of shape {self.shape}")
        if full_check and len(indices):
            if int(indices.min()) < 0 or int(indices.max()) >= self.shape[0]:
                raise MXNetError(f"RowSparseNDArray: row indices must be in [0, {self.shape[0]})")
            if bool((indices.diff() <= 0).any()):
                raise MXNetError("RowSparseNDArray: row indices must increase")

    def __getitem__(self, key: Any) -> RowSparseNDArray:
        if key is Ellipsis or key == slice(None):
            return self
        raise ValueError(f"RowSparseNDArray only supports [:] for reading, received {shortened(key)}; convert with tostype('default') to select rows")

    def retain(self, *args: Any, **kwargs: Any) -> RowSparseNDArray:
        """Return the array with only the given rows kept; see ``mx.nd.sparse.retain``."""
        return retain(self, *args, **kwargs)


def _counts(numbers: torch.Tensor) -> bool:
    """Return True if the numbers are 0, 1, 2, ..."""
    return not len(numbers) or bool(numbers[0] == 0) and bool((numbers.diff() == 1).all())


def summed_rows(rows: list[torch.Tensor], values: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sorted union of several lists of row numbers, and the sums of the rows of those numbers."""
    union, inverse = unique_inverse(torch.cat(rows))
    stacked = torch.cat(values)
    return union, stacked.new_zeros((len(union), *stacked.shape[1:])).index_add_(0, inverse, stacked)


def cast_storage(data: NDArray | None = None, stype: str | None = None, out: NDArray | None = None, name: str | None = None) -> Any:
    """Return the values of an array, dense or sparse, stored another way.

    Parameters
    ----------
    data : NDArray
    stype : {'default', 'csr', 'row_sparse'}
    out : NDArray, optional
        Receives the result.
    name : str, optional
        For graphs; arrays have none.

    Raises
    ------
    MXNetError
        If `data` is no array, or there is no storage type of that name.

    Example
    -------
    >>> x = mx.nd.cast_storage(mx.nd.array([[0, 1], [0, 0]]), 'csr')
    >>> x.stype, x.indices.asnumpy()
    ('csr', array([1]))
    """
    if not isinstance(data, NDArray):
        raise MXNetError(f"cast_storage: `data` must be an NDArray, received {type(data).__name__}")
    if stype not in ("default", "csr", "row_sparse"):
        raise MXNetError(f"cast_storage: unknown storage type {stype!r}; expected 'default', 'csr' or 'row_sparse'")
    result = _stored(data, stype)
    if out is None:
        return result
    if isinstance(out, (list, tuple)):
        if len(out) != 1 or not isinstance(out[0], NDArray):
            raise MXNetError(f"cast_storage: one array for the result expected in `out`, received {len(out)}")
        out = out[0]
    return result.copyto(out) if result is not out else out


def _stored(array: Any, stype: str | None) -> Any:
    recording = dispatch.mode.recording and dispatch.in_graph(array)
    if stype == array.stype:  # a copy all the same
        result = array.copy()
        if not array._is_sparse:
            return result
    elif stype == "default":
        t = array._data
        result = NDArray._new(t.detach().clone() if t.requires_grad and not recording else t, array._ctx)
    elif stype == "csr":
        result = _as_csr(array)
    elif stype == "row_sparse":
        result = _as_rows(array)
    else:
        raise ValueError(f"unknown storage type {stype!r}; expected 'default', 'csr' or 'row_sparse'")
    if recording:
        dispatch.record(_CAST_STORAGE, {}, (array,), (result,))
        if result._is_sparse:
            result._leaf = array._data
    return result


def _as_csr(array: NDArray) -> CSRNDArray:
    t = array._raw()
    if t.dim() != 2:
        raise MXNetError(f"only an array of 2 axes can be stored as csr, received shape {tuple(t.shape)}")
    where = t.nonzero()
    indptr = torch.zeros(t.shape[0] + 1, dtype=_INDEX, device=t.device)
    indptr[1:] = torch.bincount(where[:, 0], minlength=t.shape[0]).cumsum(0)
    return CSRNDArray._make(t[where[:, 0], where[:, 1]], [indptr, where[:, 1].contiguous()], t.shape, array._ctx)


def _as_rows(array: NDArray) -> RowSparseNDArray:
    if isinstance(array, CSRNDArray):  # without a dense array in between
        rows, number = unique_inverse(array._row_numbers())
        values = array._values.new_zeros((len(rows), array.shape[1]))
        values.index_put_((number, array._aux[1].to(_INDEX)), array._values, accumulate=True)
        return RowSparseNDArray._make(values, [rows], array.shape, array._ctx)
    t = array._raw()
    if not t.dim():
        raise MXNetError(f"only an array with axes can be stored as row_sparse, received shape {tuple(t.shape)}")
    rows = (t.reshape(t.shape[0], -1) != 0).any(1).nonzero().reshape(-1) if t.numel() else torch.empty(0, dtype=_INDEX)
    return RowSparseNDArray._make(t[rows], [rows], t.shape, array._ctx)


class _CastStorage:
    name = "cast_storage"


_CAST_STORAGE = _CastStorage()


retain = operator_function("_sparse_retain")
for _name in ("cast_storage", "_sparse_cast_storage"):  # its result depends on more than tensors
    replace(_name, cast_storage)
