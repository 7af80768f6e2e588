"""The runner of a Symbol: lowered once for each mode and device, compiled once for each key that its backend distinguishes."""
import functools
import math
import operator
import os
import threading
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from ... import environment
from ...base import DelayedError, MXNetError
from ...context import Context
from ...ndarray import dispatch
from ...ops import failures
from ...ops.dtypes import TORCH_TO_NAME
from ...ops.grad_mode import no_grad
from ...symbol import Symbol, inference
from ...symbol.fused import CachedGraph, Fused
from ...symbol.node import Node, auxiliary
from ..backends import registry
from ..backends.cpu.algorithms import algorithms
from ..backends.cuda import graph_capture, training_capture
from ..instrumentation import call_of, instrumented
from ..lower import lower
from ..passes import layout, output_ownership, recomputation, recurrent_layers, rnn_fusion
from ..passes.cse import eliminate_common_expressions
from ..program import Function, Program, copied, holds
from ..tuning import policy
from ..tuning.cache import NATIVE, CachedChoice, CacheEntry
from ..tuning.comparison import Comparing
from ..tuning.inference_states import Compiled, Native, State, Validating, Warmup
from . import batch_norm_conditioning, threading_policy
from .explicit_gradients import ExplicitGraph, TrainingGraph
from .half_precision import warn_if_slow
from .monitoring import MOMENTS, Watcher, hides_outputs

_FOR_A_MONITOR = "node by node, for a monitor"  # the note in a profile: every output is reported
_MOST_SHAPES = 1024  # of data, whose check is cached
_MOST_CAPTURES = 4  # sets of shapes captured on a GPU if shapes are not promised to be fixed
_MOST_CONTEXTS = 16  # whose weights are known
_MOST_CAPTURED = 8  # sets of shapes whose training is captured: each capture has its own memory for gradients


class _Misfit(Exception):
    """Carries an error of the shape rules, which name the failed node, past the search for that node."""

    def __init__(self, error: MXNetError):
        self.error = error


