"""The array of ``mx.np``."""
import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as onp
import torch

from ..base import MXNetError, integer_types, numeric_types
from ..context import Context, cpu, intern_context
from ..lazy_modules import load_module
from ..ndarray import NDArray, dispatch, indexing, memory_format, mutation_tracking
from ..ndarray.dispatch import in_graph, invoke, mode, refuse_inplace, traces, wrap
from ..ndarray.fast_calls import eligibility
from ..ndarray.ndarray import drop_leading, share_memory
from ..ops import dtypes, host_arrays
from ..ops.registry import get
from ..suggestions import shortened

if TYPE_CHECKING:
    from ._attached import Methods as _Base  # an NDArray, with the members attached later: methods, Python's arithmetic
else:
    _Base = NDArray

__all__ = ["ndarray"]


class ndarray(_Base):  # noqa: N801
    """An array with NumPy's semantics: scalars are arrays without axes, comparisons are boolean, types mix.

    Arrays come from `mx.np.array`, `mx.np.zeros` and the functions of ``mx.np``; `as_nd_ndarray` gives the same array to ``mx.nd``.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.npx.set_np()
    >>> x = mx.np.array([[1, 2], [3, 4]])
    >>> x[x > 1] + 0.5
    array([2.5, 3.5, 4.5])
    """

    __slots__ = ("__dict__",)  # programs keep notes on arrays, as in MXNet

    # -- properties -------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> onp.dtype[Any]:
        """The type of the elements, a ``numpy.dtype``."""
        if traces and self._autograd is not None and mode.tracing is not None:
            mode.tracing.read_type(self)
        return onp.dtype(dtypes.to_numpy(self._data.dtype))

    @property
    def T(self) -> "ndarray":  # noqa: N802
        """The array with its axes in reverse order."""
        return self.transpose()

    @property
    def context(self) -> Context:
        """The device that holds the array; MXNet now calls it `ctx`."""
        warnings.warn("context is the old name; read ctx", DeprecationWarning, stacklevel=2)
        return self._ctx

    @property
    def ctx(self) -> Context:
        """The device that holds the array."""
        return self._ctx

    @property
    def mT(self) -> "ndarray":  # noqa: N802
        """Matrices with rows and columns exchanged.

        Raises
        ------
        ValueError
            If the array has fewer than two axes.
        """
        if self.ndim < 2:
            raise ValueError(f"mT: matrices expected, received an array of shape {self.shape}")
        return self.swapaxes(-1, -2)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        """Return the functions of the array API standard on these arrays: ``mxnet.numpy.array_api``.

        MXNet 2.0 calls the standard's first version, 2021.12, ``'2021.10'``.

        Raises
        ------
        ValueError
            If `api_version` is a version that these functions do not follow.
        """
        if api_version not in (None, "2021.10", "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(f"api_version must be '2024.12' or an earlier version, received {shortened(api_version)}")
        return load_module("mxnet.numpy.array_api")

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None,
                   copy: bool | None = None) -> Any:
        """Return the memory as a DLPack capsule; see the array API standard."""
        memory_format.standard(self)
        return self._raw().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __index__(self) -> int:
        if self.ndim or self._data.is_floating_point() or self._data.is_complex() or self._data.dtype is torch.bool:
            raise TypeError(f"only integer arrays without axes can be indices, received an array of shape {self.shape} and type {self.dtype}")
        return int(self._raw().item())

    def __complex__(self) -> complex:
        if self.size != 1:
            raise TypeError(f"an array of one element expected, received {self.size} elements")
        return complex(self._raw().item())

    @property
    def device(self) -> Context:
        """The device that holds the array: MXNet 2's name of `ctx`."""
        return self._ctx

    def __len__(self) -> int:
        if not self._data.dim():
            raise TypeError(f"len() of unsized object: an array with axes expected, received one of shape {self.shape}")
        return self.shape[0] if traces else self._data.shape[0]

    def __hash__(self) -> int:
        raise NotImplementedError("arrays whose == compares elements cannot be keys; use id(x)")

    def __bool__(self) -> bool:
        if self.size == 0:
            warnings.warn(f"an empty array, of shape {self.shape}, has no truth value; it counts as False for now; ask for x.size",
                          DeprecationWarning, stacklevel=2)
            return False
        if self.size > 1:
            raise ValueError(f"an array of {self.size} elements has no truth value; use x.any() or x.all()")
        return bool(self._raw().item())

    def __repr__(self) -> str:
        text = repr(self.asnumpy())
        dtype = self.dtype
        if "dtype=" in text:
            if dtype == onp.float32:
                text = text[:text.rindex(",")] + ")"
        elif dtype not in (onp.float32, onp.bool_):
            text = f"{text[:-1]}, dtype={dtype})"
        return text if self._ctx.device_type == "cpu" else f"{text[:-1]}, ctx={self._ctx})"

    def __str__(self) -> str:
        text = str(self.asnumpy())
        return text if self._ctx.device_type == "cpu" or not self.ndim else f"{text} @{self._ctx}"

    def __format__(self, spec: str) -> str:
        if not self.ndim:
            return format(self.item(), spec)
        if spec:
            raise TypeError(f"an array with axes has no format {spec!r}; format its elements")
        return str(self)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError(f"iteration over a 0-d array: an array with axes expected, received one of shape {self.shape}")
        return (self[i] for i in range(len(self)))

    def __copy__(self) -> "ndarray":
        return self.copy()

    def __deepcopy__(self, memo: Any) -> "ndarray":
        return self.copy()

    @property
    def grad(self) -> "ndarray | None":
        """The gradient that `attach_grad` asked for; None without it, or if its `grad_req` is 'null'."""
        info = self._autograd
        return info.grad if info is not None and info.grad_req != "null" else None

    # -- copies and conversions ----------------------------------------------------------------------------------------

    def item(self, *args: Any) -> Any:
        """One element as a Python number: the only one, or that at an index."""
        return self.asnumpy().item(*args)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        return self.asnumpy().tolist()

    def as_nd_ndarray(self) -> NDArray:
        """Return the same array as ``mx.nd.NDArray``: memory, gradient and history are shared."""
        return share_memory(self, NDArray)

    def as_np_ndarray(self) -> "ndarray":
        """Return the array itself."""
        return self

    def as_in_ctx(self, ctx: Context) -> "ndarray":
        """Return the array itself if it is on `ctx`, otherwise a copy there."""
        return self._on(ctx)

    def to_device(self, device: Context | str, *, stream: None = None) -> "ndarray":
        """Return the array itself if it is on `device`, otherwise a copy there: MXNet 2's name of `as_in_ctx`.

        Raises
        ------
        ValueError
            If a `stream` is named; copies go on the device's current one.
        """
        if stream is not None:
            raise ValueError(f"to_device: copies go on the device's current stream, so that stream must be None, received {shortened(stream)}")
        return self._on(intern_context(device))

    def as_in_context(self, context: Context) -> "ndarray":
        """Return the array on `context`; MXNet now calls it `as_in_ctx`."""
        warnings.warn("as_in_context is the old name; call as_in_ctx", DeprecationWarning, stacklevel=2)
        return self.as_in_ctx(context)

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> "ndarray":
        """Return the values converted to `dtype`; the array itself if `copy` is False and nothing needs converting.

        Raises
        ------
        ValueError
            If `order`, `casting` or `subok` has a value that arrays here do not support.
        """
        if order not in (None, "K", "C"):
            raise ValueError(f"order must be either 'K' or 'C', received {shortened(order)}")
        if casting != "unsafe":
            raise ValueError(f"casting must be equal to 'unsafe', received {shortened(casting)}")
        if not subok:
            raise ValueError(f"subok must be equal to True, received {shortened(subok)}")
        return super().astype(dtype, copy=copy)

    def copy(self, order: str = "C") -> "ndarray":
        """Return a new array with the same values on the same device."""
        if order != "C":
            raise NotImplementedError(f"copy: order must be 'C', received {shortened(order)}")
        return self.copyto(self._ctx)

    def copyto(self, other: Any) -> "ndarray":
        """Copy into the array `other`, or into a new array on the device `other`."""
        if isinstance(other, NDArray) and not isinstance(other, ndarray) or not isinstance(other, (ndarray, Context)):
            raise TypeError(f"copyto does not support type {type(other)}")
        return super().copyto(other)

    def attach_grad(self, grad_req: str = "write") -> None:
        """Ask for the gradient of this array in every later backward pass; see `mx.nd.NDArray.attach_grad`."""
        if mode.tracing is not None and (original := mode.tracing.marks(self)) is not None:
            original.attach_grad(grad_req)
            self._rebind(original._data)
            self._autograd = original._autograd
            return
        self._mark(type(self)._new(torch.zeros_like(self._raw(), memory_format=torch.contiguous_format), self._ctx), grad_req)

    def drop_grad(self) -> None:
        """Make the array a constant again, and free the gradient that `attach_grad` asked for."""
        self._end_history()

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "ndarray":
        """Return the diagonals of the matrices in two axes, along a new last axis."""
        return invoke(get("_np_diagonal"), (self,), {"offset": offset, "axis1": axis1, "axis2": axis2}, cls=ndarray)

    def reshape_view(self, *shape: Any, **kwargs: Any) -> "ndarray":
        """Return the array with another shape, sharing memory; the codes of `mx.nd.NDArray.reshape` hold."""
        return super().reshape(*shape, **kwargs)

    # -- indexing ------------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> "ndarray":
        if type(key) is int:
            if not self._data.dim():
                raise IndexError(f"a scalar has no axes to index, received {key}; only (), ... and None fit")
            index = indexing.check_integer(key, 0, self._data.shape[0])
            return self._select(lambda t: t.select(0, index), key)
        key = _normalized(key)
        if key is Ellipsis or isinstance(key, tuple) and key == ():
            return self
        if not self._data.dim() and not _is_mask(key) and not _names_no_axis(key):
            raise IndexError(f"a scalar has no axes to index, received {key}; only (), ... and None fit")
        if indexing.is_basic(key):
            return self._select(lambda t: indexing.basic_view(t, key), key)
        if mode.tracing is not None:
            return mode.tracing.index(self, key)
        if _is_mask(key) and not key.size and key.ndim <= self.ndim and all(m in (n, 0) for m, n in zip(key.shape, self.shape)):
            return self._recorded_call(lambda t: t.new_empty((0, *t.shape[key.ndim:])), "_advanced_indexing", self._ctx, [key])
        where, flips = _torch_key(key, self)
        return self._recorded_call(lambda t: (_flip(t, flips) if flips else t)[where], "_advanced_indexing", self._ctx, [key])

    def _select(self, view: Any, key: Any) -> "ndarray":
        def select(t):
            v = view(t)
            # MXNet shares memory only where the selection is one run of it; anything else is a copy.
            if not v.is_contiguous():
                if not t.is_contiguous():
                    del v
                    memory_format.standard(self)
                    v = view(t)
                v = v.contiguous()
            return v

        if self._eligible(self):
            return wrap(ndarray, select(self._data), self._ctx)
        if mode.tracing is not None:
            return mode.tracing.index(self, key)
        return self._recorded_call(select, "_basic_indexing", self._ctx, [key])

    # MXNet has a method for each kind of key; here one reads, and one writes, with all of them.
    _get_np_basic_indexing = _get_np_advanced_indexing = _get_np_empty_tuple_indexing = __getitem__

    def _get_np_boolean_indexing(self, key: Any, ndim: int, shape: Sequence[int]) -> "ndarray":
        return self[key]

    def _set_np_advanced_indexing(self, key: Any, value: Any) -> None:
        self[key] = value

    _set_np_boolean_indexing = _set_np_advanced_indexing

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, NDArray) and not isinstance(value, ndarray):
            raise TypeError(f"an array of mx.np expected as values, received an NDArray of mx.nd of shape {value.shape}; call as_np_ndarray() on it")
        if self._data.dtype in _WITHOUT_NUMBERS:
            value = self._as_own_type(value)
            if self._data.dtype in _SIGNED:  # the same memory, under a name that torch writes to in every way
                ndarray._new(_signed(self._writable()), self._ctx)[key] = value
                return
        key = _normalized(key)
        all_elements = key is Ellipsis or isinstance(key, tuple) and key == () or not self._data.dim() and _names_no_axis(key)
        if not self._data.dim() and not all_elements and not _is_mask(key):
            raise IndexError(f"a scalar has no axes to index, received {key}; only (), ... and None fit")
        if mode.recording and (in_graph(self) or isinstance(value, NDArray) and in_graph(value)):
            refuse_inplace(self, *[value] if isinstance(value, NDArray) else [])
        if not self._data.dim() and not _is_mask(key):
            if not isinstance(value, (*numeric_types, ndarray, onp.ndarray)) or not isinstance(value, numeric_types) and value.size != 1:
                raise ValueError(f"one number expected for an element, received {shortened(value)}")
            value = value.reshape(()) if isinstance(value, (ndarray, onp.ndarray)) else value
        if indexing.is_basic(key):
            return super().__setitem__(key, value)
        if isinstance(key, tuple) and any(_is_mask(k) and not k.ndim and not bool(k) for k in key):
            return  # False selects nothing
        where, flips = _torch_key(key, self)
        base = self._writable()
        target = base.flip(flips) if flips else base  # torch has no negative steps: a flipped copy is written to, and copied back
        values = mutation_tracking.apart(self._as_values(value).to(target.dtype), base)
        if _is_mask(key) and values.numel() == 1:
            mask = where[0]
            target.masked_fill_(mask.reshape((*mask.shape, *[1] * (target.dim() - mask.dim()))), values.reshape(()))
            return
        selected = tuple(target[where].shape) if values.dim() else ()
        try:
            target[where] = drop_leading(values, len(selected))
            if flips:
                base.copy_(target.flip(flips))
        except (RuntimeError, IndexError):
            raise ValueError(f"cannot assign values of shape {tuple(values.shape)} to a selection of shape {selected}") from None

    def _as_own_type(self, value: Any) -> Any:
        """Numbers or an array as an array of this one's type; unsigned integers of more than 8 bits as signed ones of the same bits."""
        dtype = self._data.dtype
        if isinstance(value, ndarray):
            values = value._raw().to(self._data.device, dtype)
        else:
            if isinstance(value, int) and not dtype.is_complex:
                value = value % 2**(8 * dtype.itemsize)
            values = torch.from_numpy(onp.array(value, self.dtype)).to(self._data.device)
        return ndarray._new(_signed(values), self._ctx)

    # -- methods whose arguments differ from those of the functions ------------------------------------------------------

    def reshape(self, *args: Any, **kwargs: Any) -> "ndarray":
        """Return the array with another shape: sizes, or a tuple of them; one may be -1."""
        order = kwargs.pop("order", "C")
        if kwargs:
            raise TypeError(f"reshape takes order by name only, received {next(iter(kwargs))!r}")
        if order != "C":
            raise NotImplementedError(f"reshape: order must be 'C', received {shortened(order)}")
        if not args:
            raise TypeError("reshape: a shape expected, received nothing")
        shape = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        return invoke(_RESHAPE, (self,), {"newshape": tuple(shape)}, cls=ndarray)

    def flatten(self, order: str = "C") -> "ndarray":
        """Return the elements in one axis."""
        return self.reshape(-1, order=order)

    def transpose(self, *axes: Any) -> "ndarray":
        """Return the axes in another order, by default reversed."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = axes[0] or ()
        if axes and sorted(a % max(self.ndim, 1) for a in axes) != list(range(self.ndim)):
            kind = ValueError if len(set(axes)) < len(axes) else MXNetError
            raise kind(f"transpose: axes {tuple(axes)} are no order of the {self.ndim} axes")
        return invoke(get("_np_transpose"), (self,), {"axes": tuple(axes)} if axes else {}, cls=ndarray)

    def slice_assign(self, rhs: Any, begin: Any, end: Any, step: Any) -> "ndarray":
        """Write `rhs` to the block ``begin:end:step`` of this array."""
        return invoke(get("_npi_slice_assign"), (self, rhs), {"begin": begin, "end": end, "step": step}, self, ndarray)

    def slice_assign_scalar(self, value: Any, begin: Any, end: Any, step: Any) -> "ndarray":
        """Write a number to the block ``begin:end:step`` of this array."""
        return invoke(get("_npi_slice_assign_scalar"), (self,), {"scalar": value, "begin": begin, "end": end, "step": step}, self, ndarray)


# Types of which torch moves the elements only under another name.
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}

# Types to which torch writes no Python numbers, or only some of them.
_WITHOUT_NUMBERS = {*_SIGNED, torch.complex64, torch.complex128}


def _signed(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of unsigned integers of more than 8 bits as signed integers in the same memory."""
    return tensor.view(_SIGNED[tensor.dtype]) if tensor.dtype in _SIGNED else tensor


