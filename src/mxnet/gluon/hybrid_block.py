"""`HybridBlock`: a block that runs on arrays step by step, or as a graph that was traced once."""
from __future__ import annotations

import contextlib
import inspect
import json
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _deferred_compute, files, ndarray, symbol
from ..context import current
from ..graph.backends import registry
from ..ndarray import NDArray, dispatch
from ..ndarray.dispatch import mode
from ..suggestions import shortened, suggests_arguments
from ..util import ByArgument, is_np_array, np_shape
from ..util import version as mxnet_version
from .block import Block
from .cached_op import CachedOp
from .fast_path import FastPath, FastPaths, Gathered
from .nested import flatten, kinds_and_contexts, regroup
from .parameter import DeferredInitializationError, Parameter
from .python_state import holds_arrays, is_library
from .torch_sharing import SharesWithTorch, has_plain
from .trace_cache import VOLATILE, TraceCache, Version, require_np, tracing_lock
from .utils import UsageError

if TYPE_CHECKING:
    from ..context import Context
    from ..symbol import Symbol
    from .parameter_dict import ParameterDict

_own: set[str] = set()  # the attributes of every HybridBlock, computed at the first use


def _advice(block: Any) -> str:
    """Return what to do with a child that is no HybridBlock, in words."""
    pending = [block] if isinstance(block, Block) else []
    while pending:
        part = pending.pop()
        if part._exchanges_rows:
            return ("split layers and their loss are no parts of graphs: put them into a Sequential or another Block, beside a hybridized block of "
                    "the other layers")
        pending += part._children.values()
    return "in place of Sequential take HybridSequential"


