"""Bound graphs: a Symbol together with the arrays it reads and writes."""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from . import ndarray as nd
from . import openmp
from .base import DelayedError, MXNetError
from .context import intern_context
from .graph.runtime import sparse_run
from .graph.runtime.monitoring import ExecutorWatcher
from .graph.runtime.runner import GraphRunner
from .graph.runtime.session import Session
from .ndarray import NDArray, deferred_errors, handles, memory_format, mutation_tracking
from .ndarray.dispatch import Marked
from .ops import differentiation, failures, integers, random_state, sparse_input_linear
from .ops.grad_mode import no_grad
from .symbol import inference, split_layers

if TYPE_CHECKING:
    from .context import Context
    from .symbol import Symbol

_data = operator.attrgetter("_data")


class Executor:
    """A Symbol bound to a device and to arrays. `Symbol.bind` and `Symbol.simple_bind` make executors.

    Attributes
    ----------
    arg_arrays, grad_arrays, aux_arrays : list of NDArray
        In the order of the Symbol's arguments and auxiliary states; a gradient is None where none is computed.
    outputs : list of NDArray
        The results of the last `forward`.

    Example
    -------
    >>> import mxnet as mx
    >>> x = mx.sym.var('x')
    >>> exe = (x * x).bind(mx.cpu(), {'x': mx.nd.array([3.])}, args_grad={'x': mx.nd.zeros((1,))})
    >>> exe.forward(is_train=True)[0].asscalar()
    np.float32(9.0)
    >>> exe.backward(mx.nd.ones((1,)))
    >>> exe.grad_dict['x'].asscalar()
    np.float32(6.0)
    """

    _leaves: Any  # list of (number of the argument, leaf), where there are heads
    _heads: list[Any] | None
    _explicit: Any  # (graph, outputs, what its backward needs, the inputs with gradients) where torch's autograd is not used
    _random_state: Any  # the result of `random_state.get_state`
    _monitor_callback: Callable[[str, NDArray], object] | None
    _watcher: ExecutorWatcher | None
    _outputs: list[NDArray] | None
    _arg_dict: dict[str, NDArray] | None
    _grad_dict: dict[str, Any] | None
    _aux_dict: dict[str, NDArray] | None

    def __init__(self, handle: dict[str, Any], symbol: Symbol, ctx: Context, grad_req: Any, group2ctx: Mapping[str, Any] | None) -> None:
        """Bind the arrays of `handle`, a dict with ``args``, ``grads``, ``auxs`` (lists of arrays) and ``reqs`` (a list of str)."""
        self._symbol = symbol
        self._ctx = intern_context(ctx)
        self._grad_req, self._group2ctx = grad_req, group2ctx
        self.arg_arrays, self.grad_arrays, self.aux_arrays = handle["args"], handle["grads"], handle["auxs"]
        self._reqs = handle["reqs"]
        session = handle.get("session")
        if session is None:
            graph = _divided(symbol, group2ctx)
            session = Session(GraphRunner(_with_losses(graph) if set(self._reqs) - {"null"} else graph, group2ctx))
        self._session = session
        self._runner = self._session.runner
        self._arg_names, self._aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
        self._output_names = symbol.list_outputs()
        position = {n: i for i, n in enumerate(self._arg_names)}
        aux_position = {n: i for i, n in enumerate(self._aux_names)}
        # For each variable in the order of the runner: (True if auxiliary, its position).
        self._places = [(n in aux_position and n not in position, aux_position[n] if n in aux_position and n not in position else position[n])
                        for n in self._runner.input_names]
        self._converted = _converted(symbol)
        # Sparse arrays are passed to operators in their storage type.
        given = any(a._is_sparse for a in (*self.arg_arrays, *self.aux_arrays))
        self._sparse = (given or sparse_run.makes_sparse(symbol._nodes())) and not group2ctx and self._session.runs_sparse
        if given and not self._sparse:
            sparse_run.announce_dense("a graph with loops or branches, or on several devices,")
        self._leaves, self._heads, self._explicit, self._random_state = None, None, None, None
        self._single_threaded = False  # True if the calls recorded by the last `forward` are too cheap for several threads
        self.finished: dict[int, Callable[[], object]] = {}  # by number of the argument: called as soon as backward has computed the gradient
        self._delivered: set[int] = set()
        self._needs: dict[int, bool] = {}  # the results of `_needs_gradient`
        self._monitor_callback, self._monitor_all, self._watcher = None, False, None
        self._outputs = None
        self._output_memory = handle.get("outputs")  # only if the outputs share another executor's memory
        self._arg_dict = self._grad_dict = self._aux_dict = None

    # -- running -----------------------------------------------------------------------------------------------------------

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """Compute the outputs.

        Parameters
        ----------
        is_train : bool
            Run in training mode, and keep the intermediate results for `backward`.
        **kwargs : NDArray or numpy.ndarray
            New values for arguments, copied into the bound arrays.

        Returns
        -------
        list of NDArray

        Raises
        ------
        TypeError, ValueError
            If a keyword is no argument, or its value has another shape than the bound array.
        """
        if kwargs:
            arguments = self.arg_dict
            for name, value in kwargs.items():
                if not isinstance(value, (NDArray, np.ndarray)):
                    raise ValueError(f"forward: an NDArray or numpy.ndarray expected for {name}, received {type(value).__name__}")
                if name not in arguments:
                    raise TypeError(f"Unknown argument {name}; the arguments are {', '.join(arguments)}")
                if arguments[name].shape != value.shape:
                    raise ValueError(f"Shape not match! Argument {name}, need: {arguments[name].shape}, received: {value.shape}")
                arguments[name][:] = value
        self._random_state = None
        if not is_train and self._runner.is_stochastic and any(r != "null" for r in self._reqs):
            # `backward` may run the graph again, and must then draw the same numbers.
            self._random_state = random_state.get_state(self._ctx.torch_device)
        if self._outputs and deferred_errors.is_failed(self._outputs[0]):
            self._outputs = None
        try:
            results = self._run(bool(is_train), differentiate=bool(is_train))
        except DelayedError as error:
            self._leaves = self._heads = self._explicit = self._outputs = None
            self._outputs = deferred_errors.results(self.outputs, error)
            return self._outputs
        if self._sparse:
            self._outputs = _replaced(self._outputs, results)
            return self._outputs
        if self._output_memory is not None:
            for out, r in zip(self._output_memory, results):
                out._set_values(r.detach())
            self._outputs = self._output_memory
        elif self._outputs is None:
            self._outputs = [NDArray._new(r.detach(), self._output_context(r)) for r in results]
        else:
            for out, r in zip(self._outputs, results):
                out._rebind(r.detach())
        return self._outputs

    def _output_context(self, tensor: torch.Tensor) -> Context:
        return self._ctx if tensor.device == self._ctx.torch_device else nd.ndarray.context_of(tensor)

    def _run(self, is_train: bool, differentiate: bool) -> list:
        """Compute the outputs; with `differentiate`, keep the intermediate results for `backward`."""
        arrays = [(self.aux_arrays if is_aux else self.arg_arrays)[i] for is_aux, i in self._places]
        self._watcher = self._monitor_callback and self._new_watcher(self._monitor_callback)
        self._explicit = None
        wanted = [(k, i) for k, (is_aux, i) in enumerate(self._places) if not is_aux and self._reqs[i] != "null"] if differentiate else []
        if self._sparse:
            leaves = self._sparse_leaves(arrays, wanted)
            results = self._session.run_sparse(arrays, self._ctx, is_train, bool(leaves), self._watcher)
            heads = [r._data for r in results] if leaves else None
        else:
            tensors = list(map(_data, arrays))
            if is_train or self._session.always_writes:
                self._session.prepare(arrays, tensors, is_train, differentiate)
            tensors = [t.detach() if t.requires_grad else t for t in tensors]
            if is_train and wanted and self._run_explicit(tensors, wanted):
                return self._explicit[1][:len(self._output_names)]
            leaves = self._dense_leaves(tensors, wanted)
            self._single_threaded = bool(leaves) and self._session.runs_single_threaded(tensors, self._ctx)
            heads = results = self._session.run(tensors, self._ctx, is_train, bool(leaves), self._watcher, self._single_threaded)
        self._leaves, self._heads = (leaves, heads) if leaves else (None, None)
        return results[:len(self._output_names)]

    def _run_explicit(self, tensors: list[torch.Tensor], wanted: list[tuple[int, int]]) -> bool:
        """Compute the outputs without torch's autograd, and keep what `_backward_explicit` needs; return False where that is not possible."""
        if self._watcher is not None:
            return False
        self._single_threaded = self._session.runs_single_threaded(tensors, self._ctx)
        run = self._session.run_explicit(tensors, self._ctx, [k for k, _ in wanted], self._single_threaded)
        if run is not None:
            self._explicit = *run, wanted
            self._leaves = self._heads = None
        return run is not None

    def _backward_explicit(self, out_grads: Sequence[NDArray | None]) -> None:
        graph, outputs, recorded, wanted = self._explicit
        seeds = [self._seed(i, output, out_grads) if through else None for i, (output, through) in enumerate(zip(outputs, graph.recorded))]
        self._explicit = None
        numbers, reached = dict(wanted), set[int]()

        def receive(k: int, gradient: torch.Tensor) -> None:
            i = numbers[k]
            reached.add(i)
            Marked(self.grad_arrays[i], self._reqs[i]).receive(gradient)
            if i in self.finished:
                self.finished[i]()

        def lend(k: int) -> torch.Tensor | None:
            return memory_format.reusable(self.grad_arrays[numbers[k]]) if self._reqs[numbers[k]] == "write" else None

        try:
            with no_grad():
                if self._single_threaded:
                    openmp.alone(graph.backward, recorded, seeds, receive, lend)
                else:
                    graph.backward(recorded, seeds, receive, lend)
        except Exception as error:
            raise MXNetError(f"backward: {failures.in_words(error)}") from error
        for i, req in enumerate(self._reqs):
            if req == "write" and i not in reached:
                self.grad_arrays[i][:] = 0

    def _new_watcher(self, callback: Callable[[str, NDArray], object]) -> ExecutorWatcher:
        return ExecutorWatcher(lambda name, operator, tensor: callback(handles.MonitorName(name), NDArray._new(tensor, self._ctx)), self._monitor_all)

    def _dense_leaves(self, tensors: list[torch.Tensor], wanted: list[tuple[int, int]]) -> list[tuple[int, torch.Tensor]]:
        """Replace each tensor that needs a gradient by a leaf of torch's graph; return ``(number of the argument, leaf)`` for each."""
        leaves: list[tuple[int, torch.Tensor]] = []
        for k, i in wanted:
            if tensors[k].dtype.is_floating_point:
                tensors[k] = tensors[k].detach().requires_grad_()
                if self._reqs[i] == "add":
                    memory_format.keep(self.grad_arrays[i])
                if tensors[k].numel() >= sparse_input_linear.LARGE:
                    self._lend(i, tensors[k])
                if i in self.finished:
                    tensors[k].register_post_accumulate_grad_hook(functools.partial(self._deliver, i))
                leaves.append((i, tensors[k]))
            elif self._arg_names[i] in self._converted:
                marked = tensors[k] = integers.mark(tensors[k], lambda leaf: None)
                leaves.append((i, marked.shadow))
        return leaves

    def _lend(self, i: int, leaf: torch.Tensor) -> None:
        """Lend the gradient's array to the operator that computes a large gradient, so that there is no second copy of it."""
        buffer = self.grad_arrays[i]
        if self._reqs[i] != "write" or buffer._is_sparse:
            return
        memory = buffer._data.detach()
        others = (a for arrays in (self.arg_arrays, self.aux_arrays, self.grad_arrays) for a in arrays if a is not None and a is not buffer)
        if (memory.dtype is leaf.dtype and memory.shape == leaf.shape and memory.is_contiguous() and buffer._owns_memory()
                and all(a._is_sparse or a._data.untyped_storage().data_ptr() != memory.data_ptr() for a in others)):
            mutation_tracking.written(memory)
            sparse_input_linear.lend_memory(leaf, memory)

    def _sparse_leaves(self, arrays: list[NDArray], wanted: list[tuple[int, int]]) -> list[tuple[int, torch.Tensor]]:
        """Do the same as `_dense_leaves` for arrays; the other arrays are detached from recorded computations."""
        leaves = []
        for k, (is_aux, _) in enumerate(self._places):
            if not is_aux:
                arrays[k] = arrays[k].detach()
        for k, i in wanted:
            if arrays[k].dtype in (np.float16, np.float32, np.float64):
                arrays[k], leaf = sparse_run.variable(arrays[k])
                if not arrays[k]._is_sparse and leaf.numel() >= sparse_input_linear.LARGE:
                    self._lend(i, leaf)
                leaves.append((i, leaf))
        return leaves

    def backward(self, out_grads: NDArray | Sequence[NDArray | None] | dict[str, NDArray] | None = None, is_train: bool = True) -> None:
        """Compute the gradients of the last `forward`.

        Parameters
        ----------
        out_grads : NDArray, list or dict of str to NDArray, optional
            The gradients of the outputs. Outputs of loss layers, and results computed from these alone, need none.
        is_train : bool
            If `forward` ran without keeping intermediate results, the graph runs again, in training mode if this is True.

        Raises
        ------
        MXNetError
            If an output whose gradient counts has none given.
        """
        if out_grads is None:
            out_grads = [None] * len(self._output_names)
        elif isinstance(out_grads, NDArray):
            out_grads = [out_grads]
        elif isinstance(out_grads, dict):
            unknown = set(out_grads) - set(self._output_names)
            if unknown:
                raise MXNetError(f"backward: there are no outputs {sorted(unknown)}; they are called {', '.join(self._output_names)}")
            out_grads = [out_grads.get(n) for n in self._output_names]
        for g in out_grads:
            if g is not None and not isinstance(g, NDArray):
                raise TypeError(f"backward: the gradients of the outputs must be NDArrays, received {type(g).__name__}")
        if self._heads is None and self._explicit is None:
            self._run_again(is_train)
        if self._explicit is not None:
            self._backward_explicit(out_grads)
            return
        if self._heads is None:
            return
        heads, seeds = [], []
        for i, head in enumerate(self._heads):
            if not head.requires_grad:
                continue
            head = getattr(head, "shadow", head)  # of recorded integers; see ops/integers.py
            heads.append(head)
            seeds.append(self._seed(i, head, out_grads))
        leaves, self._leaves, self._heads = self._leaves, None, None
        if heads and leaves:
            try:
                # Through .grad instead of autograd.grad: torch then ensures that no two gradients share memory.
                inputs = [t for _, t in leaves]
                if self._single_threaded:
                    openmp.alone(differentiation.backward, heads, seeds, False, inputs)
                else:
                    differentiation.backward(heads, seeds, inputs=inputs)
            except Exception as error:
                raise MXNetError(f"backward: {failures.in_words(error)}") from error
        if self._watcher is not None:
            self._watcher.report_gradients(self._symbol._outputs, [None if g is None else g._data for g in out_grads])
        differentiable = {i for i, _ in leaves}
        for i, r in enumerate(self._reqs):
            if r == "write" and i not in differentiable:  # an integer input: its gradient is zero
                self.grad_arrays[i][:] = 0
        for i, leaf in leaves:
            if leaf.grad is not None:
                self._take(i, leaf)
            elif i in self._delivered:
                self._delivered.remove(i)
            elif self._reqs[i] == "write":
                self.grad_arrays[i][:] = 0

    def _seed(self, i: int, head: torch.Tensor, out_grads: Sequence[NDArray | None]) -> torch.Tensor:
        """Return the gradient of an output, as it was given; ones where it is not used."""
        seed = out_grads[i] if i < len(out_grads) else None
        if seed is None and i not in self._needs:
            self._needs[i] = i < len(self._output_names) and self._needs_gradient(i)
        if seed is None and self._needs[i]:
            raise MXNetError(f"backward: output '{self._output_names[i]}' is not the output of a loss layer, so its gradient must be given "
                             "in out_grads; to minimize the output itself pass it through mx.sym.make_loss")
        if seed is not None and seed.shape != tuple(head.shape):
            raise MXNetError(f"backward: the gradient of output '{self._output_names[i]}' has shape {seed.shape}, the output {tuple(head.shape)}")
        # Only losses have no seed, and they hardly use its values.
        return differentiation.ones(head) if seed is None else seed._raw().to(head.device, head.dtype)

    def _take(self, i: int, leaf: Any) -> None:
        buffer, gradient = self.grad_arrays[i], leaf.grad
        leaf.grad = None
        if not buffer._is_sparse and gradient.layout is torch.strided and gradient.data_ptr() == buffer._data.data_ptr() and gradient.numel():
            buffer._writable()  # it exists already
        else:
            Marked(buffer, self._reqs[i]).take(gradient)

    def _deliver(self, i: int, leaf: torch.Tensor) -> None:
        """Store a gradient while backward still runs, and call the argument's callback."""
        self._take(i, leaf)
        self._delivered.add(i)
        self.finished[i]()

    def _run_again(self, is_train: bool) -> None:
        """Run the graph for its gradients, drawing the numbers that the last `forward` drew."""
        device, now = self._ctx.torch_device, None
        if self._random_state is not None:
            now = random_state.get_state(device)
            random_state.set_state(device, self._random_state)
        try:
            self._run(bool(is_train), differentiate=True)
        finally:
            if now is not None:
                random_state.set_state(device, now)

    def _needs_gradient(self, i: int) -> bool:
        """Return True if the gradient of an output reaches an argument with a gradient; output layers ignore it and block the path."""
        wanted = {n for n, r in zip(self._arg_names, self._reqs) if r != "null"}
        waiting, seen = [self._symbol._outputs[i][0]], set()
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node.op is None:
                if node.name in wanted:
                    return True
            elif not (node.op.no_gradient or node.op.stops_gradient or node.op.is_loss(node.parsed())):
                waiting += [child for child, _ in node.inputs]
        return False

    # -- arrays ------------------------------------------------------------------------------------------------------------

    @property
    def outputs(self) -> list[NDArray]:
        """The results of the last `forward`; before the first, arrays of the right shapes."""
        if self._outputs is None:
            shapes = self._symbol._infer_shape(False, (), {n: a.shape for n, a in self.arg_dict.items()})
            types = self._symbol.infer_type_partial(**{n: a._data.dtype for n, a in self.arg_dict.items()})[1]
            if shapes is None:
                self.forward()
            else:
                self._outputs = [nd.zeros(s, ctx=self._ctx, dtype=t or "float32") for s, t in zip(shapes[1], types)]
        return self._outputs  # type: ignore[return-value]  # forward sets them

    _output_dict = property(lambda self: self.output_dict)
    _optimized_symbol = property(lambda self: self.get_optimized_symbol())

    def _get_outputs(self) -> list[NDArray]:
        return self.outputs

    @staticmethod
    def _get_dict(names: Sequence[str], ndarrays: Sequence[Any]) -> dict[str, Any]:
        return _by_name(names, ndarrays, "arrays")

    @property
    def arg_dict(self) -> dict[str, NDArray]:
        """The arguments by name."""
        if self._arg_dict is None:
            self._arg_dict = _by_name(self._arg_names, self.arg_arrays, "arguments")
        return self._arg_dict

    @property
    def grad_dict(self) -> dict[str, Any]:
        """The gradients by name of the argument; None where none is computed."""
        if self._grad_dict is None:
            self._grad_dict = _by_name(self._arg_names, self.grad_arrays, "arguments")
        return self._grad_dict

    @property
    def aux_dict(self) -> dict[str, NDArray]:
        """The auxiliary states by name."""
        if self._aux_dict is None:
            self._aux_dict = _by_name(self._aux_names, self.aux_arrays, "auxiliary states")
        return self._aux_dict

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """The outputs by name."""
        return _by_name(self._output_names, self.outputs, "outputs")

    def copy_params_from(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray] | None = None,
                         allow_extra_params: bool = False) -> None:
        """Copy values into arguments and auxiliary states.

        Raises
        ------
        ValueError
            If a name is unknown and not `allow_extra_params`.
        """
        for params, bound, kind in ((arg_params, self.arg_dict, "arguments"), (aux_params or {}, self.aux_dict, "auxiliary states")):
            for name, value in params.items():
                if name in bound:
                    if value is None:
                        raise MXNetError(f"{name}: the file, or the dictionary, has no value for it, received None")
                    if bound[name].shape != value.shape:
                        raise MXNetError(f"{name}: the value has shape {value.shape}, the bound array {bound[name].shape}")
                    value.astype(bound[name].dtype, copy=False).copyto(bound[name]) if bound[name] is not value else None
                elif not allow_extra_params:
                    raise ValueError(f"Find name \"{name}\" that is not in the {kind}; received {sorted(params)}, bound are {sorted(bound)}; "
                                     "allow_extra_params=True ignores it")

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any) -> Executor:
        """Return an executor of the same graph for other shapes. It shares memory with this one where the arrays are large enough.

        Parameters
        ----------
        partial_shaping : bool
            Allow the shapes of arguments that are not named to change.
        allow_up_sizing : bool
            Allow larger shapes, for which new arrays are made.
        **kwargs : tuple of int
            New shapes of arguments.
        """
        arg_shapes, out_shapes, aux_shapes = self._symbol.infer_shape(**kwargs)
        if arg_shapes is None:
            raise ValueError(f"Insufficient argument shapes provided: {kwargs} does not determine the shapes of the other arguments")

        def fit(name: str, array: Any, shape: tuple[int, ...], given: bool) -> Any:
            if array is None or array.shape == shape:
                return array
            if not (given or partial_shaping):
                raise ValueError(f"reshape: {name} changes from {array.shape} to {shape} though no shape was given for it, so that the new executor "
                                 "has an array of its own. If you want that, pass partial_shaping=True.")
            count = int(np.prod(shape))
            if count > array.size:
                if not allow_up_sizing:
                    raise ValueError(f"reshape: {name} grows from {array.shape} to {shape}, for which memory is missing. Bind the largest shape and "
                                     "reshape to smaller ones, or pass allow_up_sizing=True.")
                return nd.empty(shape, ctx=array.ctx, dtype=array.dtype)
            return NDArray._new(array._raw().reshape(-1)[:count].reshape(shape), array._ctx)

        args = [fit(n, a, s, n in kwargs) for n, a, s in zip(self._arg_names, self.arg_arrays, arg_shapes)]
        grads = [fit(n, g, s, n in kwargs) for n, g, s in zip(self._arg_names, self.grad_arrays, arg_shapes)]
        auxs = [fit(n, a, s, False) for n, a, s in zip(self._aux_names, self.aux_arrays, aux_shapes)]
        outputs = [NDArray._new(a._raw().reshape(-1)[:int(np.prod(s))].reshape(s), a._ctx) if int(np.prod(s)) <= a.size
                   else nd.zeros(s, ctx=a.ctx, dtype=a.dtype) for a, s in zip(self.outputs, out_shapes)]
        reshaped = Executor({"args": args, "grads": grads, "auxs": auxs, "reqs": self._reqs, "session": self._session, "outputs": outputs},
                            self._symbol, self._ctx, self._grad_req, self._group2ctx)
        reshaped.set_monitor_callback(self._monitor_callback, self._monitor_all)
        return reshaped

    # -- inspection ----------------------------------------------------------------------------------------------------------

    def set_monitor_callback(self, callback: Callable[[str, NDArray], object] | None, monitor_all: bool = False) -> None:
        """Call ``callback(name, array)`` for every output of every operator in `forward`, and for the gradients of its inputs in `backward`.

        Gradients are called ``<operator>_backward_output<i>``. With `monitor_all` the callback also receives inputs, in `backward` as
        ``<operator>_backward_input<i>``.
        The array may be used as it is, or cast to a handle as with MXNet: ``NDArray(ctypes.cast(array, NDArrayHandle), writable=False)``.
        """
        self._monitor_callback, self._monitor_all = callback, monitor_all

    def get_optimized_symbol(self) -> Symbol:
        """Return the graph that runs, after common subexpressions were eliminated."""
        return type(self._symbol)(self._runner.outputs)

    @property
    def settled(self) -> bool:
        """True if the choice of the graph's backend is final for the shapes so far; before that, a call may compile or benchmark."""
        return self._runner.settled

    def explain(self) -> str:
        """Return a report on the results of the passes and backends for the graph, as text; see `gluon.HybridBlock.explain`."""
        return self._runner.explain()

    def debug_str(self) -> str:
        """Return a listing of the graph and an estimate of the memory of its intermediate results."""
        total = planned_bytes(self._symbol, {n: a.shape for n, a in self.arg_dict.items()}, dict(zip(self._arg_names, self._reqs)))
        return f"{self._symbol.debug_str()}Total {total // 2 ** 20} MB allocated\nTotal {total} bytes of intermediate results\n"