class GraphRunner:
    """Runs one Symbol on torch tensors.

    Parameters
    ----------
    symbol : Symbol
    group2ctx : dict of str to Context, optional
        Where the nodes of each ``ctx_group`` run: of a list of contexts on the first, except for the parts of divided layers.
    backend : str, optional
        By default the one named by ``MXNET_SUBGRAPH_BACKEND``; else the graph starts on `native`, and inference on a CPU is compiled
        when that is worth its time (`tuning.policy`).
    options : dict, optional
        The backend's options.
    weights : list of int, optional
        Positions of the inputs that rarely change, in ``symbol.list_inputs()``; by default those that operators declare as weights.
    fixed_shape : bool
        The caller promises that shapes stay the same: the graph is compiled, or on a GPU captured, at the first call.
    exact : bool
        If True, convolutions never run on kernels with fewer multiplications and larger rounding errors.

    The runner holds no values: several threads may call it at once.
    """

    def __init__(self, symbol: Symbol, group2ctx: Mapping[str, Any] | None = None, backend: str | None = None,
                 options: Mapping | None = None, weights: Iterable[int] | None = None, fixed_shape: bool = False, exact: bool = False):
        if not symbol._outputs:
            raise MXNetError("this Symbol has no outputs, so that running it would do nothing; what only writes to its inputs, such as reset_arrays, "
                             "is to be called on arrays")
        self.outputs = eliminate_common_expressions(symbol._outputs)
        self.symbol = symbol
        nodes = symbol._nodes()
        self.input_names = [n.name for n in nodes if n.op is None]
        aux = auxiliary(nodes)
        self.aux_names = [n.name for n in nodes if id(n) in aux]
        self.node_devices = {g: (c[0] if isinstance(c, (list, tuple)) else c).torch_device for g, c in (group2ctx or {}).items()} or None
        if backend is None:
            backend, given = registry.marked(symbol)
            options = options or given
        self.backend = registry.get(backend)
        self.options = options or {}
        if self.options and self.backend is registry.get("native"):
            raise MXNetError(f"backend 'native' takes no options, received {sorted(self.options)}")
        self.is_stochastic = any(n.op is not None and (n.op.wants_training or n.op.stochastic) for n in nodes)
        self._fused = any(isinstance(n.op, (CachedGraph, Fused)) for n in nodes)
        self._open = [n for n in nodes if inference.open_shape(n)]
        self.weights = tuple(_weights(nodes, self.input_names) if weights is None else weights)
        positions = set(self.weights)
        self._data = [i for i in range(len(self.input_names)) if i not in positions]
        # The positions whose shapes are the key of a state: with sizes left open, native's graph depends on all shapes.
        self._key_positions = list(range(len(self.input_names))) if self._open else self._data
        self._freezes = self.backend is None or getattr(self.backend, "freezes", False)  # if True, inference runs by states
        self._compares = (backend or os.environ.get("MXNET_SUBGRAPH_BACKEND")) == registry.AUTO
        self._patient = not fixed_shape and not self._compares
        self._exact = exact
        self._captures, self._captures_at_once = graph_capture.allowed(), graph_capture.at_once(fixed_shape)
        self._steps_before_capture = training_capture.wanted(fixed_shape)
        self.channels_last: tuple[int, ...] = ()  # positions of the weights that training reads fastest with their channels last
        self.reports: dict[tuple, list[str]] = {}  # of the passes for torch, by mode and device
        self._recurrences: list[str] = []  # the report of `rnn_fusion`
        self._lowered: dict[tuple, fx.GraphModule] = {}
        self._on_native: dict[tuple, Function] = {}
        self._compiled: dict[tuple, Function] = {}  # by backends that were named, or are the fastest in training
        self._trained: dict[tuple, training_capture.Captured] = {}  # on GPUs, by mode, device and shapes
        self.states: dict[tuple, State] = {}  # of inference with compiled weights or captured graphs
        self._nodes = nodes
        self._fit: set[tuple] = set()  # shapes of data that passed the operators' shape rules, with weights of the following shapes
        self._fit_shapes: list[torch.Size] = []
        self._fit_weights: list[list[weakref.ref]] = []  # of each context; weak: a reference to a tensor would prevent a change of its memory format
        self._single_threaded: dict[tuple, bool] = {}  # by shapes of data
        self._norms = batch_norm_conditioning.batch_norms(nodes)
        self._ill_conditioned: dict[tuple, bool] = {}  # by shapes of data
        self.not_explicit: set[tuple[int, ...]] = set()  # inputs whose gradients need torch's autograd, whatever their shapes are
        self._explicit: dict[tuple, ExplicitGraph | None] = {}  # by the module that trains, and the inputs with gradients
        self._lock = threading.RLock()

    def __call__(self, inputs: Sequence[torch.Tensor], is_train: bool = False, ctx: Context | None = None,
                 observe: Watcher | None = None) -> list[torch.Tensor]:
        """Return the outputs, a list of tensors.

        Parameters
        ----------
        inputs : list of torch.Tensor
            In the order of ``symbol.list_inputs()``.
        is_train : bool
        ctx : Context
            The device that operators without inputs use.
        observe : Watcher, optional
            A monitor, called for every variable and operator.
        """
        device = ctx.torch_device if ctx is not None else inputs[0].device if inputs else torch.device("cpu")
        try:
            if observe is None:
                function = self._function(inputs, is_train, device)  # may run the graph to compare backends
                if dispatch.graph_observer is not None:
                    function = instrumented(function, "" if self.backend is None else self.backend.name)
            else:
                self._check(inputs)
                function = _MonitoredRun(self.lowered(is_train, device, inputs, inlines=False), observe).run
            return list(function(*inputs))
        except _Misfit as misfit:
            raise misfit.error from misfit.error.__cause__
        except Exception as error:
            located = self._located(inputs, is_train, device, error)
            if located is error:
                raise
            raise located from error

    def explicit(self, inputs: Sequence[torch.Tensor], device: torch.device, wanted: Sequence[int]) -> TrainingGraph | None:
        """Return the training graph with gradients for the inputs in these places, if torch's autograd is not needed for them."""
        if not self._freezes or self._compares or self.node_devices or dispatch.graph_observer is not None:
            return None
        if device.type != "cpu":
            captured = self._trained.get(self._training_key(inputs, True, device, tuple(wanted)))
            if captured is None or not captured.ready:
                return None
        elif any([inputs[i].dtype is not torch.float32 for i in wanted]):
            return None
        if tuple([inputs[i].shape for i in self._data]) not in self._fit or not self.same_weights(inputs):
            self._check(inputs)
        if device.type != "cpu":
            return captured
        module: Any = self._native(inputs, True, device).__self__  # type: ignore[attr-defined]  # a bound method
        key = module, *wanted
        if key not in self._explicit:
            if len(self._explicit) >= _MOST_SHAPES:
                self._explicit.clear()
            graph = self._explicit[key] = ExplicitGraph.of(module, wanted)
            if graph is None and not self._open and not self._norms:  # with these the module depends on the shapes
                self.not_explicit.add(tuple(wanted))
        return self._explicit[key]

    def same_weights(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Return True if these weights were checked before: compared by identity, since networks have hundreds."""
        weights = map(inputs.__getitem__, self.weights)
        first = next(weights, None)
        if first is None:
            return bool(self._fit_weights)
        for known in self._fit_weights:
            if known[0]() is first:
                return all(map(operator.is_, weights, [ref() for ref in known[1:]]))
        return False

    def _check(self, inputs: Sequence[torch.Tensor]) -> None:
        """Check all inputs, weights included, by the operators' shape rules, before the graph first runs on inputs of these shapes.

        Compilers and kernels rely on the declared shapes of weights, and torch broadcasts some that are too small.
        """
        weights = [inputs[i] for i in self.weights]
        shapes, data = [t.shape for t in weights], tuple([inputs[i].shape for i in self._data])
        alike = shapes == self._fit_shapes
        if not alike or data not in self._fit:
            try:
                inference.check_shapes(self._nodes, {n: tuple(t.shape) for n, t in zip(self.input_names, inputs)})
            except MXNetError as error:
                raise _Misfit(error) from None
        # Sets are replaced and never modified, for concurrent threads.
        others = [refs for refs in self._fit_weights if alike and refs and (first := refs[0]()) is not None and first is not weights[0]]
        self._fit_weights, self._fit_shapes = [*others[1 - _MOST_CONTEXTS:], list(map(weakref.ref, weights))], shapes
        self._fit = {*(self._fit if alike and len(self._fit) < _MOST_SHAPES else ()), data}

    def runs_single_threaded(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Return True if no operator of the graph is worth sharing among threads, on inputs of these shapes."""
        key = tuple([inputs[i].shape for i in self._data])
        cached = self._single_threaded.get(key)
        if cached is None:
            try:
                cached = threading_policy.runs_single_threaded(self._nodes, {n: tuple(t.shape) for n, t in zip(self.input_names, inputs)})
            except MXNetError:
                return False  # running the graph raises the error
            if len(self._single_threaded) < _MOST_SHAPES:
                self._single_threaded[key] = cached
        return cached

    def _is_ill_conditioned(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Return True if training on inputs of these shapes has to round like eager execution; see `batch_norm_conditioning`."""
        key = tuple([inputs[i].shape for i in self._data])
        known = self._ill_conditioned.get(key)
        if known is None:
            known = batch_norm_conditioning.is_ill_conditioned(self._nodes, self._norms,
                                                               {n: tuple(t.shape) for n, t in zip(self.input_names, inputs)})
            if len(self._ill_conditioned) < _MOST_SHAPES:
                self._ill_conditioned[key] = known
        return known

    def lowered(self, is_train: bool, device: torch.device, inputs: Sequence[torch.Tensor], inlines: bool = True) -> fx.GraphModule:
        """Return the lowered graph; with `inlines`, as for `lower`, its nodes need not be the Symbol's."""
        key = is_train, device, inlines, self._open_key(inputs)
        module = self._lowered.get(key)
        if module is None:
            with self._lock:
                module = self._lowered.get(key)
                if module is None:
                    module = lower(self.outputs, is_train, device, self.node_devices, self._source_shapes(inputs), inlines or not self._fused)
                    if inlines and not self.node_devices:
                        self._recurrences = rnn_fusion.apply(module, is_train, device)
                    output_ownership.apply(module)
                    self._lowered[key] = module
                    if device.type == "cpu" and any(holds(n, "compute_bound") for n in module.graph.nodes):
                        warn_if_slow(t.dtype for t in inputs)
        return module

    def _function(self, inputs: Sequence[torch.Tensor], is_train: bool, device: torch.device) -> Function:
        """Return the function that runs the graph in this call."""
        backend = self.backend
        recorded = torch.is_grad_enabled() and any(t.requires_grad for t in inputs)
        if self._freezes and not is_train and not recorded and not self.node_devices and not policy.process.forked:
            key = self._state_key(inputs, device)
            state = self.states.get(key)
            if type(state) is not Compiled and (state is None or not self.same_weights(inputs)):
                self._check(inputs)
            return state.function if state is not None and state.holds(inputs) else self._next(key, inputs, device).function
        if tuple([inputs[i].shape for i in self._data]) not in self._fit or not self.same_weights(inputs):
            self._check(inputs)
        if self._compares and recorded and not self.node_devices:
            return self._fastest_training(inputs, is_train, device)
        if self._freezes or recorded and not backend.trains:
            if recorded and device.type == "cuda" and self._steps_before_capture is not None and not self.node_devices:
                return self._captured_training(inputs, is_train, device)
            return self._native(inputs, is_train, device)
        key = (is_train, device, self._open_key(inputs))
        if backend.specializes:
            key += tuple((t.shape, t.dtype) for t in inputs)
        function = self._compiled.get(key)
        if function is None:
            module = self.lowered(is_train, device, inputs)
            with self._lock:
                function = self._compiled.get(key)
                if function is None:
                    registry.check_device(backend, device)
                    function = self._compiled[key] = backend.compile(Program(module, inputs, exact=self._exact), **self.options)
        return function

    def _state_key(self, inputs: Sequence[torch.Tensor], device: torch.device) -> tuple:
        return (device, *[(inputs[i].shape, inputs[i].dtype) for i in self._key_positions])

    def decided(self, inputs: Sequence[torch.Tensor], device: torch.device) -> State | None:
        """Return the state of inference on inputs like these if only a changed weight leads on from it; else None."""
        state = self.states.get(self._state_key(inputs, device)) if self._freezes and not self.node_devices else None
        return state if type(state) is Compiled or type(state) in (Native, graph_capture.Captured) and not self._open else None

    def run_decided(self, state: State, inputs: Sequence[torch.Tensor], same: bool) -> Sequence[torch.Tensor] | None:
        """Return the outputs by a `decided` state for inputs like these; None if it does not hold any more.

        `same`: the caller knows that the weights are the very tensors of an earlier successful call.
        """
        if policy.process.forked:
            return None
        if type(state) is Compiled:
            if not (same and state.weights.holds_unread() or state.holds(inputs)):
                return None
        elif not state.holds(inputs) or not self.same_weights(inputs):
            return None
        return state.function(*inputs)

    def _next(self, key: tuple, inputs: Sequence[torch.Tensor], device: torch.device) -> State:
        """Return the next state of inference, where there was none, or the current one does not hold any more. All transitions are here.

        ============================  ==========================================================================================
        none, or a changed weight     `Compiled` by the backend that was named. With none named, on a CPU: `Warmup`, or at once
                                      `Compiled` or `Native`, after a comparison, where shapes are promised to stay or all backends are
                                      compared. On a GPU: `Warmup`, or at once its successor, where shapes are promised to stay.
        `Warmup` has taken its time   `Validating` of the compiled graph; `Native` if no backend compiles it, or it draws random numbers.
                                      On a GPU: `Captured`; `Native` after some sets of shapes, or where neither folding nor capturing is allowed.
        `Validating` is decided       `Compiled` if it is right and faster; else `Native`.
        `Comparing` is decided        `Compiled` by the faster backend.
        `CachedChoice` is validated   `Compiled`; else as if there were no cached choice.
        ============================  ==========================================================================================

        A graph compiled by OpenVINO becomes `Comparing` instead of `Compiled` where `kernels` may be faster. With a cached choice, `CachedChoice`
        (or `Native`) takes the place of `Validating` and `Comparing`.
        """
        named, compilable = self.backend is not None, policy.may_compile(device)
        patient, before = not named and compilable and self._patient, self.states.get(key)
        follows: State
        if isinstance(before, (Comparing, CachedChoice)) and before.choice is not None and before.choice.holds(inputs):
            follows = self.states[key] = before.choice
            before.release()
            return follows
        if patient and type(before) is not Warmup:
            # Outside of the lock: nothing is compiled here, so no thread waits for one that compiles for other shapes.
            native = self._native(inputs, False, device)
            follows = Warmup(native, policy.budget(sum(n.op is not None for n in self.symbol._nodes())))
            if type(before) is Validating and before.is_decided:
                module = self.lowered(False, device, inputs)
                entry = CacheEntry(module, inputs, self.weights, self._exact)
                if not before.is_faster:
                    follows = Native(native, before.native_reason)
                elif before.frozen.holds(inputs):
                    recurrent_layers.release(native)
                    follows = policy.with_comparison(before.frozen, module, inputs, device, self._exact, entry)
                if before.agrees and type(follows) in (Native, Compiled):
                    message = entry.store(before.frozen.name if before.is_faster else NATIVE, before.seconds, before.waited)
                    if before.is_faster:
                        before.frozen.program.note(f"{before.frozen.name}: {message}")
            self.states[key] = follows
            return follows
        with self._lock:
            state = self.states.get(key)
            if state is not None and state.holds(inputs):  # another thread was faster
                return state
            if named:
                registry.check_device(self.backend, device)
                state = policy.freeze(self.backend, self.lowered(False, device, inputs), inputs, self.weights, self.options, self._exact)
            elif compilable:
                state = self._compile_best(inputs, device, before)
            elif device.type == "cuda" and environment.get_bool("MXNET_EXEC_BULK_EXEC_INFERENCE"):
                state = self._on_gpu(inputs, device, before)
            else:
                state = Native(self._native(inputs, False, device))
            self.states[key] = state
            return state

    def _on_gpu(self, inputs: Sequence[torch.Tensor], device: torch.device, before: State | None) -> State:
        """Return the next state on a GPU without a named backend."""
        native = self._native(inputs, False, device)
        if not self._captures_at_once:
            if type(before) is not Warmup:
                return Warmup(native, policy.budget(sum(n.op is not None for n in self.symbol._nodes())))
            if sum(type(state) is graph_capture.Captured for state in self.states.values()) >= _MOST_CAPTURES:
                return Native(native, f"after CUDA graphs for {_MOST_CAPTURES} sets of shapes")
        module = self.lowered(False, device, inputs)
        state = graph_capture.Captured(native, module, inputs, self.weights, device, self._exact, self._captures)
        return state if self._captures or state.prepared is not None else Native(native)

    def _compile_best(self, inputs: Sequence[torch.Tensor], device: torch.device, before: State | None) -> State:
        """Return the next state on a CPU when the graph is to be compiled, without a named backend."""
        module = self.lowered(False, device, inputs)
        # A comparison of all backends ignores cached choices.
        entry = None if self._compares else CacheEntry(module, inputs, self.weights, self._exact)
        if entry is not None:
            make_native = functools.partial(self._native, inputs, False, device)
            state = policy.from_cache(entry, module, make_native, inputs, self.weights, device, self._exact, not self._patient)
            if state is not None:
                return state
        if self._patient:
            fastest = before.fastest if type(before) is Warmup else math.inf
            native = self._native(inputs, False, device)
            return policy.start_validation(module, native, fastest, inputs, self.weights, device) or Native(native)
        compiled = None if entry is None else policy.compile_without_validation(module, inputs, self.weights, device)
        if compiled is not None:
            return policy.with_comparison(compiled, module, inputs, device, self._exact, entry)
        native = self._native(inputs, False, device)
        best, lost = policy.compare_backends(module, native, inputs, self.weights, device, self._compares, self._exact, entry)
        return best or Native(native, lost)

    def _native(self, inputs: Sequence[torch.Tensor], is_train: bool, device: torch.device) -> Function:
        """Return the graph's function on torch, after the passes for torch."""
        as_eager = is_train and bool(self._norms) and self._is_ill_conditioned(inputs)
        key = (is_train, device, self._open_key(inputs), as_eager)
        function = self._on_native.get(key)
        if function is None:
            module = copied(self.lowered(is_train, device, inputs))
            bulk = environment.get_bool("MXNET_EXEC_BULK_EXEC_TRAIN" if is_train else "MXNET_EXEC_BULK_EXEC_INFERENCE") and not as_eager
            self.reports[is_train, device] = registry.prepare(module, device, exact=self._exact, training=is_train) if bulk else []
            if as_eager:
                self.reports[is_train, device] = ["exact: as eager execution, for batch norms of few values"]
            elif is_train and self.reports[is_train, device]:
                self.channels_last = tuple(i for i in layout.weights(module) if registry.wants_channels_last(inputs[i]))
            mirrored = environment.get_bool("MXNET_BACKWARD_DO_MIRROR")
            if is_train and not self.node_devices and (mirrored or recomputation.marked(module)):
                self.reports[is_train, device] += recomputation.apply(module, mirrored)
            function = self._on_native[key] = module.forward
        return function

    def _training_key(self, inputs: Sequence[torch.Tensor], is_train: bool, device: torch.device, wanted: tuple[int, ...]) -> tuple:
        return (is_train, device, wanted, *[(inputs[i].shape, inputs[i].dtype) for i in self._data])

    def _captured_training(self, inputs: Sequence[torch.Tensor], is_train: bool, device: torch.device) -> Function:
        """Return the function for training on a GPU, captured for the first sets of shapes."""
        wanted = tuple([i for i, t in enumerate(inputs) if t.requires_grad])
        key = self._training_key(inputs, is_train, device, wanted)
        captured = self._trained.get(key)
        if captured is None:
            native = self._native(inputs, is_train, device)
            if len(self._trained) >= _MOST_CAPTURED or any(not inputs[i].dtype.is_floating_point for i in wanted):
                return native
            with self._lock:
                module = self.lowered(is_train, device, inputs)
                captured = training_capture.Captured(native, module, inputs, self.weights, wanted, device, self._steps_before_capture or 0)
                self._trained[key] = captured
        return captured.function

    def _fastest_training(self, inputs: Sequence[torch.Tensor], is_train: bool, device: torch.device) -> Function:
        """Return the graph's function on the backend that trains it fastest, compared at the first call with these shapes."""
        key = ("fastest", is_train, device, *[(t.shape, t.dtype) for t in inputs])
        function = self._compiled.get(key)
        if function is None:
            native = self._native(inputs, is_train, device)
            with self._lock:
                function = self._compiled[key] = policy.compare_training(self.lowered(is_train, device, inputs), native, inputs, device)
        return function

    @property
    def settled(self) -> bool:
        """True if no state is temporary: the backend is decided for each set of shapes so far, and call times will not change."""
        return not any(isinstance(state, (Warmup, Validating, Comparing, CachedChoice)) for state in self.states.values())

    def explain(self) -> str:
        """Return the rewrites of the graph so far and its backends, for each mode and set of shapes, as text."""
        lines = [f"{sum(n.op is not None for n in self.symbol._nodes())} operators", *self._recurrences]
        for (is_train, device), report in self.reports.items():
            lines.append(f"{'training' if is_train else 'inference'} on {device}: native")
            lines += [f"  {line}" for line in (*report, *self._algorithms(is_train, device))]
        for (_, device, _, *shapes), captured in self._trained.items():
            lines.append(f"gradients on {device} for {', '.join(str(tuple(shape)) for shape, _ in shapes)}:")
            lines += [f"  {line}" for line in captured.explain()]
        for (device, *shapes), state in self.states.items():
            data = dict(zip(self._key_positions, shapes))
            inputs = ", ".join(f"{self.input_names[i]} {TORCH_TO_NAME.get(data[i][1])}{tuple(data[i][0])}" for i in self._data)
            lines.append(f"inference on {device} for {inputs}:")
            lines += [f"  {line}" for line in state.explain()]
        return "\n".join(lines)

    def _algorithms(self, is_train: bool, device: torch.device) -> list[str]:
        """Return the algorithms that a mode's convolutions selected, as lines of a report."""
        modules = [f.__self__ for key, f in self._on_native.items() if key[:2] == (is_train, device)]  # type: ignore[attr-defined]  # bound methods
        return list(dict.fromkeys(line for module in modules for line in algorithms(module)))

    def _open_key(self, inputs: Sequence[torch.Tensor]) -> tuple | None:
        return tuple(t.shape for t in inputs) if self._open else None

    def _source_shapes(self, inputs: Sequence[torch.Tensor]) -> dict | None:
        """Return the shapes of array-creating nodes that depend on input shapes, such as an RNN's initial ``zeros((0, 10))``."""
        if not self._open:
            return None
        inferred, _ = inference.infer_shapes(self.outputs, {n: tuple(t.shape) for n, t in zip(self.input_names, inputs)})
        return {id(n): inferred[id(n), 0] for n in self._open}

    def _located(self, inputs: Sequence[torch.Tensor], is_train: bool, device: torch.device, error: Exception) -> MXNetError:
        """Return an error that names the failed node: the graph runs again, node by node, on copies."""
        probe = None
        try:
            probe = _MonitoredRun(self.lowered(is_train, device, inputs), None)
            with no_grad():
                probe.run(*[t.detach().clone() for t in inputs])
        except Exception as failure:
            node = probe.current if probe is not None else None
            if probe is not None and node is not None:
                seen = ", ".join(f"{TORCH_TO_NAME.get(t.dtype)}{tuple(t.shape)}" for t in probe.arguments)
                kind = DelayedError if isinstance(failure, DelayedError) else MXNetError
                reason = failures.reason(node.op, failure, [tuple(t.shape) for t in probe.arguments], [t.dtype for t in probe.arguments],
                                         node.parsed())
                return kind(f"Error in operator {node.name} ({node.op.name}): {reason} [inputs: {seen}]")
        return error if isinstance(error, MXNetError) else MXNetError(failures.in_words(error))


def _weights(nodes: Iterable[Node], names: Sequence[str]) -> list[int]:
    """Return the positions of the variables that all their operators declare as weights."""
    used: dict[str, list[bool]] = {}
    for node in nodes:
        if node.op is not None:
            for name, (child, _) in zip(node.input_names(), node.inputs):
                if child.op is None:
                    used.setdefault(child.name, []).append(name in node.op.weights)
    return [i for i, name in enumerate(names) if name in used and all(used[name])]


class _MonitoredRun(fx.Interpreter):
    """An interpreter that runs a lowered graph node by node, and calls a watcher and the profiler for each node."""

    def __init__(self, module: fx.GraphModule, observe: Watcher | None):
        super().__init__(module)
        self.extra_traceback = False  # nothing of torch's graph in the text of an operator's error
        self.observe = observe
        self.current: Node | None = None
        self.arguments: list[torch.Tensor] = []

    def run_node(self, n: fx.Node) -> Any:
        node = n.meta.get("node")
        if node is None or node.op is None:
            result = super().run_node(n)
            if node is not None and self.observe is not None:
                self.observe(node, (result,))
            return result
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        self.current, self.arguments = node, [a for a in args if isinstance(a, torch.Tensor)]
        hides = False
        if self.observe is not None:
            args = tuple(self.observe.enter(node, args))
            hides = hides_outputs(node)
            if hides:
                kwargs = {**kwargs, **MOMENTS}
        start = time.perf_counter_ns()
        result = n.target(*args, **kwargs)  # type: ignore[operator]  # operators are functions, never names of methods
        if dispatch.graph_observer is not None:
            dispatch.graph_observer(call_of((node,), "", _FOR_A_MONITOR), start, time.perf_counter_ns(), args, result)
        if self.observe is not None:
            results = (result,) if isinstance(result, torch.Tensor) else tuple(result)
            if hides:
                result = results[0]
            self.observe(node, results[:1] if hides else results, results[1:] if hides else ())
        return result
