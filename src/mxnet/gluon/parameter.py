"""The weights of gluon blocks: one array, and one gradient, for each device."""
from __future__ import annotations

import mmap
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .. import autograd, initializer, ndarray, symbol
from ..base import MXNetError, mx_real_t
from ..context import Context, cpu, ctx_or_device, current_context
from ..ndarray import dispatch, memory_format
from ..ndarray.dispatch import mode, traces
from ..ndarray.mutation_tracking import Replacements
from ..ndarray.ndarray import GRAD_REQS
from ..ops.dtypes import name_of, to_torch
from ..suggestions import shortened
from ..util import is_np_array, is_np_shape, level_of_program, version
from .utils import UsageError, shape_is_known

if TYPE_CHECKING:
    from ..initializer import Initializer
    from ..ndarray import NDArray

if TYPE_CHECKING:
    # Stands above this module; programs find it here too: `compat.table` leads to it.
    from .parameter_dict import ParameterDict

__all__ = ["DeferredInitializationError", "Parameter", "Constant", "ParameterDict", "tensor_types"]

tensor_types = (symbol.Symbol, ndarray.NDArray)
STYPES = ("default", "row_sparse", "csr")


class DeferredInitializationError(MXNetError):
    """A parameter's values were asked for before its shape is known.

    The first batch that passes through the network settles the shapes. To have them at once, pass `in_units`, `in_channels`, ...
    where the layers are made.

    Example
    -------
    >>> layer = mx.gluon.nn.Dense(2)   # the number of inputs is not known yet
    >>> layer.initialize()
    >>> try:
    ...     layer.weight.data()
    ... except mx.gluon.DeferredInitializationError:
    ...     _ = layer(mx.nd.ones((1, 3)))
    >>> layer.weight.data().shape
    (2, 3)
    """


replacements = Replacements()  # of arrays in parameters


class _Arrays(list):
    """A parameter's arrays, one for each context; programs put others in, too."""

    def __setitem__(self, index: Any, value: Any) -> None:
        list.__setitem__(self, index, value)
        replacements.count += 1