def _flip(tensor: torch.Tensor, axes: list[int]) -> torch.Tensor:
    signed = _signed(tensor)
    return tensor.flip(axes) if signed.dtype is tensor.dtype else signed.flip(axes).view(tensor.dtype)  # through which no gradient flows


def _names_no_axis(key: Any) -> bool:
    return all(k is None or k is Ellipsis for k in key) if isinstance(key, tuple) else key is None or key is Ellipsis


def _is_mask(key: Any) -> bool:
    return isinstance(key, ndarray) and key._data.dtype is torch.bool


def _normalized(key: Any) -> Any:
    """Convert booleans and lists of booleans in a key to arrays, since NumPy treats them as masks."""
    if isinstance(key, (bool, onp.bool_)):
        return ndarray._new(torch.tensor(bool(key)), _cpu())
    if isinstance(key, list):
        try:
            values = onp.array(key)
        except ValueError as error:
            raise TypeError(str(error)) from None
        if values.dtype == onp.bool_ and values.size:
            return ndarray._new(host_arrays.as_tensor(values), _cpu())
        return key
    if isinstance(key, onp.ndarray) and key.dtype == onp.bool_:
        return ndarray._new(host_arrays.as_tensor(key), _cpu())
    if isinstance(key, tuple) and any(isinstance(k, (bool, onp.bool_, list, onp.ndarray)) for k in key):
        return tuple(_normalized(k) for k in key)
    return key


