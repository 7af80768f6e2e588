"""`CachedOp`: a traced graph, called like an operator."""
import copy
import functools
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..base import MXNetError
from ..context import Context, current_context
from ..graph.ownership import owned
from ..graph.runtime import sparse_run
from ..graph.runtime.explicit_gradients import ExplicitCall, TrainingGraph
from ..graph.runtime.monitoring import Watcher
from ..graph.runtime.runner import GraphRunner
from ..graph.runtime.session import Session
from ..ndarray import NDArray, explicit_calls, handles
from ..ndarray.dispatch import NodeRecord, TapeNode, mode, record, share_history
from ..ndarray.explicit_calls import ExplicitNode
from ..suggestions import shortened
from ..symbol import Symbol
from ..util import is_np_array

_FLAGS = {"exact", "data_indices", "param_indices", "static_alloc", "static_shape", "inline_limit", "forward_bulk_size", "backward_bulk_size",
          "is_dynamic"}
# Networks have hundreds of inputs: `map` looks at them ten times as fast as a loop.
_data, _ctx, _is_sparse, _requires_grad = map(operator.attrgetter, ("_data", "_ctx", "_is_sparse", "requires_grad"))


class CachedOp:
    """Runs a Symbol on arrays, which come in the order of ``sym.list_inputs()``.

    Parameters
    ----------
    sym : Symbol
    flags : list of (str, value) or dict
        `static_alloc`, `static_shape`, `inline_limit`, `forward_bulk_size`, `backward_bulk_size`: hints that backends may follow. `exact`: whether
        convolutions never run on the kernels that multiply less and round more.
    thread_safe : bool
        Any value will do: a CachedOp holds no values, and several threads may call it at once.
    backend : str, optional
        The name of the backend that runs the graph; see `mxnet.graph.backends.registry`.
    options : dict, optional
        The backend's options.

    Raises
    ------
    MXNetError
        If a flag or the backend is unknown.

    Example
    -------
    >>> import mxnet as mx
    >>> from mxnet.gluon.cached_op import CachedOp
    >>> a, b = mx.sym.var('a'), mx.sym.var('b')
    >>> CachedOp(a * b + 1)(mx.nd.array([2.]), mx.nd.array([3.])).asscalar()
    np.float32(7.0)
    """

    name = "_CachedOp"  # its name in profiles and on the tape

    def __init__(self, sym: Symbol, flags: Mapping[str, object] | Sequence[tuple[str, object]] = (), thread_safe: bool = False, *,
                 backend: str | None = None, options: Mapping | None = None) -> None:
        self.flags: dict = dict(flags)
        unknown = set(self.flags) - _FLAGS
        if unknown:
            raise MXNetError(f"CachedOp: cannot find argument {sorted(unknown)[0]!r}; possible arguments: {', '.join(sorted(_FLAGS))}")
        self.symbol, self.thread_safe, self.backend, self.options = sym, thread_safe, backend, options
        self._runner = GraphRunner(sym, backend=backend, options=options, weights=self.flags.get("param_indices"),
                                   fixed_shape=bool(self.flags.get("static_alloc") and self.flags.get("static_shape")),
                                   exact=bool(self.flags.get("exact")))
        self._session = Session(self._runner)
        self._names = self._runner.input_names
        # Where the graph only hands an input on, the caller gets a copy, as from every operator.
        self._handed_on = [i for i, (node, _) in enumerate(sym._outputs) if node.op is None]
        self._hook: Callable | None = None
        self._hook_inputs = False

    def __reduce__(self) -> Any:
        return _restore, (self.symbol, self.flags, self.thread_safe, self.backend, self.options)

    def __call__(self, *args: NDArray, out: NDArray | Sequence[NDArray] | None = None, default_ctx: Context | None = None) -> Any:
        """Run the graph.

        Parameters
        ----------
        *args : NDArray
        out : NDArray or list of NDArray, optional
            Receive the outputs.
        default_ctx : Context, optional
            Where a graph without inputs runs.

        Returns
        -------
        NDArray or list of NDArray
            A list if the graph has several outputs.

        Raises
        ------
        MXNetError
            If the number of inputs is wrong, they are on different devices, or an operator fails.
        """
        try:
            sparse = any(map(_is_sparse, args))
            tensors: list[Any] = [None if a._is_sparse else a._data for a in args] if sparse else list(map(_data, args))
        except AttributeError:
            wrong = next(a for a in args if not isinstance(a, NDArray))
            raise MXNetError(f"CachedOp: inputs must be NDArrays, received {shortened(wrong)} of type {type(wrong).__name__}") from None
        if len(tensors) != len(self._names):
            raise MXNetError(f"CachedOp: the graph has {len(self._names)} inputs ({', '.join(self._names)}), received {len(tensors)}")
        session = self._session
        ctx = args[0]._ctx if args else default_ctx or current_context()
        if sparse or not all(map(operator.is_, map(_ctx, args), itertools.repeat(ctx))):
            for i, a in enumerate(args):
                if a._ctx is not ctx and (a._ctx.device_id != ctx.device_id or (a._ctx.device_typeid ^ ctx.device_typeid) & 1):
                    raise MXNetError("CachedOp: inputs on different contexts: "
                                     f"{self._names[0]} on {ctx}, {self._names[i]} on {a._ctx}; move them with as_in_context()")
                if tensors[i] is None:
                    if session.runs_sparse and not is_np_array():
                        return self._call_sparse(args, ctx, out)
                    sparse_run.announce_dense("a graph of mx.np, or one with loops or branches,")
                    tensors[i] = a.tostype("default")._data
        training = mode.training
        recorded = mode.recording and any(map(_requires_grad, tensors))
        if training or session.always_writes:
            session.prepare(args, tensors, training, recorded)
        observe = None if self._hook is None else self._watcher(ctx)
        if recorded and training and observe is None and out is None and (arrays := self._call_explicit(args, tensors, ctx)) is not None:
            return arrays[0] if len(arrays) == 1 else arrays
        single_threaded = recorded and session.runs_single_threaded(tensors, ctx)
        results = session.run(tensors, ctx, training, recorded, observe, single_threaded)
        if observe is not None and recorded:
            observe.await_backward(results)
        if self._handed_on:
            for i in self._handed_on:
                results[i] = owned(results[i])
        kind = _numpy_array() if is_np_array() else NDArray
        outputs = [kind._new(t, ctx) for t in results]
        if recorded and mode.recording:
            record(self, {}, args, outputs, NodeRecord if single_threaded else TapeNode)
        if out is not None:
            return _write(out, outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _call_explicit(self, args: Sequence[NDArray], tensors: Sequence[Any], ctx: Context) -> list[NDArray] | None:
        """Record the call without torch's autograd, and return its results; None where that is not possible."""
        wanted = tuple([i for i, tensor in enumerate(tensors) if tensor.requires_grad])
        session = self._session
        if wanted in self._runner.not_explicit or self._handed_on or mode.tracing is not None:
            return None
        for i in wanted:
            if not explicit_calls.accepts(args[i]._autograd, tensors[i]):
                return None
        light = session.runs_single_threaded(tensors, ctx)
        run = session.run_explicit(tensors, ctx, wanted, light, own_results=True)
        return None if run is None else self.recorded(run, args, ctx, wanted, light)

    def recorded(self, run: tuple[TrainingGraph, list[Any], Any], args: Sequence[NDArray], ctx: Context, wanted: tuple[int, ...],
                 light: bool) -> list[NDArray]:
        """Return the results of a run of `Session.run_explicit` on these inputs, recorded."""
        graph, results, recorded = run
        kind = _numpy_array() if is_np_array() else NDArray
        arrays = [kind._new(result, ctx) for result in results]
        leaves = [result.requires_grad_() if through else None for result, through in zip(results, graph.recorded)]
        again = functools.partial(self._session.run, ctx=ctx, training=True, recorded=True)
        record(self, {}, args, arrays, functools.partial(ExplicitNode, call=ExplicitCall(graph, leaves, recorded, wanted, light, again)))
        return arrays

    def _call_sparse(self, args: Sequence[NDArray], ctx: Context, out: NDArray | Sequence[NDArray] | None):
        observe = None if self._hook is None else self._watcher(ctx)
        outputs = self._session.run_sparse(args, ctx, mode.training, mode.recording, observe)
        for i, array in enumerate(outputs):
            if i in self._handed_on or any(array is before for before in outputs[:i]):
                outputs[i] = array.copy()
        if out is not None:
            return _write(out, outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _watcher(self, ctx: Context) -> Watcher:
        """Return the function that passes the outputs of one call to the hook, and its gradients at the end of a backward pass that reaches it."""
        hook: Any = self._hook
        kind = _numpy_array() if is_np_array() else NDArray

        def tell(name: str, operator_name: str, tensor: Any) -> None:
            hook(handles.MonitorName(name), handles.MonitorName(operator_name), kind._new(tensor, ctx))

        return Watcher(tell, self._hook_inputs)

    @property
    def handle(self) -> GraphRunner:
        """The object that runs the graph, in place of MXNet's pointer into its library."""
        return self._runner

    @property
    def is_np_sym(self) -> bool:
        """True if the graph is one of ``mx.sym.np``, whose outputs are arrays of ``mx.np``."""
        return type(self.symbol) is not Symbol

    def as_symbol(self, inputs: Sequence[Symbol]) -> Symbol:
        """Return the graph on other inputs, for `autograd.get_symbol`."""
        out = copy.copy(self.symbol)
        out._compose(**dict(zip(self._names, inputs)))
        return out

    def _register_op_hook(self, callback: Callable, monitor_all: bool = False) -> None:
        """Call ``callback(name, operator, handle)`` for each output of each operator; with `monitor_all` for inputs too."""
        self._hook, self._hook_inputs = callback, monitor_all


def _numpy_array():
    from ..numpy import ndarray
    return ndarray


def _write(out: NDArray | Sequence[NDArray], outputs: Sequence[NDArray]):
    targets = [out] if isinstance(out, NDArray) else list(out)
    if len(targets) != len(outputs):
        raise MXNetError(f"CachedOp: `out` holds {len(targets)} arrays, the graph has {len(outputs)} outputs")
    for target, value in zip(targets, outputs):
        if target.shape != value.shape:
            raise MXNetError(f"CachedOp: `out` has shape {target.shape}, the output {value.shape}")
        if mode.recording and value._autograd is not None:  # the graph must go through the target itself
            target._rebind(value._data)
            share_history(target, value._autograd)
        else:
            target._set_values(value._raw())
    return out


def _restore(symbol: Any, flags: Any, thread_safe: bool, backend: str | None, options: dict[str, Any] | None):
    return CachedOp(symbol, flags, thread_safe, backend=backend, options=options)
