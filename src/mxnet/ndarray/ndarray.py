"""The dense array of ``mx.nd``."""
from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from .. import util
from ..base import MXNetError, integer_types, numeric_types
from ..context import Context, cpu, current_context, gpu, intern_context
from ..ops import dtypes, host_arrays
from ..ops.elemwise.common import wrap_integer
from ..ops.registry import get as get_operator
from ..suggestions import shortened
from . import dispatch, explicit_calls, handles, index_helpers, indexing, memory_format, mutation_tracking, object_arrays
from .dispatch import Marked, in_graph, invoke, mode, pseudo_operator, refuse_inplace, share_history, traces, wrap
from .fast_calls import eligibility

GRAD_REQS = {"write": 1, "add": 3, "null": 0}  # with MXNet's numbers for them

if TYPE_CHECKING:
    from ._attached import Methods as _Methods  # members attached later: methods that are operators, Python's arithmetic

    Sizes: TypeAlias = int | Sequence[int]
    DType: TypeAlias = str | type | np.dtype[Any] | torch.dtype
else:
    _Methods = object


class NDArray(_Methods):
    """An array of numbers on a device.

    Arrays come from `mx.nd.array`, `mx.nd.zeros` and the operators. `NDArray(tensor)` wraps a torch tensor without copying.

    Example
    -------
    >>> import mxnet as mx
    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> (x * 2 + 1).asnumpy()
    array([[3., 5.],
           [7., 9.]], dtype=float32)
    """

    __slots__ = ("_data", "_ctx", "_autograd", "__weakref__")
    __array_priority__ = 1000.0
    _is_sparse = False
    _data: torch.Tensor
    _ctx: Any  # Context
    _autograd: Any  # the autograd mark of the array, one of the classes in `dispatch` such as Marked
    _eligible: Callable[..., bool]  # the test for a fast call, see `fast_calls`

    _as_parameter_ = property(handles.number_of)  # the value for `ctypes.cast`

    def __init__(self, handle: torch.Tensor | NDArray | ctypes.c_void_p | None, writable: bool = True) -> None:
        # `writable` restrained MXNet's own callbacks; a torch tensor is always writable, as `writable` below returns.
        if handle is None:  # how pickles of MXNet start an array that __setstate__ then fills
            handle = torch.empty(0)
        if isinstance(handle, ctypes.c_void_p):
            handle = handles.array_of(handle)
        if isinstance(handle, NDArray):
            self._data, self._ctx, self._autograd = handle._data, handle._ctx, None
            return
        if not isinstance(handle, torch.Tensor):
            raise TypeError(f"NDArray wraps a torch tensor, received {type(handle).__name__}; build arrays with mx.nd.array(...)")
        self._data, self._ctx, self._autograd = handle, context_of(handle), None

    _new = classmethod(wrap)

    # -- properties -------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes, a tuple of int."""
        if traces and self._autograd is not None and mode.tracing is not None:
            return mode.tracing.shape(self)
        return tuple(self._data.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        if traces and self._autograd is not None and mode.tracing is not None:
            tuple(mode.tracing.shape(self))
        return self._data.numel()

    @property
    def ndim(self) -> int:
        """The number of axes."""
        if traces and self._autograd is not None and mode.tracing is not None:
            return len(mode.tracing.shape(self))
        return self._data.dim()

    @property
    def dtype(self) -> Any:
        """The numpy type of the elements."""
        if traces and self._autograd is not None and mode.tracing is not None:
            mode.tracing.read_type(self)
        return dtypes.to_numpy(self._data.dtype)

    @property
    def context(self) -> Context:
        """The device that holds the array."""
        return self._ctx

    ctx = device = context

    @property
    def stype(self) -> str:
        """The storage type: ``'default'``, ``'csr'`` or ``'row_sparse'``."""
        return "default"

    @property
    def T(self) -> NDArray:
        """The array with its axes in reverse order."""
        return self if self.ndim < 2 else self.transpose()

    @property
    def writable(self) -> bool:
        """Always True: arrays are writable here."""
        return True

    @property
    def handle(self) -> torch.Tensor:
        """The torch tensor of the array, in place of MXNet's pointer into its library."""
        if self._autograd is not None and mode.tracing is not None and in_graph(self):
            mode.tracing.refuse_values()
        return self._data

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"len(): an array with axes expected, received one of shape {self.shape}")
        return self.shape[0]

    def __hash__(self) -> int:
        return id(self) >> 4

    def __bool__(self) -> bool:
        if self.size == 0:
            return False
        if self.size > 1:
            raise ValueError(f"an NDArray of {self.size} elements has no truth value; ask for one element, or for that of a reduction")
        return bool(self._raw().item())

    def __repr__(self) -> str:
        return f"\n{self.asnumpy()}\n<{type(self).__name__} {'x'.join(map(str, self.shape))} @{self._ctx}>"

    def _repr_html_(self) -> str:
        from .html import html_of
        return html_of(self)

    def __iter__(self) -> Iterator[NDArray]:
        return (self[i] for i in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None,), self.__getstate__()

    def __copy__(self) -> NDArray:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> NDArray:
        return self.copy()

    def _raw(self) -> torch.Tensor:
        """Return the tensor without its history.

        Raises
        ------
        TraceError
            If it is a traced result, since a graph must not depend on values.
        """
        t = self._data
        if mode.tracing is not None and in_graph(self):
            mode.tracing.refuse_values()
        return t.detach() if t.requires_grad else t

    def _owns_memory(self) -> bool:
        """True if no view of something larger is lost when the tensor is replaced: it is all of its storage, or an unshared part of it."""
        t = self._data
        return not t._is_view() and t.untyped_storage().nbytes() == t.numel() * t.element_size() or hasattr(t, "alone")

    # -- values out ----------------------------------------------------------------------------------------------------

    def asnumpy(self) -> np.ndarray:
        """Return a numpy array with a copy of the values; waits until they are computed."""
        t = self._raw()
        try:
            if t.dtype == torch.bfloat16:
                return t.cpu().contiguous().view(torch.uint16).numpy().view(dtypes.BFLOAT16_BITS).copy()
            return t.numpy(force=True).copy(order="C") if not t.is_cuda else np.asarray(t.numpy(force=True), order="C")
        except ValueError as error:  # no elements, but sizes whose product is beyond all addresses
            raise MXNetError(f"asnumpy: NumPy holds no array of shape {tuple(t.shape)}: {error}") from None

    def asscalar(self) -> Any:
        """Return the one element as a numpy scalar.

        Raises
        ------
        ValueError
            If the array has not exactly one element.
        """
        if self.size != 1:
            raise ValueError(f"asscalar: an array of one element expected, received {self.size} elements")
        if self._data.dtype is torch.bfloat16:
            return self._raw().float().item()
        return self._raw().numpy(force=True).reshape(())[()]

    def as_torch(self) -> torch.Tensor:
        """Return the torch tensor that holds the values; memory is shared both ways."""
        memory_format.standard(self)
        mutation_tracking.share(self._data)
        if mode.tracing is not None and in_graph(self):
            mode.tracing.refuse_values()
        if mode.recording:
            explicit_calls.record_by_torch(self)
        return self._data if mode.recording else self._raw()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        reduced = object_arrays.element(self, dtype)
        if reduced is not None:
            return reduced
        values = self.asnumpy()
        return values if dtype is None else values.astype(dtype)

    def __dlpack__(self, **kwargs: Any) -> Any:
        memory_format.standard(self)
        mutation_tracking.share(self._data)
        return self._raw().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return self._raw().__dlpack_device__()

    def to_dlpack_for_read(self) -> Any:
        """Return a DLPack capsule that shares the memory, for readers."""
        mutation_tracking.share(self._data)
        return torch.utils.dlpack.to_dlpack(self._raw())

    def to_dlpack_for_write(self) -> Any:
        """Return a DLPack capsule that shares the memory, for writers."""
        memory_format.standard(self)
        mutation_tracking.expose(self._data)
        return torch.utils.dlpack.to_dlpack(self._raw())

    def wait_to_read(self) -> None:
        """Return when the values are computed."""
        if self._data.is_cuda:
            torch.cuda.current_stream(self._data.device).synchronize()

    # -- copies ----------------------------------------------------------------------------------------------------------

    def copy(self) -> NDArray:
        """Return a new array with the same values on the same device."""
        return self.copyto(self._ctx)

    def copyto(self, other: NDArray | Context) -> Any:
        """Copy into the array `other`, or into a new array on the device `other`.

        Raises
        ------
        TypeError
            If `other` is neither.
        """
        if isinstance(other, NDArray):
            if other is self:
                import warnings
                warnings.warn("copyto: source and target are one array, nothing was copied", RuntimeWarning, stacklevel=2)
                return False
            if other.shape != self.shape:
                raise MXNetError(f"copyto: the target has shape {other.shape}, the source {self.shape}")
            if mode.recording and in_graph(self):
                other._record_copy(self)
            else:
                other._set_values(self._raw())
            return other
        if isinstance(other, Context):
            ctx = intern_context(other)
            if mode.tracing is not None and ctx is self._ctx:
                return invoke(get_operator("_copy"), (self,), {}, cls=type(self))

            def copy(t: torch.Tensor) -> torch.Tensor:
                place = ctx.torch_device
                if place.type == "cuda" and t.is_cpu and not t.requires_grad:
                    return host_arrays.sent(t.contiguous(), place)
                return t.to(place, copy=True, memory_format=torch.contiguous_format)

            return self._recorded_call(copy, "_copyto", ctx)
        raise TypeError(f"copyto does not support type {type(other)}")

    def as_in_context(self, context: Context) -> NDArray:
        """Return the array itself if it is on `context`, otherwise a copy there."""
        return self._on(context)

    def _on(self, context: Context) -> Any:
        """`as_in_context`, which arrays of ``mx.np`` warn of."""
        if self._ctx is context or self._ctx == context:
            return self
        return self.copyto(context)

    def astype(self, dtype: DType | None, copy: bool = True) -> NDArray:
        """Return the values converted to `dtype`; the array itself if `copy` is False and nothing needs converting."""
        if dtype is None:
            dtype = "float32"
        target = dtypes.to_torch(dtype)
        if not copy and target == self._data.dtype:
            return self
        return invoke(_CAST, (self,), {"dtype": target}, cls=type(self) if not self._is_sparse else None)

    def detach(self) -> NDArray:
        """Return the same values in the same memory, detached from the recorded computation."""
        if not self._data.is_contiguous():  # while nothing shares it
            memory_format.standard(self)
        array = type(self)._new(self._data.detach(), self._ctx)
        if mode.tracing is not None:
            array._autograd = invoke(get_operator("BlockGrad"), (self,), {}, cls=type(self))._autograd
        return array

    def _end_history(self) -> None:
        """Make the array a constant, which no backward differentiates any more."""
        self._rebind(self._data.detach())
        self._autograd = None

    def as_nd_ndarray(self) -> NDArray:
        """Return the array as ``mx.nd.NDArray``, sharing memory."""
        return self

    # -- values in -------------------------------------------------------------------------------------------------------

    def _writable(self) -> torch.Tensor:
        """Return the tensor to write new values into, past torch's version counter."""
        if mutation_tracking.watched:  # so it is as long as a block is traced
            mutation_tracking.written(self._data)
            if mode.tracing is not None:
                mode.tracing.wrote()
        return self._data.data

    def _rebind(self, tensor: torch.Tensor) -> None:
        """Hold another tensor from now on. No array changes its tensor otherwise."""
        self._data = tensor
        mutation_tracking.tensor_replacements.count += 1

    def _release(self) -> None:
        """Give up the memory: shape and type stay, and all values are one zero, not to be written to until `_allocate`."""
        self._rebind(self._data.detach().new_zeros(()).expand(self.shape))

    def _allocate(self) -> None:
        """Allocate memory again, uninitialized."""
        self._rebind(torch.empty(self.shape, dtype=self._data.dtype, device=self._data.device))

    def _set_values(self, tensor: torch.Tensor) -> None:
        """Overwrite the values even if they are recorded: a later backward uses the new ones, as in MXNet."""
        target = self._writable()
        source = mutation_tracking.apart(tensor, target)
        if target.is_cuda:
            target.copy_(host_arrays.staged(source, target.device), non_blocking=True)
        else:
            target.copy_(source)

    def _record_copy(self, source: NDArray) -> None:
        """Overwrite all values with those of an array in the recorded computation, and add this array to the computation."""
        if in_graph(self):
            refuse_inplace(self)
        target = self._writable()
        copied = source._recorded_call(lambda t: target.copy_(mutation_tracking.apart(drop_leading(t, target.dim()), target)), "_copyto", self._ctx)
        self._rebind(copied._data)
        share_history(self, copied._autograd)

    def __setitem__(self, key: Any, value: Any) -> None:
        if mode.recording and (in_graph(self) or isinstance(value, NDArray) and in_graph(value)):
            if isinstance(value, NDArray) and not in_graph(self) and not value._is_sparse and _is_whole(key, self.shape):
                try:
                    return self._record_copy(value)
                except MXNetError:
                    raise ValueError(f"cannot assign values of shape {value.shape} to a selection of shape {self.shape}") from None
            refuse_inplace(self, *[value] if isinstance(value, NDArray) else [])
        if type(key) is bool or type(key) is tuple and any(type(k) is bool for k in key):
            key = tuple(k for k in _plain_key(key) if type(k) is not bool) or Ellipsis  # as in MXNet, where reading takes them as 0 and 1
        target = self._writable()
        if key is Ellipsis or type(key) is slice and indexing.takes_all(key) or isinstance(key, tuple) and not key and not target.dim():
            pass
        elif indexing.is_basic(key):
            if isinstance(key, slice) or not isinstance(key, tuple):
                key = (key,)
            steps = [k.step for k in key if isinstance(k, slice)]
            if any(s is not None and s < 0 for s in steps):
                # Assigning to a reversed grid: assign the reversed values to the grid.
                return self._assign_reversed(key, value)
            target = indexing.basic_view(target, key)
        else:
            where = indexing.advanced_key(_plain_key(key), target.shape, target.device, index_tensor)
            values = mutation_tracking.apart(self._as_values(value).to(target.dtype), target)
            try:
                target[where] = values
            except (RuntimeError, IndexError):
                raise ValueError(f"cannot assign values of shape {tuple(values.shape)} to the selection {key!r} "
                                 f"of an array of shape {self.shape}") from None
            return None
        if type(value) in (int, float, bool):
            try:
                target.fill_(value)
            except OverflowError:  # an integer beyond 64 bits
                target.fill_(wrap_integer(value, target.dtype) if not target.dtype.is_floating_point else float(value))
            except RuntimeError:  # torch refuses values that C's conversion accepts, which uses 32 or 64 bits, or their smallest integer
                wide = torch.iinfo(torch.int64 if target.dtype is torch.int64 else torch.int32)
                target.fill_(wrap_integer(value if wide.min <= value <= wide.max else wide.min, target.dtype))
            return None
        values = self._as_values(value)
        try:
            source = mutation_tracking.apart(drop_leading(values, target.dim()), target)
            if target.is_cuda:
                target.copy_(host_arrays.staged(source, target.device), non_blocking=True)
            else:
                target.copy_(source)
        except RuntimeError:
            raise ValueError(f"cannot assign values of shape {tuple(values.shape)} to a selection of shape {tuple(target.shape)}") from None

    def _assign_reversed(self, key: Any, value: Any) -> None:
        target, forward, flipped, axis = self._writable(), [], [], 0
        sizes = iter(target.shape)
        for k in indexing.expand(key, target.dim()):
            size = 1 if k is None else next(sizes)  # None is an axis of the selection only
            if isinstance(k, slice):
                start, stop, step, count = indexing.normalize_slice(k, size)
                if step < 0:
                    flipped.append(axis)
                    k = slice(start + step * (count - 1), start + 1, -step) if count else slice(0, 0)
            axis += k is None or isinstance(k, slice)
            forward.append(k)
        view = indexing.basic_view(target, tuple(forward))
        values = drop_leading(self._as_values(value), view.dim())
        try:
            view.copy_(values.expand(view.shape).flip(flipped))
        except RuntimeError:
            raise ValueError(f"cannot assign values of shape {tuple(values.shape)} to a selection of shape {tuple(view.shape)}") from None

    def _as_values(self, value: Any) -> torch.Tensor:
        """Return a tensor with the values to assign, of this array's type and on its device."""
        t = self._data
        if isinstance(value, NDArray):
            return value._raw().to(t.device)
        if isinstance(value, torch.Tensor):
            return value.detach().to(t.device)
        try:
            return host_arrays.as_tensor(value, t.dtype).to(t.device)
        except (TypeError, ValueError) as error:
            kind = ValueError if isinstance(error, ValueError) and isinstance(value, np.ndarray) else TypeError
            raise kind(f"numbers and arrays can be assigned to an NDArray, received {shortened(value)} of type {type(value)}: {error}") from None

    def __getitem__(self, key: Any) -> NDArray:
        if type(key) is int:
            if self._eligible(self):
                try:
                    row = self._data[key]
                    if row.dim() and row.is_contiguous():
                        return wrap(type(self), row, self._ctx)
                    del row  # `_select` moves memory that nothing else uses
                except IndexError:  # the error below has MXNet's text
                    pass
            size = self._data.shape[0] if self._data.dim() else 0
            if not self._data.dim():
                raise IndexError(f"an array without axes cannot be indexed with the integer {key}")
            index = indexing.check_integer(key, 0, size)
            return self._select(lambda t: t.select(0, index), key)
        if isinstance(key, list) and len(key) == 0:
            return type(self)._new(self._raw()[0:0], self._ctx)
        if indexing.is_basic(key):
            if isinstance(key, tuple) and not key or type(key) is slice and indexing.takes_all(key) and not self._data.dim():
                return self
            return self._select(lambda t: indexing.basic_view(t, key), key)
        if mode.tracing is not None:
            return mode.tracing.index(self, key)
        if type(key) is bool or type(key) is tuple and any(type(k) is bool for k in key):
            return self[tuple(int(k) if type(k) is bool else k for k in _plain_key(key))]
        where = indexing.advanced_key(_plain_key(key), self.shape, self._data.device, index_tensor)
        return self._recorded_call(lambda t: t[where], "_advanced_indexing", self._ctx, [key])

    def _select(self, view: Callable[[torch.Tensor], torch.Tensor], key: Any) -> NDArray:
        zero_dim = util.is_np_shape()

        def select(t: torch.Tensor) -> torch.Tensor:
            v = view(t)
            # MXNet shares memory only where the selection is one run of it; anything else is a copy.
            if not v.is_contiguous():
                if not t.is_contiguous():  # weights with their channels last, whose rows are to be one run all the same
                    del v
                    memory_format.standard(self)
                    v = view(t)
                v = v.contiguous()
            return v if v.dim() or zero_dim else v.reshape(1)

        if self._eligible(self):
            return wrap(type(self), select(self._data), self._ctx)
        if mode.tracing is not None:
            return mode.tracing.index(self, key)
        return self._recorded_call(select, "_basic_indexing", self._ctx, [key])

    def _recorded_call(self, fn: Callable[[torch.Tensor], torch.Tensor], name: str, ctx: Context, keys: Sequence[Any] = ()) -> NDArray:
        """Call a function of the tensor that is no registered operator, under autograd's rules. `keys` holds the key of an indexing."""
        pseudo = pseudo_operator(name)
        result, recorded = dispatch.run(pseudo, fn, (self._data,), {}, self._ctx)
        out = type(self)._new(result, ctx)
        if recorded or (mode.recording and in_graph(self)):
            # Used by `autograd.get_symbol`.
            attrs = {"key": keys[0], "shape": self.shape, "result": out.shape} if keys else {}
            arrays = [self, *(k for key in keys for k in _plain_key(key) if isinstance(k, NDArray))]
            dispatch.record(pseudo, attrs, arrays, (out,))
        return out

    def slice_assign(self, rhs: NDArray, begin: Sizes, end: Sizes, step: Sizes | None = None) -> NDArray:
        """Return a copy of the array with ``[begin:end:step]`` replaced by `rhs`."""
        return invoke(get_operator("_slice_assign"), (self, rhs), {"begin": begin, "end": end, "step": step or ()})

    def slice_assign_scalar(self, value: float, begin: Sizes, end: Sizes, step: Sizes | None = None) -> NDArray:
        """Return a copy of the array with ``[begin:end:step]`` replaced by a number."""
        return invoke(get_operator("_slice_assign_scalar"), (self,), {"scalar": value, "begin": begin, "end": end, "step": step or ()})

    # -- shapes ------------------------------------------------------------------------------------------------------------

    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        """Return the array with another shape, sharing memory.

        Parameters
        ----------
        *shape : int or tuple of int
            ``0`` keeps a size, ``-1`` is inferred; ``-2``, ``-3``, ``-4`` as in `mx.nd.reshape`.
        reverse : bool
            Match sizes from the right.

        Raises
        ------
        ValueError
            If the new shape has fewer entries.
        MXNetError
            If the sizes don't fit otherwise.
        """
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = shape[0]  # type: ignore[assignment]  # a list will do for the rest
            if not shape and not kwargs:
                if self.size != 1:
                    raise ValueError(f"reshape: {self.size} entries expected, shape () has 1")
                return self._recorded_call(lambda t: t.reshape(()), "_basic_indexing", self._ctx)
        if not self._is_sparse and not self._data.is_contiguous():
            memory_format.standard(self)
        if not kwargs and shape and (min(shape) > 0 or shape == (-1,)) and self._eligible(self):
            try:  # no special codes but "all in a row"
                return wrap(type(self), self._data.reshape(shape), self._ctx)
            except (RuntimeError, TypeError):
                count = int(np.prod(shape))
                if 0 < count < self.size:
                    raise ValueError(f"reshape: {self.size} entries expected, shape {tuple(shape)} has {count}") from None
        if not shape:
            shape = kwargs.get("shape")  # type: ignore[assignment]  # refused below
            if not shape and shape != ():
                raise MXNetError(f"reshape: a shape must be given, received {shape}")
        unknown = set(kwargs) - {"shape", "reverse"}
        if unknown:
            raise TypeError(f"reshape got unexpected arguments {sorted(unknown)}; it takes `shape` and `reverse`")
        return invoke(_RESHAPE, (self,), {"shape": tuple(shape), "reverse": kwargs.get("reverse", False)}, cls=type(self), fn=_RESHAPE.view)

    # -- autograd ----------------------------------------------------------------------------------------------------------

    def _mark(self, grad: Any, grad_req: str) -> None:
        if grad_req not in GRAD_REQS:
            raise KeyError(f"grad_req must be one of {tuple(GRAD_REQS)}, received {shortened(grad_req)}")
        if mode.tracing is not None and (original := mode.tracing.marks(self)) is not None:
            original._mark(grad, grad_req)
            self._rebind(original._data)
            self._autograd = original._autograd
            return
        before = self.grad
        if before is not None and before is not grad:
            memory_format.keep(before)  # a captured graph goes on writing there
        self._autograd = Marked(grad, grad_req)
        leaf = self._data.detach()
        if grad_req != "null" and leaf.dtype.is_floating_point:
            leaf.requires_grad_()
            leaf.register_post_accumulate_grad_hook(self._autograd.deliver)
        elif grad_req != "null":
            from ..ops import integers
            leaf = integers.mark(leaf, self._autograd.deliver)
        self._rebind(leaf)

    @property
    def grad(self) -> Any:
        """The gradient, if `attach_grad` has been called, else None."""
        info = self._autograd
        return info.grad if info is not None else None

    @property
    def _fresh_grad(self) -> bool:
        info = self._autograd
        return info is not None and info.fresh

    @_fresh_grad.setter
    def _fresh_grad(self, value: bool) -> None:
        if isinstance(self._autograd, Marked):
            self._autograd.fresh = bool(value)

    # -- arithmetic (the operators between two arrays are in arithmetic.py) -------------------------------------------------

    def __neg__(self) -> NDArray:
        return invoke(_NEGATIVE, (self,), {}, cls=type(self))

    def __abs__(self) -> NDArray:
        return self.abs()