def planned_bytes(symbol: Symbol, shapes: Mapping[str, Any], reqs: Mapping[str, str]) -> int:
    """Return the peak memory of intermediate results in bytes, in float32: those that gradients need, and others until their last use.

    Example
    -------
    >>> net = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2, name='fc')
    >>> mx.executor.planned_bytes(net, {'data': (1, 3)}, {}) > 0
    True
    """
    shapes_found, nodes = inference.infer_shapes(symbol._outputs, {k: inference.from_user(v) for k, v in shapes.items()})
    last_use = {}
    for position, node in enumerate(nodes):
        for child, _ in node.inputs:
            last_use[id(child)] = position
    for node, _ in symbol._outputs:
        last_use[id(node)] = len(nodes)
    differentiated: set[int] = set()
    ends: dict[int, list[int]] = {}
    live = peak = 0
    # Results on the path of a gradient are needed until backward, unless no output with a gradient depends on them.
    reaches = set()
    for node, _ in symbol._outputs:
        if node.op is not None and not (node.op.no_gradient or node.op.stops_gradient):
            reaches.add(id(node))
    for node in reversed(nodes):
        if id(node) in reaches:
            reaches.update(id(c) for c, _ in node.inputs if c.op is None or not (c.op.no_gradient or c.op.stops_gradient))
    for position, node in enumerate(nodes):
        if node.op is None:
            if reqs.get(node.name, "null") != "null":
                differentiated.add(id(node))
            continue
        size = sum(4 * int(np.prod(shapes_found[id(node), i] or (0,))) for i in range(node.num_outputs()))
        if id(node) in reaches and any(id(c) in differentiated for c, _ in node.inputs):
            differentiated.add(id(node))
        live += size
        peak = max(peak, live)
        if id(node) not in differentiated:
            ends.setdefault(last_use.get(id(node), position), []).append(size)
        live -= sum(ends.pop(position, []))
    return peak