class Parameter:
    """A weight of a block, with a copy and a gradient on each device it is initialized on.

    Parameters
    ----------
    name : str
    grad_req : {'write', 'add', 'null'}
        The treatment of the gradient in a backward pass: overwrite it, add to it (call `zero_grad` then), or leave it alone. Can be set at any time.
    shape : int or tuple of int, optional
        A size of 0 (-1 with NumPy shapes) is not known yet.
    dtype : str or numpy type
    lr_mult, wd_mult : float
        Factors of the learning rate and the weight decay for this parameter.
    init : str or Initializer, optional
        The initializer of its values; by default that of the block's `initialize`.
    allow_deferred_init : bool
        Defer `initialize` until the shape is known.
    differentiable : bool
        False forces `grad_req` to ``'null'``.
    stype, grad_stype : {'default', 'row_sparse', 'csr'}
        The storage types of the values and the gradient.

    Example
    -------
    >>> import mxnet as mx
    >>> weight = mx.gluon.Parameter('fc_weight', shape=(2, 2), init='ones')
    >>> weight.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    >>> weight.data(mx.cpu(1)).sum().asscalar()
    np.float32(4.0)
    """

    _adopted = False  # whether a block has named it
    sharded = False  # True if each rank and each context has other rows, see `ShardedParameter`

    def __init__(self, name: str = "", grad_req: str = "write", shape: Any = None, dtype: str | type = mx_real_t, lr_mult: float = 1.0,
                 wd_mult: float = 1.0, init: str | Initializer | None = None, allow_deferred_init: bool = False, differentiable: bool = True,
                 stype: str = "default", grad_stype: str = "default") -> None:
        for argument, value in (("grad_stype", grad_stype), ("stype", stype)):
            if value not in STYPES:
                raise UsageError(f"{argument} for Parameter '{name}' must be one of {', '.join(STYPES)}, but got {shortened(value)}")
        self.name = name
        self._data: Any = None  # a list, one array for each context
        self._grad: Any = None  # the same
        self._ctx_list: Any = None
        self._ctx_map: Any = None
        self._var: Any = None
        self._trainer: Any = None
        self._deferred_init: Any = ()  # (init, contexts, default_init, data) while initialization waits for the shape
        self._allow_deferred_init = allow_deferred_init
        self._differentiable = differentiable
        self._shape = (shape,) if isinstance(shape, int) else shape
        self._dtype = dtype
        self._stype, self._grad_stype = stype, grad_stype
        self._grad_req = ""
        self.grad_req = grad_req
        self.lr_mult, self.wd_mult = lr_mult, wd_mult
        self.init = init

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "_data":
            return object.__setattr__(self, name, value)
        object.__setattr__(self, name, value if value is None else _Arrays(value))
        replacements.count += 1

    def __repr__(self) -> str:
        name = "" if version() == "2.0" else f"{self.name} "  # which is not passed in MXNet 2
        return f"{type(self).__name__} {name}(shape={self.shape}, dtype={self.dtype})"

    # -- attributes ----------------------------------------------------------------------------------------------------

    @property
    def grad_req(self) -> str:
        """The treatment of the gradient in a backward pass: ``'write'``, ``'add'`` or ``'null'``."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req not in GRAD_REQS:
            raise UsageError(f"grad_req must be one of {', '.join(GRAD_REQS)}, but got {shortened(req)}")
        if not self._differentiable:
            req = "null"
        if req == self._grad_req:
            return
        self._grad_req = req
        if req == "null" and self._grad is not None:
            for gradient in self._grad:
                memory_format.keep(gradient)  # the program may have it; a captured graph goes on writing there
            self._grad = None
            self._data = [array.detach() for array in self._data]
        elif self._data is not None:
            self._init_grad()

    @property
    def shape(self) -> Any:
        """The sizes, of which unknown ones are 0, or -1 with NumPy shapes."""
        if self._shape is not None and is_np_shape():
            # No parameter is of size 0, so a 0 means that the size is not set.
            return tuple(size or -1 for size in self._shape)
        return self._shape

    @shape.setter
    def shape(self, new_shape: tuple[int, ...]) -> None:
        old = self._shape
        if old is not None and (len(old) != len(new_shape) or any(o not in (-1, 0, n) for o, n in zip(old, new_shape))):
            raise UsageError(f"Parameter '{self.name}': expected shape {new_shape} is incompatible with given shape {old}")
        self._shape = new_shape

    @property
    def dtype(self) -> Any:
        """The type of the values; setting it casts them."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    def _set_trainer(self, trainer: Any) -> None:
        """Store the trainer that updates this parameter; a sparse one can have one trainer only."""
        if self._stype != "default" and self._trainer and trainer and self._trainer is not trainer:
            raise RuntimeError(f"Parameter '{self.name}' of storage type {self._stype} has a Trainer already, and can have one only: "
                               "make a single Trainer for it")
        self._trainer = trainer

    # -- values out ----------------------------------------------------------------------------------------------------

    def data(self, ctx: Context | None = None, *, device: Context | None = None) -> NDArray:
        """Return the array on `ctx`, which MXNet 2 calls `device`; by default the only one there is, or that on the current context.

        Raises
        ------
        DeferredInitializationError
            If initialization still waits for the shape.
        RuntimeError
            If the parameter is not initialized, not on `ctx`, or sparse.
        """
        arrays = self._data
        if device is not None:
            ctx = ctx_or_device(ctx, device)
        if traces and mode.tracing is not None and self._stype == "default":
            return mode.tracing.parameter(self, self._check_and_get(arrays, ctx))
        if arrays is not None and self._stype == "default" and len(arrays) == 1 and (ctx is None or arrays[0]._ctx is ctx):
            return arrays[0]
        if self._stype != "default":
            raise RuntimeError(f"data() is for dense Parameters, received '{self.name}' with storage type {self._stype}; call "
                               "row_sparse_data()")
        return self._check_and_get(arrays, ctx)

    def list_data(self) -> list[NDArray]:
        """Return the arrays on all contexts, in the order of `list_ctx`; errors as in `data`."""
        if self._stype != "default":
            raise RuntimeError(f"list_data() is for dense Parameters, received '{self.name}' with storage type {self._stype}; call "
                               "list_row_sparse_data()")
        arrays = self._check_and_get(self._data, list)
        return [mode.tracing.parameter(self, array) for array in arrays] if traces and mode.tracing is not None else arrays

    def row_sparse_data(self, row_id: NDArray) -> NDArray:
        """Of a row_sparse parameter, the rows that `row_id` names, on the context of `row_id`.

        Raises
        ------
        RuntimeError
            If the parameter is not row_sparse, or no Trainer has it.
        """
        if self._stype != "row_sparse":
            raise RuntimeError(f"row_sparse_data() is for row_sparse Parameters, received '{self.name}' with storage type {self._stype}; call data()")
        return self._get_row_sparse(self._data, row_id.ctx, row_id)

    def list_row_sparse_data(self, row_id: NDArray) -> list[NDArray]:
        """`row_sparse_data` on all contexts, in the order of `list_ctx`."""
        if self._stype != "row_sparse":
            raise RuntimeError(f"list_row_sparse_data() is for row_sparse Parameters, received '{self.name}' with storage type {self._stype}; call "
                               "list_data()")
        return self._get_row_sparse(self._data, list, row_id)

    def grad(self, ctx: Context | None = None, *, device: Context | None = None) -> NDArray:
        """Return the gradient on `ctx`, chosen as in `data`.

        Raises
        ------
        RuntimeError
            If `grad_req` is ``'null'``; else as in `data`.
        """
        return self._check_and_get(self._checked_grad(), ctx_or_device(ctx, device))

    def list_grad(self) -> list[NDArray]:
        """Return the gradients on all contexts, in the order of `list_ctx`; errors as in `grad`."""
        return self._check_and_get(self._checked_grad(), list)

    def _checked_grad(self):
        if self._grad is None and self._data is not None:
            raise RuntimeError(f"Parameter '{self.name}' has no gradient: its grad_req is {self.grad_req!r}")
        return self._grad

    def list_ctx(self) -> list[Context]:
        """Return the contexts this parameter is, or will be, initialized on."""
        if self._data is not None:
            return self._ctx_list
        if self._deferred_init:
            return self._deferred_init[1]
        raise RuntimeError(f"Parameter '{self.name}' has not been initialized")

    def list_device(self) -> list[Context]:
        """MXNet 2's name of `list_ctx`."""
        return self.list_ctx()

    def _check_and_get(self, arrays: Any, ctx: Any) -> Any:
        """Return the one of `arrays` on `ctx`, or all for ``list``."""
        if arrays is not None:
            if ctx is list:
                return arrays
            if ctx is None:
                if len(arrays) == 1:
                    return arrays[0]
                ctx = current_context()
            # cpu, cpu_pinned and cpu_shared are one memory; their type numbers are odd.
            positions = self._ctx_map[ctx.device_typeid & 1]
            index = positions[ctx.device_id] if ctx.device_id < len(positions) else None
            if index is None:
                raise RuntimeError(f"Parameter '{self.name}' was not initialized on context {ctx}. "
                                   f"It was only initialized on {self._ctx_list}.")
            return arrays[index]
        if self._deferred_init:
            raise DeferredInitializationError(
                f"Parameter '{self.name}' has no values yet, because its shape {self.shape} is not known: initialization happens "
                "when the first batch passes through the network. Pass one before accessing Parameters, or specify in_units, in_channels, "
                "etc. of the network's layers.")
        raise RuntimeError(f"Parameter '{self.name}' has not been initialized: call initialize() first, on Block.collect_params() rather than on "
                           "Block.params, which leaves out the Parameters of child Blocks (the Trainer takes the former too)")

    def _get_row_sparse(self, arrays: Any, ctx: Any, row_id: NDArray) -> Any:
        if not isinstance(row_id, ndarray.NDArray):
            raise TypeError(f"row_id must be an NDArray, received {type(row_id)}")
        if not self._trainer:
            raise RuntimeError(f"the rows of Parameter '{self.name}' are kept by its Trainer, and it has none: make one first")
        arrays = self._check_and_get(arrays, ctx)
        self._trainer._row_sparse_pull(self, arrays, row_id)
        return arrays

    def _reduce(self) -> NDArray:
        """Return the mean over the contexts, on the CPU."""
        if self._stype == "default":
            arrays = [array.copyto(cpu()) for array in self.list_data()]
            return arrays[0] if len(arrays) == 1 else ndarray.add_n(*arrays) / len(arrays)
        rows = ndarray.arange(0, self.shape[0], dtype="int64", ctx=cpu())
        data = ndarray.zeros(self.shape, stype="row_sparse", ctx=cpu())
        self._trainer._row_sparse_pull(self, data, rows, full_idx=True)
        return data

    def var(self) -> Any:
        """Return the Symbol that stands for this parameter."""
        if self._var is None:
            self._var = symbol.var(self.name, shape=self.shape, dtype=self.dtype, lr_mult=self.lr_mult, wd_mult=self.wd_mult,
                                   init=self.init, stype=self._stype)
        return self._var.as_np_ndarray() if is_np_array() else self._var

    # -- values in -------------------------------------------------------------------------------------------------------

    def initialize(self, init: str | Initializer | None = None, ctx: Context | list[Context] | None = None,
                   default_init: str | Initializer = initializer.Uniform(), force_reinit: bool = False, *,
                   device: Context | list[Context] | None = None) -> None:
        """Create the arrays and fill them.

        Parameters
        ----------
        init : str or Initializer, optional
            Goes before the parameter's own `init`.
        ctx : Context or list of Context, optional
            Where copies are kept; the current context by default. `device` is its name in MXNet 2.
        default_init : str or Initializer
            Serves where neither `init` nor the parameter's own is set.
        force_reinit : bool
            Reinitialize the parameter if it is initialized already.

        Raises
        ------
        ValueError
            If the shape is unknown and `allow_deferred_init` is not set.
        """
        if self._data is not None and not force_reinit:
            warnings.warn(f"Parameter '{self.name}' is already initialized and stays as it is; for new values pass force_reinit=True",
                          stacklevel=level_of_program())
            return
        if self._data is not None and self._trainer:
            self._trainer._forget_weight(self)
        self._data = self._grad = None
        if init is None:
            init = default_init if self.init is None else self.init
        if not shape_is_known(self.shape) and not self._allow_deferred_init:
            raise ValueError(f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self.shape}.")
        self._deferred_init = (init, _contexts(ctx_or_device(ctx, device)), default_init, None)
        if shape_is_known(self.shape):
            self._finish_deferred_init()

    def _finish_deferred_init(self) -> None:
        """Complete a deferred `initialize`, now that the shape is known."""
        if not self._deferred_init:
            return
        init, contexts, default_init, data = self._deferred_init
        self._deferred_init = ()
        if not shape_is_known(self.shape):
            raise UsageError(f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self.shape}. "
                             "Give the layer its in_units, in_channels or the like, or pass allow_deferred_init=True")
        with autograd.pause():
            if data is None:
                self._initial_parts(init, default_init, contexts)
            else:
                self._init_impl(data, contexts)

    def _initial_parts(self, init: Any, default_init: Any, contexts: Any) -> None:
        """Draw initial values for all contexts."""
        self._init_impl(self._drawn(init, default_init, self.shape), contexts)

    def _drawn(self, init: Any, default_init: Any, shape: tuple[int, ...], **attributes: Any) -> Any:
        """Return a new array of initial values; `attributes` are for the initializer."""
        data = ndarray.zeros(shape, dtype=self.dtype, ctx=cpu(), stype=self._stype)
        values = data.as_np_ndarray() if is_np_array() and self._stype == "default" else data  # one memory
        initializer.create(default_init)(initializer.InitDesc(self.name, {"__init__": init, **attributes}), values)
        return data

    def _init_impl(self, data: Any, contexts: Any, own: bool = False) -> None:
        """Copy `data` to every context, or keep it if it is the parameter's `own` already."""
        if not isinstance(data, ndarray.NDArray):
            data = ndarray.array(data, dtype=self.dtype)
        data = data.as_np_ndarray() if is_np_array() and self._stype == "default" else data.as_nd_ndarray()
        self._place(contexts, [data if own and ctx == data.ctx else data.copyto(ctx) for ctx in contexts])

    def _place(self, contexts: Any, arrays: list[Any]) -> None:
        """Keep `arrays`, one on each of the contexts, from now on."""
        self._ctx_list = list(contexts)
        self._ctx_map = [[], []]  # from type & 1 and number to the position in the list; programs read it
        for i, ctx in enumerate(self._ctx_list):
            positions = self._ctx_map[ctx.device_typeid & 1]
            positions.extend([None] * (ctx.device_id + 1 - len(positions)))
            positions[ctx.device_id] = i
        self._data = arrays
        self._init_grad()
        if self._trainer:
            self._trainer._weight_replaced(self)

    def _init_grad(self) -> None:
        if self.grad_req == "null":
            self._grad = None
            return
        self._grad = [_lazy_zeros(array) if self._grad_stype == "default" else
                      ndarray.zeros(array.shape, dtype=array.dtype, ctx=array.ctx, stype=self._grad_stype) for array in self._data]
        if is_np_array() and self._stype == self._grad_stype == "default":
            self._grad = [array.as_np_ndarray() for array in self._grad]
        autograd.mark_variables(self._data, self._grad, self.grad_req)

    def _load_init(self, data: NDArray, ctx: Context | list[Context] | None, cast_dtype: bool = False, dtype_source: str = "current",
                   own: bool = False) -> None:
        """Initialize with, or overwrite by, loaded values.

        Parameters
        ----------
        data : NDArray
        ctx : Context or list of Context or None
            Must be those of an earlier `initialize`.
        cast_dtype : bool
            Allow another type than the parameter's.
        dtype_source : {'current', 'saved'}
            Which type both have then.
        own : bool
            The caller keeps no reference to `data`, so that it need not be copied.
        """
        failed = f"Failed loading Parameter '{self.name}' from saved params:"
        if data is None:
            raise UsageError(f"{failed} a value expected, the file has None")
        if self.shape:
            unknown = -1 if is_np_shape() else 0
            if len(self.shape) != len(data.shape) or any(own not in (unknown, saved) for own, saved in zip(self.shape, data.shape)):
                raise UsageError(f"{failed} shape incompatible expected {self.shape} vs saved {data.shape}")
            self.shape = tuple(saved if own == unknown else own for own, saved in zip(self.shape, data.shape))
        if cast_dtype and dtype_source not in ("current", "saved"):
            raise UsageError(f"dtype_source must be 'current' or 'saved', received {shortened(dtype_source)}")
        if self.dtype and to_torch(self.dtype) != to_torch(data.dtype):
            if not cast_dtype:
                raise UsageError(f"{failed} dtype incompatible expected {name_of(to_torch(self.dtype))} vs saved "
                                 f"{name_of(to_torch(data.dtype))}. cast_dtype=True converts")
            if dtype_source == "current":
                data = data.astype(self.dtype, copy=False)
            else:
                self.dtype = data.dtype
        if self._stype != data.stype:
            data = data.tostype(self._stype)
        contexts = None if ctx is None else _contexts(ctx)
        if (self._data is not None or self._deferred_init) and contexts is not None and set(contexts) != set(self.list_ctx()):
            raise UsageError(f"Failed to load Parameter '{self.name}' on {contexts} because it was previously initialized on "
                             f"{self.list_ctx()}; call reset_ctx first, or load without ctx.")
        if self._data is not None:
            self.set_data(data)
        else:
            self._init_impl(data, self._deferred_init[1] if self._deferred_init else contexts or [cpu()], own)
        self._deferred_init = ()

    def set_data(self, data: Any) -> None:
        """Set the values on all contexts.

        Raises
        ------
        UsageError
            If the shapes differ, or the parameter is not initialized.
        """
        self.shape = data.shape
        if self._data is None:
            if not self._deferred_init:
                raise UsageError(f"Parameter '{self.name}' has not been initialized; call initialize() before set_data()")
            self._deferred_init = (*self._deferred_init[:3], data)
            return
        if self._trainer:
            self._trainer._forget_weight(self)
        if isinstance(data, ndarray.NDArray) and type(self._data[0]) is dispatch.numpy_array:
            data = data.as_np_ndarray()
        for array, values in zip(self._data, self._split(data)):
            array[:] = values
        if self._trainer:
            self._trainer._weight_replaced(self)

    def _split(self, data: Any) -> list[Any]:
        """Return what each context keeps of the values."""
        return [data] * len(self._data)

    def reset_ctx(self, ctx: Context | list[Context] | None) -> None:
        """Move the parameter to other contexts.

        Raises
        ------
        ValueError
            If it is not initialized.
        """
        contexts = _contexts(ctx)
        if self._data:
            data = self._reduce()
            with autograd.pause():
                self._init_impl(data, contexts)
        elif self._deferred_init:
            init, _, default_init, data = self._deferred_init
            self._deferred_init = (init, contexts, default_init, data)
        else:
            raise ValueError(f"reset_ctx: Parameter '{self.name}' has not been initialized; call initialize(ctx=...)")

    def reset_device(self, device: Context | list[Context] | None) -> None:
        """MXNet 2's name of `reset_ctx`."""
        self.reset_ctx(device)

    def zero_grad(self) -> None:
        """Set the gradients on all contexts to 0, if there are any."""
        for gradient in self._grad or ():
            gradient[:] = 0

    def cast(self, dtype: Any) -> None:
        """Convert values and gradients to another type."""
        self._dtype = dtype
        self._var = None
        if self._data is None:
            return
        with autograd.pause():
            self._data = [array.astype(dtype) for array in self._data]
            if self._grad is not None:
                self._grad = [gradient.astype(dtype) for gradient in self._grad]
                autograd.mark_variables(self._data, self._grad, self.grad_req)