def _cpu() -> Context:
    return cpu(0)


def _torch_key(key: Any, array: Any) -> Any:
    """Return a key for torch's indexing, and the axes to flip before for slices with negative steps."""
    shape, flips = list(array.shape), []
    if _is_mask(key):
        mask = key._raw()
        if mask.dim() > len(shape):
            raise IndexError(f"a mask of at most {len(shape)} axes expected, received one of {mask.dim()}")
        for axis, (size, wanted) in enumerate(zip(mask.shape, shape)):
            if size != wanted:
                raise IndexError(f"a mask must have the array's shape: axis {axis} has {wanted} entries, {size} in the mask")
        return (mask.to(array._data.device),), flips
    keys = _without_scalar_masks(key) if isinstance(key, tuple) else (key,)
    if any(isinstance(k, slice) and k.step is not None and k.step < 0 for k in keys):
        tensors = tuple(_index_tensor(k) if not (k is None or k is Ellipsis or isinstance(k, (slice, *integer_types))) else k for k in keys)
        keys, axis = [], 0
        for k in indexing.expand(tensors, len(shape)):
            if isinstance(k, slice) and k.step is not None and k.step < 0:
                start, stop, step, count = indexing.normalize_slice(k, shape[axis])
                flips.append(axis)
                k = slice(shape[axis] - 1 - start, shape[axis] - 1 - start + count * -step, -step) if count else slice(0, 0)
            axis += 0 if k is None else k.dim() if isinstance(k, torch.Tensor) and k.dtype is torch.bool else 1
            keys.append(k)
        keys = tuple(keys)
    return indexing.advanced_key(tuple(keys), shape, array._data.device, _index_tensor), flips