def share_memory(array: Any, cls: type[Any]) -> Any:
    """Return the array as another class, with the same values, gradient and history."""
    if type(array) is cls:
        return array
    if not array._data.is_contiguous():  # as for `detach`
        memory_format.standard(array)
    out = cls._new(array._data, array._ctx)
    dispatch.share_history(out, array._autograd)
    return out


def context_of(tensor: torch.Tensor) -> Context:
    """Return the context of a tensor's device."""
    return gpu(tensor.device.index or 0) if tensor.is_cuda else cpu(0)


def from_torch(tensor: torch.Tensor, ctx: Context | None = None) -> NDArray:
    """Return an NDArray that shares memory with a torch tensor; inside of ``autograd.record()`` also its history, so that a gradient
    flows on into torch.

    Parameters
    ----------
    tensor : torch.Tensor
        Of a type that MXNet supports.
    ctx : Context, optional
        The device it counts as, such as ``cpu(1)``; by default the tensor's own.

    Example
    -------
    >>> import torch, mxnet as mx
    >>> t = torch.zeros(2)
    >>> x = mx.nd.from_torch(t)
    >>> x[:] = 3
    >>> t
    tensor([3., 3.])
    """
    dtypes.name_of(tensor.dtype)
    mutation_tracking.share(tensor)
    array = NDArray._new(tensor if mode.recording else tensor.detach(), intern_context(ctx) if ctx is not None else context_of(tensor))
    if array._data.requires_grad:
        array._autograd = dispatch.Recorded(dispatch.TapeNode(pseudo_operator("from_torch"), {}, []), 0)
    return array