class HybridBlock(SharesWithTorch, Block):
    """A block whose computation is the same graph for every input, so that it can be traced, optimized and exported.

    A subclass computes in ``hybrid_forward(F, x, ..., **parameters)``, where `F` is ``mx.nd`` or ``mx.sym`` and the block's own
    parameters come as keywords. After `hybridize` the block is traced with Symbols at the first call, and the graph runs from then on.

    Under ``npx.set_np()`` a subclass may define ``forward(self, x, ...)`` in terms of ``mx.np`` and ``mx.npx`` instead, as in MXNet 2. It is
    traced by running it (`mxnet.gluon.trace_cache`), anew for calls with other shapes, types or modes of autograd than those that it has read.
    A `forward` that does more than a graph can, such as branching on values of arrays, keeps running step by step, after a warning.

    Parameters
    ----------
    prefix, params
        As for `Block`.

    Example
    -------
    >>> import mxnet as mx
    >>> class Net(mx.gluon.HybridBlock):
    ...     def __init__(self, **kwargs):
    ...         super().__init__(**kwargs)
    ...         with self.name_scope():
    ...             self.hidden = mx.gluon.nn.Dense(4)
    ...     def hybrid_forward(self, F, x):
    ...         return F.relu(self.hidden(x))
    >>> net = Net()
    >>> net.initialize()
    >>> net.hybridize()
    >>> net(mx.nd.ones((3, 5))).shape
    (3, 4)
    """

    _versions: tuple[Version, ...] = ()  # of the traces that the block has a part in

    @suggests_arguments
    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._cached_graph: Any = ()  # (input variables, outputs) once traced
        self._cached_op: Any = None
        self._cached_op_args: list[tuple[bool, Any]] = []  # for each input of the graph: (True, number of the argument) or (False, Parameter)
        self._in_format: Any = None
        self._out_format: Any = None
        self._active = False
        self._flags: list[tuple[str, Any]] = []
        self._gathered: Gathered | None = None
        self._shortcuts = FastPaths()
        self._backend: str | None = None
        self._backend_opts: dict[str, Any] = {}
        self._callback: Callable[..., Any] | None = None
        self._monitor_all = False
        self._runs_traced = False  # hybridized, with a `forward` to be traced by running it: its own, or one inside
        self._traces: TraceCache | None = None
        self._untraceable = ""  # why it runs step by step although it is hybridized
        self._returns_classic = False  # the graph was traced with an ``mx.np`` array as argument, outside of any scope, and makes classic ones
        self._constants: dict[str, Parameter] = {}  # arrays and foreign parameters that a traced `forward` used, by the names of their variables

    def __call__(self, *args: Any) -> Any:
        if self._runs_traced and mode.tracing is None:
            if is_np_array():
                return self._call_traced(args)
            if args and type(args[0]) is dispatch.numpy_array:
                with np_shape(True), ByArgument():
                    return self._call_traced(args)
        out = super().__call__(*args)
        if type(out) is not dispatch.numpy_array:
            scoped = is_np_array()
            if (scoped or args and type(args[0]) is dispatch.numpy_array) and self._is_plain():
                with contextlib.nullcontext() if scoped else ByArgument():
                    require_np(_arrays_of(out))
        return out

    def __setattr__(self, name: str, value: Any) -> None:
        if self._versions and name not in self._ignored_attributes() and _differ(self.__dict__.get(name), value):
            if mode.tracing is not None:
                if isinstance(value, (bool, int, float, str)):  # arrays and containers are new in each run, and compared where they are used
                    mode.tracing.assigns()
                elif not is_library(type(self).__module__) and (holds_arrays(value) or self.__dict__.get(name) != value):
                    mode.tracing.leaves_behind()
            else:
                for version in self._versions:
                    version.number += 1
        super().__setattr__(name, value)
        if isinstance(value, HybridBlock):
            self._clear_cached_op()

    def _take_parameters(self, shared: dict[str, Parameter], path: str, root: str) -> set[str]:
        self._clear_cached_op()
        return super()._take_parameters(shared, path, root)

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make `block` a child.

        Raises
        ------
        ValueError
            If it is no HybridBlock.
        """
        if not isinstance(block, HybridBlock):
            raise ValueError(f"A child of a HybridBlock must be a HybridBlock too, received {block} of type {type(block)}; {_advice(block)}")
        super().register_child(block, name)
        self._clear_cached_op()

    def cast(self, dtype: Any) -> None:
        """Convert all parameters to another type."""
        self._clear_cached_op()
        super().cast(dtype)

    def _clear_cached_op(self) -> None:
        self._cached_op = self._gathered = self._traces = None
        self._shortcuts = FastPaths()
        self._cached_graph = ()
        self._cached_op_args = []
        self._runs_traced = self._active and has_plain(self)
        for version in self._versions:
            version.number += 1

    @staticmethod
    def _ignored_attributes() -> set[str]:
        """Attributes that have no influence on the trace."""
        if not _own:
            _own.update(vars(HybridBlock(prefix="")), VOLATILE)
        return _own

    # -- switching ---------------------------------------------------------------------------------------------------------

    def hybridize(self, active: bool = True, backend: str | None = None, clear: bool = True, static_alloc: bool = False, static_shape: bool = False,
                  inline_limit: int | None = 2, forward_bulk_size: int | None = None, backward_bulk_size: int | None = None, exact: bool = False,
                  partition_if_dynamic: bool = True, **kwargs: Any) -> None:
        """Run as a traced graph from now on, or no longer; so do all children.

        Parameters
        ----------
        active : bool
        backend : str, optional
            The backend that runs the graph; see `mxnet.graph.backends.registry`. One that is not available is logged, and the graph runs without it.
        clear : bool
            Drop earlier traces and optimized graphs.
        static_alloc, static_shape : bool
            Promise that memory may be kept from call to call, and that shapes stay the same.
        inline_limit, forward_bulk_size, backward_bulk_size : int, optional
            MXNet's hints about splitting graphs; accepted and passed on to the backend.
        exact : bool
            True to run convolutions on the direct kernel alone: not on Winograd kernels, which round more, nor on those that split numbers.
            ``MXNET_CONVOLUTION_ALGORITHM=exact`` sets this for all graphs.
            MXNet has no such option. `explain` lists the backends.
        partition_if_dynamic : bool
            MXNet 2's hint for graphs with operators whose results' sizes depend on values: the rest of the graph is optimized in either case.
        **kwargs
            The backend's options.
        """
        if isinstance(backend, bool) or not isinstance(partition_if_dynamic, bool):
            raise UsageError("hybridize: the name of a backend expected as second argument, and True or False as partition_if_dynamic, by name; "
                             f"received {shortened(backend)} and {shortened(partition_if_dynamic)}")
        if kwargs:
            self._backend_opts = kwargs
        self._backend, self._active = backend, active
        self._runs_traced, self._untraceable = active and has_plain(self), ""
        self._flags = [("static_alloc", static_alloc), ("static_shape", static_shape), ("inline_limit", inline_limit)]
        bulk = {"forward_bulk_size": forward_bulk_size, "backward_bulk_size": backward_bulk_size}
        self._flags += [(name, size) for name, size in bulk.items() if size is not None]
        further = {"exact": True} if exact else {}  # blocks of the user's need not know of it
        self._flags += further.items()
        if clear:
            self._clear_cached_op()
        if active and (self._forward_hooks or self._forward_pre_hooks):
            warnings.warn(f"{self} has forward hooks or pre-hooks and is being hybridized: inside of another hybridized block they are not called",
                          stacklevel=2)
        super().hybridize(active, static_alloc=static_alloc, static_shape=static_shape, inline_limit=inline_limit,
                          forward_bulk_size=forward_bulk_size, backward_bulk_size=backward_bulk_size, **further)

    def optimize_for(self, x: NDArray | Symbol, *args: Any, backend: str | None = None, clear: bool = False, static_alloc: bool = False,
                     static_shape: bool = False, inline_limit: int = 2, forward_bulk_size: int | None = None, backward_bulk_size: int | None = None,
                     partition_if_dynamic: bool = True, **kwargs: Any) -> None:
        """Trace the block and prepare it for a backend, without running it.

        Parameters
        ----------
        x, *args : NDArray or Symbol
            Inputs of the shapes that will come.
        backend : str
            The backend that runs the graph; see `mxnet.graph.backends.registry`.
        clear, static_alloc, static_shape, inline_limit, forward_bulk_size, backward_bulk_size, partition_if_dynamic, **kwargs
            As for `hybridize`.

        Raises
        ------
        ValueError
            If no backend is named, no input is an array, or the inputs are on several devices.
        """
        if not backend:
            raise ValueError("optimize_for: the name of a backend expected, received none; see mxnet.graph.backends.registry")
        self._backend_opts = kwargs or self._backend_opts
        self.hybridize(True, backend, clear, static_alloc, static_shape, inline_limit, forward_bulk_size, backward_bulk_size,
                       partition_if_dynamic=partition_if_dynamic)
        has_symbol, has_ndarray, contexts, _ = kinds_and_contexts([x, *args])
        if not (has_symbol or has_ndarray):
            raise ValueError(f"HybridBlock: at least one NDArray or Symbol expected, received {[type(a).__name__ for a in (x, *args)]}")
        if len(contexts) > 1:
            raise ValueError(_several_contexts(contexts))
        with tracing_lock:
            if self._runs_traced and is_np_array():
                self._trace_cache().prepare((x, *args))
            else:
                self._build_cache(x, *args)

    # -- running ---------------------------------------------------------------------------------------------------------

    def forward(self, x: Any, *args: Any) -> Any:
        """Compute the outputs: eagerly, through the traced graph, or as Symbols if the inputs are Symbols.

        Raises
        ------
        ValueError
            If there is neither an array nor a Symbol among the inputs, or both, or a hybridized block gets arrays of several devices.
        """
        if not args and isinstance(x, NDArray):
            ctx = x._ctx
        else:
            has_symbol, has_ndarray, contexts, ctx = kinds_and_contexts([x, *args])
            if has_symbol and has_ndarray:
                raise ValueError("HybridBlock: either NDArrays or Symbols expected, not both at once, "
                                 f"received {[type(a).__name__ for a in (x, *args)]}")
            if not (has_symbol or has_ndarray):
                raise ValueError(f"HybridBlock: at least one NDArray or Symbol expected, received {[type(a).__name__ for a in (x, *args)]}")
            if has_symbol:
                parameters = {name: parameter.var() for name, parameter in self._reg_params.items()}
                with self.name_scope():
                    return self.hybrid_forward(symbol, x, *args, **parameters)
            if self._active and len(contexts) > 1:
                raise ValueError(_several_contexts(contexts))
        if ctx is current.value:
            return self._call_cached_op(x, *args) if self._active and mode.tracing is None else self._call_eagerly(ctx, x, *args)
        with ctx:
            return self._call_cached_op(x, *args) if self._active and mode.tracing is None else self._call_eagerly(ctx, x, *args)

    def hybrid_forward(self, F: Any, x: NDArray | Symbol, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs with the operators of `F`; a subclass must define this.

        Parameters
        ----------
        F : module
            ``mx.nd`` or ``mx.sym``.
        x, *args : NDArray or Symbol
        **kwargs : NDArray or Symbol
            The block's own parameters.
        """
        raise NotImplementedError(f"{type(self).__name__} must define hybrid_forward(self, F, x, *args, **parameters)")

    def _call_eagerly(self, ctx: Context | None, *args: Any):
        numpy = is_np_array()
        if not numpy and type(args[0]) is dispatch.numpy_array:  # a call in the form of MXNet 2
            with np_shape(True), ByArgument():
                return self._call_eagerly(ctx, *args)
        try:
            parameters = {name: parameter.data(ctx) for name, parameter in self._reg_params.items()}
        except DeferredInitializationError:
            with tracing_lock, _deferred_compute.context(False):
                self._deferred_infer_shape(*args)
                for parameter in self.params.values():
                    parameter._finish_deferred_init()
            parameters = {name: parameter.data(ctx) for name, parameter in self._reg_params.items()}
        if parameters and (type(next(iter(parameters.values()))) is dispatch.numpy_array) is not numpy:  # they were initialized in the other mode
            parameters = {name: array.as_np_ndarray() if numpy else array.as_nd_ndarray() for name, array in parameters.items()}
        out = self.hybrid_forward(ndarray, *args, **parameters)
        if numpy:
            require_np(flatten(out, "output")[0])
        return out

    def _call_traced(self, args: tuple) -> Any:
        """Call hooks, and run the trace of the subclass's own `forward`, or of the blocks inside."""
        if self._forward_pre_hooks:
            for hook in list(self._forward_pre_hooks.values()):
                hook(self, args)
        out = self._trace_cache()(args)
        if self._forward_hooks:
            for hook in list(self._forward_hooks.values()):
                hook(self, args, out)
        return out

    def _trace_cache(self) -> TraceCache:
        traces = self._traces
        if traces is None or traces.block is not self:  # it is that of the block that this one is a copy of
            with tracing_lock:
                if self._traces is None or self._traces.block is not self:
                    self.__dict__.pop("_version", None)
                    self._traces = TraceCache(self)
                traces = self._traces
        return traces

    def _call_cached_op(self, *args: Any):
        if self._callback is None:
            for shortcut in self._shortcuts:
                result = shortcut(args)
                if result is not None:
                    return result
        if type(args[0]) is dispatch.numpy_array and not is_np_array():
            with np_shape(True), ByArgument():
                return self._call_cached_op(*args)
        if self._runs_traced and is_np_array():
            return self._trace_cache()(args)
        op, inputs = self._cached_op, self._cached_op_args
        if op is None:
            with tracing_lock:
                if self._cached_op is None:
                    self._build_cache(*args)
                op, inputs = self._cached_op, self._cached_op_args
        if self._callback is not None or op._hook is not None:
            op._register_op_hook(self._callback, self._monitor_all)
        flat, fmt = flatten(args, "input")
        if fmt != self._in_format:
            self._check_format(fmt)
        flat = [arg for arg in flat if arg is not None]
        gathered = self._gathered
        if gathered is None or gathered.inputs is not inputs:
            gathered = self._gathered = Gathered(inputs)
        arrays, replaced = gathered.with_data(flat)
        out = op(*arrays)
        if self._returns_classic and is_np_array():
            out = [o.as_nd_ndarray() for o in ([out] if isinstance(out, NDArray) else out)]
            require_np(out)
        plain = self._callback is None and gathered.plain and not self._returns_classic
        path = FastPath.after(op, arrays, gathered.places, fmt, self._out_format, replaced, out) if plain else None
        paths = self._shortcuts.with_path(path)
        if paths != self._shortcuts:  # assignments to blocks are observed
            self._shortcuts = paths
        return regroup([out] if isinstance(out, NDArray) else out, self._out_format)

    def _check_format(self, fmt: Any) -> None:
        """Accept another structure of the arguments if the two differ only by None at the end."""
        traced, shared = self._in_format, min(len(self._in_format), len(fmt))
        if len(fmt) == len(traced) or fmt[:shared] != traced[:shared] or any(f != -1 for f in (*fmt[shared:], *traced[shared:])):
            raise ValueError(f"The block was traced with arguments of structure {traced}, received {fmt}; call hybridize() again to trace it anew")

    # -- tracing ---------------------------------------------------------------------------------------------------------

    def _is_plain(self) -> bool:
        """Return True if the class computes in a `forward` of its own, in the style of MXNet 2, instead of in `hybrid_forward`."""
        kind = type(self)
        if kind.forward is HybridBlock.forward:
            return False
        if kind.hybrid_forward is HybridBlock.hybrid_forward:
            return True
        # `use_np` puts scopes around all methods of a class, inherited ones, too.
        return inspect.unwrap(kind.hybrid_forward) is HybridBlock.hybrid_forward and inspect.unwrap(kind.forward) is not HybridBlock.forward

    def _get_graph(self, *args: Any) -> Any:
        """Return the traced graph: its input variables and its outputs."""
        if not self._cached_graph:
            with tracing_lock:
                if is_np_array() and has_plain(self):
                    self._trace_cache().prepare(args)
                    return self._cached_graph
                flat, self._in_format = flatten(args, "input")
                given = sum(arg is not None for arg in flat)
                if not given:
                    raise ValueError(f"HybridBlock: all arguments are None, at least one array is needed; received {args}")
                names = iter(["data"] if given == 1 else [f"data{i}" for i in range(given)])
                variables = [None if arg is None else symbol.var(next(names)) for arg in flat]
                if is_np_array():
                    variables = [v if v is None else v.as_np_ndarray() for v in variables]
                parameters = {name: parameter.var() for name, parameter in self._reg_params.items()}
                with self.name_scope():
                    out = self.hybrid_forward(symbol, *regroup(variables, self._in_format), **parameters)
                out, self._out_format = flatten(out, "output")
                if is_np_array():
                    require_np(out)
                self._returns_classic = is_np_array() and any(type(o) is symbol.Symbol for o in out)
                self._cached_graph = [v for v in variables if v is not None], symbol.Group(out)
        return self._cached_graph

    def _run_plain(self, args: Any) -> Any:
        """`forward` on arrays, after the class's own `infer_shape` where parameters wait for it."""
        infers = type(self).infer_shape
        if (infers is not HybridBlock.infer_shape and any(p._deferred_init for p in self.params.values())
                and inspect.unwrap(infers) is not HybridBlock.infer_shape):
            with _deferred_compute.context(False):
                self.infer_shape(*args)
                for parameter in self.params.values():
                    parameter._finish_deferred_init()
        return self.forward(*args)

    def _build_cache(self, *args: Any) -> None:
        """Make the CachedOp: trace, finish deferred initialization, prepare for the backend."""
        variables, out = self._get_graph(*args)
        arrays = [arg for arg in flatten(args, "input")[0] if arg is not None]
        positions = {variable.name: i for i, variable in enumerate(variables)}
        # A graph that a backend has rewritten may need parameters of the backend's own.
        parameters = {p.name: p for _, p in self._cached_op_args if isinstance(p, Parameter)} or dict(self._by_name().items())
        parameters.update(self._constants)
        names = out.list_inputs()
        unknown = [name for name in names if name not in positions and name not in parameters]
        if unknown:
            raise UsageError(f"Unknown input to HybridBlock: {', '.join(unknown)}; a graph can use its inputs and the parameters of the "
                             "block and its children")
        needed = set(names)
        unused = [f"{i}-th" for name, i in positions.items() if name not in needed]
        first = self._traces is None or not self._traces.begun  # later traces have warned already
        if unused and first:
            warnings.warn(f"HybridBlock: its {', '.join(unused)} input has no influence on the output", stacklevel=5)
        unused = [name for name in parameters if name not in needed]
        if unused and first:
            warnings.warn(f"HybridBlock: Parameter {', '.join(unused)} has no influence on the output", stacklevel=5)
        used = [parameters[name] for name in names if name in parameters]
        try:
            for parameter in used:
                parameter.data()
        except DeferredInitializationError:
            self._deferred_infer_shape(*args)
            for parameter in used:
                parameter._finish_deferred_init()
        backend = self._backend if self._backend and registry.available(self._backend) else None
        if backend:
            out = self._partition(variables, out, arrays, positions, parameters)
        self._cached_op_args = [(True, positions[name]) if name in positions else (False, parameters[name]) for name in out.list_inputs()]
        roles = [[i for i, (is_arg, _) in enumerate(self._cached_op_args) if is_arg is wanted] for wanted in (True, False)]
        flags = [("data_indices", roles[0]), ("param_indices", roles[1]), *self._flags]
        self._cached_op = CachedOp(out, flags, backend=backend, options=self._backend_opts if backend else None)

    def _partition(self, variables: Any, out: Any, arrays: Any, positions: dict[str, int], parameters: Any):
        """Return the graph prepared for the backend; parameters that the backend creates are added to `parameters`."""
        values, shapes = {}, {}
        for name in out.list_inputs():
            if name not in positions:
                values[name] = parameters[name].data()
            elif isinstance(arrays[positions[name]], NDArray):
                values[name] = arrays[positions[name]]
            elif shape := arrays[positions[name]].attr("__shape__"):
                shapes[name] = tuple(int(size) for size in shape.strip("()").split(",") if size.strip())
        aux_names = set(out.list_auxiliary_states())
        args = {name: value for name, value in values.items() if name not in aux_names}
        aux = {name: value for name, value in values.items() if name in aux_names}
        ctx = next((array.ctx for array in arrays if isinstance(array, NDArray)), None)
        out = out.optimize_for(self._backend, args, aux, ctx, shapes, **self._backend_opts)
        self._cached_graph = variables, out
        for name in out.list_inputs():
            if name not in positions and name not in parameters:
                value = args.get(name, aux.get(name))
                if value is None:
                    raise RuntimeError(f"backend {self._backend!r} added the parameter {name} to the graph without a value in args or aux")
                parameters[name] = Parameter(name, dtype=value.dtype)
                parameters[name]._load_init(value, value.ctx)
        return out

    def _deferred_infer_shape(self, *args: Any) -> None:
        try:
            self.infer_shape(*args)
        except Exception as error:
            raise ValueError(f"the shapes of Parameters don't follow from the inputs: {error}") from error

    def _infer_attrs(self, infer_fn: str, attr: str, *args: Any) -> None:
        """Set `attr` of the parameters to the result of the graph's method `infer_fn` for these inputs."""
        variables, out = self._get_graph(*args)
        arrays = [arg for arg in flatten(args, "input")[0] if arg is not None]
        known = {variable.name: getattr(array, attr) for variable, array in zip(variables, arrays)}
        # Not `Symbol.infer_shape`, whose warning would have to be caught: an interrupt in that would disable warnings for good.
        result = out._infer_shape(False, (), known) if infer_fn == "infer_shape" else out._infer_type((), known)
        if result is None or any(value is None for group in result for value in group):
            raise ValueError(out._left_open((), known) if infer_fn == "infer_shape" else f"{infer_fn} found nothing for {known}")
        inferred = {**dict(zip(out.list_arguments(), result[0])), **dict(zip(out.list_auxiliary_states(), result[2]))}
        for parameter in self.collect_params().values():
            if parameter.name in inferred:
                setattr(parameter, attr, inferred[parameter.name])

    def infer_shape(self, *args: Any) -> None:
        """Infer the shapes of the parameters from these inputs."""
        self._infer_attrs("infer_shape", "shape", *args)

    def infer_type(self, *args: Any) -> None:
        """Infer the types of the parameters from these inputs."""
        self._infer_attrs("infer_type", "dtype", *args)

    def explain(self) -> str:
        """Describe the compiled graph: fused operators, layouts, and the backend of each part.

        Returns
        -------
        str

        Raises
        ------
        RuntimeError
            If the block was not hybridized and called before.

        Example
        -------
        >>> import mxnet as mx
        >>> net = mx.gluon.nn.Dense(2, in_units=3)
        >>> net.initialize()
        >>> net.hybridize(backend="native")
        >>> _ = net(mx.nd.ones((1, 3)))
        >>> print(net.explain())
        1 operators
        """
        if self._cached_op is None:
            raise RuntimeError("explain: call hybridize() and run the block once, so that there is a graph to explain")
        return self._cached_op.handle.explain()

    # -- files and hooks ---------------------------------------------------------------------------------------------------

    def export(self, path: str | None, epoch: int = 0, remove_amp_cast: bool = True) -> tuple[Any, Any]:
        """Write ``<path>-symbol.json`` and ``<path>-<epoch, four digits>.params``, for `SymbolBlock.imports`, `Module` and others.

        A single input is called ``data``, several ``data0``, ``data1``, .... Parameters have their own names; after
        ``mx.util.set_version('2.0')`` the structural names.

        Parameters
        ----------
        path : str or None
            None writes no files.

        Returns
        -------
        str, str or None
            The names of the two files; the second is None if there are no parameters. Without `path` the Symbol and the dict of
            arrays that would have been written.

        Raises
        ------
        RuntimeError
            If the block was not hybridized and called before.
        """
        if not self._cached_graph:
            if self._untraceable:
                raise RuntimeError(f"export: there is no graph of this block, which runs step by step: {self._untraceable}")
            raise RuntimeError("export: there is no graph of this block yet; call hybridize() and pass a batch through the block first")
        out = self._cached_graph[1]
        parameters = {p.name: p for _, p in self._cached_op_args if isinstance(p, Parameter)} or dict(self._by_name().items())
        arguments, aux = set(out.list_arguments()), set(out.list_auxiliary_states())
        arrays = {f"{'arg' if name in arguments else 'aux'}:{name}": parameter._reduce()
                  for name, parameter in parameters.items() if name in arguments or name in aux}
        text = out.tojson(remove_amp_cast)
        if mxnet_version() == "2.0":
            places = {parameter.name: place for place, parameter in self._collect_params_with_prefix().items()}
            text = _renamed(text, places)
            arrays = {name[:4] + places.get(name[4:], name[4:]): array for name, array in arrays.items()}
        if path is None:
            made = symbol.load_json(text)
            return (made.as_np_ndarray() if is_np_array() else made), arrays
        files.write_bytes(f"{path}-symbol.json", text.encode())
        ndarray.save(f"{path}-{epoch:04d}.params", arrays)
        return f"{path}-symbol.json", f"{path}-{epoch:04d}.params" if arrays else None

    def register_op_hook(self, callback: Callable[..., Any], monitor_all: bool = False) -> None:
        """Call ``callback(name, operator, array)`` for each operator's outputs when the traced graph runs, and for gradients in backward.

        Parameters
        ----------
        callback : callable
            May use the array as it is, or cast it to a handle as with MXNet: ``NDArray(ctypes.cast(array, NDArrayHandle), writable=False)``.
        monitor_all : bool
            For inputs too.
        """
        self._callback, self._monitor_all = callback, monitor_all
        for child in self._children.values():
            child._callback, child._monitor_all = callback, monitor_all


def _arrays_of(out: Any) -> list[Any]:
    """Return the arrays and Symbols in results, nested lists and tuples included."""
    if isinstance(out, (list, tuple)):
        return [array for part in out for array in _arrays_of(part)]
    return [out]


def _renamed(graph: str, names: dict[str, str]) -> str:
    """Return the JSON text of a graph with other names of its variables."""
    content = json.loads(graph)
    for node in content["nodes"]:
        if node["op"] == "null":
            node["name"] = names.get(node["name"], node["name"])
    return json.dumps(content, indent=2)


def _differ(before: Any, value: Any) -> bool:
    return before is not value and not (type(before) is type(value) and isinstance(value, (bool, int, float, str)) and before == value)


def _several_contexts(contexts: Any) -> str:
    return f"A hybridized block runs on one context, received inputs on {contexts}; move them with as_in_context()"