def _without_scalar_masks(keys: Any) -> Any:
    """Return the key without the booleans in it that have no axes: beside arrays they have no effect, alone True is a new axis."""
    scalars = [k for k in keys if _is_mask(k) and not k.ndim]
    if not scalars:
        return keys
    if not all(bool(k) for k in scalars):
        raise IndexError(f"False among the indices selects nothing; this is supported as the only index, received {len(keys)}")
    others = tuple(k for k in keys if not (_is_mask(k) and not k.ndim))
    basic = all(k is None or k is Ellipsis or isinstance(k, (slice, *integer_types)) for k in others)
    return (None, *others) if basic else others


def _index_tensor(k: Any) -> Any:
    if isinstance(k, NDArray):
        return k._raw()
    if isinstance(k, torch.Tensor):
        return k.detach()
    if isinstance(k, (list, onp.ndarray, tuple, range)):
        with contextlib.suppress(TypeError, ValueError):
            values = onp.asarray(k)
            return host_arrays.as_tensor(values, torch.bool if values.dtype == onp.bool_ and values.size else torch.int64)
    raise IndexError(f"arrays cannot be indexed with {shortened(k)}; use integers, slices, None, ... or arrays of integers or booleans")


def _unsupported(name: str) -> Any:
    def method(self, *args: Any, **kwargs: Any) -> Any:
        raise AttributeError(f"arrays of mx.np have no method {name}; call the function of mx.np or mx.npx")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Not a method of NumPy arrays: use the function of ``mx.np`` or ``mx.npx``."
    return method


# Methods of mx.nd's arrays that MXNet keeps from mx.np's.
for _name in """asscalar reshape_like zeros_like ones_like broadcast_axes broadcast_like pad split split_v2 slice slice_axis slice_like one_hot
                pick topk argmax_channel abs sign shape_array size_array expand_dims tile flip depth_to_space space_to_depth diag nansum
                nanprod norm rint fix floor ceil trunc sin cos tan arcsin arccos arctan degrees radians sinh cosh tanh arcsinh arccosh
                arctanh exp expm1 log log10 log2 log1p sqrt rsqrt cbrt rcbrt square reciprocal relu sigmoid softmax log_softmax softmin
                tostype log_sigmoid mish""".split():
    setattr(ndarray, _name, _unsupported(_name))

dispatch.numpy_array = ndarray
ndarray._eligible = staticmethod(eligibility(ndarray))
ndarray.__module__ = "mxnet.numpy"  # where users import it from
_RESHAPE = get("_np_reshape")