def _plain_key(key: Any) -> tuple[Any, ...]:
    return tuple(key) if isinstance(key, tuple) else (key,)


def index_tensor(k: Any) -> torch.Tensor:
    if isinstance(k, NDArray):
        return k._raw()
    if isinstance(k, (list, np.ndarray, tuple, range)):
        with contextlib.suppress(TypeError, ValueError):
            return host_arrays.as_tensor(k, torch.int64)  # masks of NumPy are indices 0 and 1, as in MXNet
    if isinstance(k, torch.Tensor):
        return k.detach()
    raise ValueError(f"an NDArray is indexed by integers, slices, arrays, None and ..., received {shortened(k)} of type {type(k)}")


def _is_whole(key: Any, shape: Sequence[int]) -> bool:
    """Return whether an index is the whole array, in its order."""
    keys = key if type(key) is tuple else (key,)
    return len(keys) == 1 and keys[0] is Ellipsis or len(keys) <= len(shape) and all(
        type(k) is slice and indexing.normalize_slice(k, size)[1:] == (size, 1, size) and not k.start for k, size in zip(keys, shape))


def drop_leading(values: torch.Tensor, ndim: int) -> torch.Tensor:
    """Values with more axes than the target, the extra ones of size 1, as numpy allows in assignments."""
    while values.dim() > ndim and values.shape[0] == 1:
        values = values[0]
    return values


