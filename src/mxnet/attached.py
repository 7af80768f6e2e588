"""Methods of arrays and Symbols that are implemented by modules of higher layers.

`NDArray` and `Symbol` import no higher layers; their methods that need those are attached here, in one place.
The module behind a method is imported at the method's first call, except for autograd, which every program needs.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import autograd
from .ndarray import NDArray
from .ndarray.ndarray import share_memory
from .symbol import Symbol

if TYPE_CHECKING:
    from .context import Context
    from .executor import Executor
    from .numpy import ndarray
    from .symbol.numpy import _Symbol

    _Array = NDArray  # the type of `self`
    _Graph = Symbol
else:
    _Array = _Graph = object


class ArrayMethods(_Array):
    """The methods that are attached to `NDArray`."""

    def backward(self, out_grad: NDArray | None = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Compute the gradients of everything marked that this array was computed from.

        Parameters
        ----------
        out_grad : NDArray, optional
            The gradient of this array itself; ones by default.
        retain_graph : bool
            Keep the recorded calls for another backward.
        """
        autograd.backward([self], [out_grad], retain_graph, train_mode)

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Request the gradient of this array in every later backward pass.

        The array becomes a variable, detached from its earlier computation.

        Parameters
        ----------
        grad_req : {'write', 'add', 'null'}
            Overwrite `grad` at each backward, add to it, or leave it unchanged.
        stype : str, optional
            ``"default"``, ``"row_sparse"`` or ``"csr"`` for the gradient; by default as the array.
        """
        from .ndarray.creation import zeros
        grad = zeros(self.shape, ctx=self._ctx, dtype=self.dtype if self._is_sparse else self._data.dtype, stype=stype or self.stype)
        if type(grad) is not type(self) and type(grad) is NDArray and not self._is_sparse:
            grad = type(self)._new(grad._data, grad._ctx)
        self._mark(grad, grad_req)

    def tostype(self, stype: str) -> NDArray:
        """Return the values stored as ``'default'``, ``'csr'`` or ``'row_sparse'``, in memory of their own."""
        if stype == "default":
            return self.copy()
        if stype == "csr" and self.ndim != 2:
            raise ValueError(f"only an array of 2 axes can be stored as csr, received shape {self.shape}")
        from .ndarray.sparse import cast_storage
        return cast_storage(self, stype)

    def as_np_ndarray(self) -> ndarray:
        """Return the array as ``mx.np.ndarray``, sharing memory."""
        from .numpy import ndarray
        return share_memory(self, ndarray)

    def __getstate__(self) -> dict[str, Any]:
        from .ndarray.serialization import dump_array
        return {"handle": bytearray(dump_array(self))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from .ndarray.serialization import restore_array
        restore_array(self, state["handle"])


class SymbolMethods(_Graph):
    """The methods that are attached to `Symbol`."""

    def bind(self, ctx: Context | str, args: Sequence[NDArray] | dict[str, NDArray],
             args_grad: Sequence[NDArray | None] | dict[str, NDArray] | None = None, grad_req: str | list[str] | dict[str, str] = "write",
             aux_states: Sequence[NDArray] | dict[str, NDArray] | None = None, group2ctx: dict[str, Any] | None = None,
             shared_exec: Executor | None = None) -> Executor:
        """Return an `Executor` over arrays that the caller provides.

        Parameters
        ----------
        ctx : Context
        args : list or dict of str to NDArray
            All arguments.
        args_grad : list or dict of str to NDArray, optional
            The arrays that receive gradients; those left out are not computed.
        grad_req : str, list or dict
            ``'write'``, ``'add'`` or ``'null'``.
        aux_states : list or dict of str to NDArray, optional
        group2ctx : dict of str to Context, optional
            The devices of the nodes annotated with ``ctx_group``; a list of them for the group ``sharded``, whose fully connected layers they
            compute in parts.
        shared_exec : Executor, optional
            An executor whose memory may be reused; the results of the two then must not be needed at the same time.
        """
        from .binding import bind
        return bind(self, ctx, args, args_grad, grad_req, aux_states, group2ctx, shared_exec)

    def simple_bind(self, ctx: Context | str, grad_req: str | list[str] | dict[str, str] = "write", type_dict: dict[str, Any] | None = None,
                    stype_dict: dict[str, str] | None = None, group2ctx: dict[str, Any] | None = None, shared_arg_names: list[str] | None = None,
                    shared_exec: Executor | None = None, shared_buffer: dict[str, NDArray] | None = None, **kwargs: Any) -> Executor:
        """Return an `Executor` with new arrays for all arguments and states; their shapes are inferred from the given ones.

        Parameters
        ----------
        ctx : Context
        grad_req : str, list or dict
            ``'write'``, ``'add'`` or ``'null'``.
        type_dict : dict of str to type, optional
            Element types of arguments; float32 where no other type is inferred.
        stype_dict : dict of str to str, optional
            Storage types of arguments.
        group2ctx : dict of str to Context, optional
        shared_arg_names : list of str, optional
            Arguments to take over from `shared_exec`.
        shared_exec : Executor, optional
        shared_buffer : dict of str to NDArray, optional
            Arrays to use where they are large enough; new ones are added to it.
        **kwargs : tuple of int
            The shapes of arguments.
        """
        from .binding import simple_bind
        return simple_bind(self, ctx, grad_req, type_dict, stype_dict, group2ctx, shared_arg_names, shared_exec, shared_buffer, kwargs)

    def eval(self, ctx: Context | None = None, **kwargs: NDArray) -> list[NDArray]:
        """Run the graph once with the given arguments, and return the list of outputs."""
        from .context import current_context
        return self.bind(ctx or current_context(), kwargs).forward()

    def get_backend_symbol(self, backend: str) -> Symbol:
        """Return the graph as partitioned by a backend for inference. See `optimize_for`."""
        from .graph import partition
        return partition(self, backend)

    def optimize_for(self, backend: str, args: Sequence[NDArray] | dict[str, NDArray] | None = None,
                     aux: Sequence[NDArray] | dict[str, NDArray] | None = None, ctx: Context | None = None,
                     shape_dict: dict[str, tuple[int, ...]] | None = None, type_dict: dict[str, Any] | None = None,
                     stype_dict: dict[str, str] | None = None, skip_infer: bool = False, **kwargs: Any) -> Symbol:
        """Return the graph prepared for a backend, such as ``'native'``.

        If there is no such backend, or it does not work on this machine, this is logged and the graph is returned unchanged, as in MXNet.

        Parameters
        ----------
        backend : str
            A registered backend.
        args, aux : list or dict of NDArray, optional
            Parameters, for backends that evaluate constant expressions of them.
        **kwargs
            Options of the backend.
        """
        from .graph import optimize
        return optimize(self, backend, args=args, aux=aux, ctx=ctx, shape_dict=shape_dict, type_dict=type_dict, stype_dict=stype_dict,
                        skip_infer=skip_infer, **kwargs)

    def reshape(self, *args: Any, **kwargs: Any) -> Symbol:
        """Return the values in another shape; see ``mx.sym.reshape`` for the special codes."""
        from .symbol.functions import operator_function
        if len(args) == 1 and isinstance(args[0], (tuple, list)):
            kwargs["shape"] = tuple(args[0])
        elif args:
            kwargs["shape"] = tuple(args)
        return operator_function("reshape")(self, **kwargs)

    def astype(self, dtype: Any) -> Symbol:
        """Return the values converted to `dtype`."""
        from .symbol.functions import operator_function
        return operator_function("cast")(self, dtype=dtype)

    def split_v2(self, *args: Any, **kwargs: Any) -> Symbol:
        """Split the values along an axis; see ``mx.sym.split_v2``."""
        from .symbol.creation import split_v2
        return split_v2(self, *args, **kwargs)

    @property
    def T(self) -> Symbol:
        """The values with their axes in reverse order."""
        from .symbol.functions import operator_function
        return operator_function("transpose")(self)

    def as_np_ndarray(self) -> _Symbol:
        """Return this Symbol in the type for ``mx.sym.np`` functions."""
        from .symbol.numpy import _Symbol
        return _Symbol(self._outputs)

def _attach(cls: type, methods: type) -> None:
    for name, value in vars(methods).items():
        if name not in ("__module__", "__dict__", "__weakref__", "__doc__", "__qualname__", "__firstlineno__", "__static_attributes__"):
            function: Any = value.fget if isinstance(value, property) else value
            function.__module__, function.__qualname__ = cls.__module__, f"{cls.__name__}.{name}"
            setattr(cls, name, value)


_attach(NDArray, ArrayMethods)
_attach(Symbol, SymbolMethods)