def _converted(symbol: Symbol) -> set[str]:
    """Return the names of variables that are cast before any other operator reads them: as integers they still get a gradient.

    The gradients of those that operators read as labels or indices are zero, without the cost of recording integers.
    """
    read: set[str] = set()
    others: set[str] = set()
    for node in symbol._nodes():
        for child, _ in node.inputs:
            if child.op is None:
                (read if node.op.is_cast else others).add(child.name)
    return read - others


def _divided(symbol: Symbol, group2ctx: Mapping[str, Any] | None) -> Symbol:
    """Return the graph that computes a layer of the group ``sharded`` in parts, if this has several contexts."""
    contexts = split_layers.contexts_of(group2ctx)
    if len(contexts) < 2 or not split_layers.splits(symbol._nodes()):
        return symbol
    if any(ctx.torch_device.type != "cpu" for ctx in contexts):
        raise MXNetError(f"an executor has a weight in one array, which {', '.join(map(str, contexts))} do not share; use mx.mod.Module(..., "
                         "group2ctxs=...), which gives each of them some rows")
    return split_layers.split(symbol, contexts)[0]


def _with_losses(symbol: Symbol) -> Symbol:
    """Return the Symbol with all output layers added to its outputs: they have gradients even if none arrives from their consumers."""
    heads = {id(n) for n, _ in symbol._outputs}
    losses = (n for n in symbol._nodes() if n.op is not None and id(n) not in heads and n.op.is_loss(n.parsed()))
    hidden = [(n, 0) for n in losses if not n.parsed().get("out_grad")]
    return type(symbol)([*symbol._outputs, *hidden]) if hidden else symbol


def _by_name(names: Sequence[str], arrays: Sequence[Any], what: str) -> dict[str, Any]:
    if len(set(names)) != len(names):
        raise ValueError(f"Duplicate names detected among the {what}: {sorted(n for n in set(names) if names.count(n) > 1)}")
    return dict(zip(names, arrays))


def _replaced(outputs: list[Any] | None, results: Sequence[Any]) -> list[Any]:
    """Return the outputs of an executor with new values: the same arrays where the storage type is unchanged."""
    results = [r.detach() for r in results]
    if outputs is None or [o.stype for o in outputs] != [r.stype for r in results]:
        return results
    for out, r in zip(outputs, results):
        if out._is_sparse:
            out._values, out._aux, out._full_shape = r._values, r._aux, r._full_shape
        else:
            out._rebind(r._data)
    return outputs