# Attached once the operators exist (see __init__); named here because methods above use them.
_CAST = get_operator("Cast")
_RESHAPE = get_operator("Reshape")
_NEGATIVE = get_operator("negative")
dispatch.NDArray = NDArray
NDArray._eligible = staticmethod(eligibility(NDArray))
NDArray._basic_indexing_slice_is_contiguous = staticmethod(indexing.side_by_side)
# Programs with indexing of their own call these.
NDArray._broadcast_advanced_indices = staticmethod(index_helpers.broadcast_indices)
NDArray._new_axes_after_basic_indexing = staticmethod(index_helpers.axes_after_basic)
NDArray._new_axes_after_advanced_indexing = staticmethod(index_helpers.axes_after_advanced)
# The numbers of storage types in files and in MXNet's C interface; programs import them from here.
_STORAGE_TYPE_UNDEFINED, _STORAGE_TYPE_DEFAULT, _STORAGE_TYPE_ROW_SPARSE, _STORAGE_TYPE_CSR = -1, 0, 1, 2
_STORAGE_TYPE_ID_TO_STR = {-1: "undefined", 0: "default", 1: "row_sparse", 2: "csr"}
_STORAGE_TYPE_STR_TO_ID = {name: number for number, name in _STORAGE_TYPE_ID_TO_STR.items()}
__all__ = ["NDArray", "current_context", "from_torch", "integer_types", "numeric_types"]