def _contexts(ctx: Context | list[Context] | None):
    """Return a list of contexts out of none (the current one), one, or several."""
    if ctx is None:
        return [current_context()]
    return [ctx] if isinstance(ctx, Context) else list(ctx)


class Constant(Parameter):
    """A parameter that neither autograd nor a Trainer touches; `set_data` still changes it.

    Parameters
    ----------
    name : str
        May be left out, as in MXNet 2: ``Constant(value)``.
    value : NDArray or array-like

    Example
    -------
    >>> import mxnet as mx
    >>> class Scale(mx.gluon.HybridBlock):
    ...     def __init__(self, **kwargs):
    ...         super().__init__(**kwargs)
    ...         self.factor = self.params.get_constant('factor', [2., 3.])
    ...     def hybrid_forward(self, F, x, factor):
    ...         return F.broadcast_mul(x, factor)
    >>> net = Scale()
    >>> net.initialize()
    >>> net(mx.nd.ones((1, 2))).asnumpy()
    array([[2., 3.]], dtype=float32)
    """

    def __init__(self, name: Any, value: NDArray | Any = None) -> None:
        if value is None:
            name, value = "const", name
        if not isinstance(value, ndarray.NDArray):
            value = ndarray.array(value)
        self.value = value

        class Init(initializer.Initializer):
            def _init_weight(self, _, array: Any) -> None:
                value.copyto(array)

        # By a registered name, so that the Symbol of a large constant carries the name and not the values.
        init = f"Constant_{name}_{id(self)}"
        initializer.alias(init)(Init)
        super().__init__(name, grad_req="null", shape=value.shape, dtype=value.dtype, init=init)

    @property
    def grad_req(self) -> str:
        """Always ``'null'``."""
        return "null"

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req != "null":
            warnings.warn(f"Constant {self.name} has no gradient: its grad_req stays 'null', received {shortened(req)}",
                          stacklevel=level_of_program())


_PAGES = 1 << 16  # bytes from which on zeros get pages of their own


def _lazy_zeros(array: Any) -> Any:
    """Zeros of an array's shape and type. On a CPU they take no memory until they are written to, which inference never does."""
    tensor = array._data
    if tensor.device.type != "cpu":
        return ndarray.zeros(array.shape, dtype=array.dtype, ctx=array.ctx)
    size = tensor.numel() * tensor.element_size()
    if size < _PAGES:
        return ndarray.zeros(array.shape, dtype=array.dtype, ctx=array.ctx)
    # Not from the C allocator, which reuses memory that must then be cleared.
    memory = torch.from_numpy(np.frombuffer(mmap.mmap(-1, size), np.uint8))
    # No view of the bytes: the first gradient takes its place.
    return type(array)._new(torch.empty(0, dtype=tensor.dtype).set_(
        memory.untyped_storage(), 0, tuple(tensor.shape)), array._ctx)  # type: ignore[call-overload]  # torch accepts this storage
