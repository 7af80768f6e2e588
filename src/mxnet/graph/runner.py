"""Running a Symbol: lowered once for each mode and device, compiled once for whatever its backend tells apart."""
import functools
import os
import threading
import time

import torch
from torch import fx

from .. import environment
from ..base import MXNetError
from ..ndarray import dispatch
from ..ops import random_state
from ..ops.dtypes import TORCH_TO_NAME
from ..symbol import inference
from ..symbol.node import auxiliary
from . import backends, cuda_graph, layout, promotion
from .lower import lower
from .passes import draws, eliminate_common_expressions
from .program import Program, copied

# What operators call the inputs that hold a network's weights.
_WEIGHTS = {"weight", "bias", "gamma", "beta", "moving_mean", "moving_var", "running_mean", "running_var", "parameters"}

_STAYS = object()  # marks shapes for which `native` has proved the fastest


class GraphRunner:
    """Runs one Symbol on torch tensors.

    Parameters
    ----------
    symbol : Symbol
    group2ctx : dict of str to Context, optional
        Where the nodes of each ``ctx_group`` run.
    backend : str, optional
        By default what ``MXNET_SUBGRAPH_BACKEND`` names; else the graph starts on `native`, and inference on a CPU is compiled
        when that proves worth it (`promotion`).
    options : dict, optional
        The backend's options.
    weights : list of int, optional
        Positions of the inputs that rarely change, in ``symbol.list_inputs()``; by default those that operators take as weights.
    fixed_shape : bool
        A promise that shapes stay the same: the graph is compiled, or on a GPU captured, at the first call.

    The runner holds no values: several threads may call it at once.
    """

    def __init__(self, symbol, group2ctx=None, backend=None, options=None, weights=None, fixed_shape=False):
        self.outputs = eliminate_common_expressions(symbol._outputs)
        self.symbol = symbol
        nodes = symbol._nodes()
        self.input_names = [n.name for n in nodes if n.op is None]
        aux = auxiliary(nodes)
        self.aux_names = [n.name for n in nodes if id(n) in aux]
        self.node_devices = {g: c.torch_device for g, c in group2ctx.items()} if group2ctx else None
        if backend is None:
            backend, given = backends.marked(symbol)
            options = options or given
        self.backend = backends.get(backend)
        self.options = options or {}
        if self.options and self.backend is backends.get("native"):
            raise MXNetError(f"backend 'native' takes no options, received {sorted(self.options)}")
        self.draws = any(n.op is not None and (n.op.wants_training or draws(n.op)) for n in nodes)
        self._open = [n for n in nodes if inference.open_shape(n)]
        self.weights = tuple(_weights(nodes, self.input_names) if weights is None else weights)
        held = set(self.weights)
        self._data = [i for i in range(len(self.input_names)) if i not in held]
        self._compares = (backend or os.environ.get("MXNET_SUBGRAPH_BACKEND")) == backends.AUTO
        self._patient = not fixed_shape and not self._compares
        self._captures = cuda_graph.wanted(fixed_shape)
        self.channels_last = ()  # positions of the weights that training reads fastest with their channels last
        self.reports = {}  # what the passes for torch did, by mode and device
        self._lowered, self._compiled, self._frozen = {}, {}, {}
        self._lock = threading.RLock()

    def __call__(self, inputs, is_train=False, ctx=None, observe=None):
        """The outputs, a list of tensors.

        Parameters
        ----------
        inputs : list of torch.Tensor
            In the order of ``symbol.list_inputs()``.
        is_train : bool
        ctx : Context
            The device that operators without inputs use.
        observe : callable, optional
            Called as ``observe(node, outputs)`` for every variable and operator, for monitors.
        """
        device = ctx.torch_device if ctx is not None else inputs[0].device if inputs else torch.device("cpu")
        simulated = ctx is not None and ctx.device_id and ctx.device_typeid != 2
        before = random_state.use_cpu(ctx.device_id) if simulated else 0
        if observe is not None or dispatch.graph_observer is not None:
            function = _Observed(self.lowered(is_train, device, inputs), observe).run
        else:
            try:
                function = self._function(inputs, is_train, device)
            except BaseException:
                if simulated:
                    random_state.use_cpu(before)
                raise
        try:
            return list(function(*inputs))
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise self._located(inputs, is_train, device, error) from error
        finally:
            if simulated:
                random_state.use_cpu(before)

    def lowered(self, is_train, device, inputs):
        """The graph as a `torch.fx.GraphModule`."""
        key = is_train, device, self._open_key(inputs)
        found = self._lowered.get(key)
        if found is None:
            with self._lock:
                found = self._lowered.get(key)
                if found is None:
                    found = self._lowered[key] = lower(self.outputs, is_train, device, self.node_devices, self._source_shapes(inputs))
        return found

    def _function(self, inputs, is_train, device):
        """Who runs the graph now: a callable from the inputs to the outputs."""
        backend = self.backend
        recorded = torch.is_grad_enabled() and any(t.requires_grad for t in inputs)
        freezes = backend is None or getattr(backend, "freezes", False)
        if freezes and not is_train and not recorded and not self.node_devices and not promotion.forked():
            return self._inference(inputs, device)
        if self._compares and recorded and not self.node_devices:
            return self._fastest_training(inputs, is_train, device)
        if freezes or recorded and not backend.trains:
            return self._native(inputs, is_train, device)
        key = (is_train, device, self._open_key(inputs))
        if backend.specializes:
            key += tuple((t.shape, t.dtype) for t in inputs)
        found = self._compiled.get(key)
        if found is None:
            module = self.lowered(is_train, device, inputs)
            with self._lock:
                found = self._compiled.get(key)
                if found is None:
                    backends.check_device(backend, device)
                    found = self._compiled[key] = backend.compile(Program(module, inputs), **self.options)
        return found

    def _native(self, inputs, is_train, device):
        """The graph on torch, after the passes that help there."""
        key = ("native", is_train, device, self._open_key(inputs))
        found = self._compiled.get(key)
        if found is None:
            module = copied(self.lowered(is_train, device, inputs))
            bulk = "MXNET_EXEC_BULK_EXEC_TRAIN" if is_train else "MXNET_EXEC_BULK_EXEC_INFERENCE"
            self.reports[is_train, device] = backends.prepare(module, device) if environment.get_bool(bulk) else []
            if is_train and self.reports[is_train, device]:
                self.channels_last = tuple(i for i in layout.weights(module) if backends.wants_channels_last(inputs[i]))
            found = self._compiled[key] = module.forward
        return found

    def _fastest_training(self, inputs, is_train, device):
        """The graph on whoever trains it fastest, found out at the first call with these shapes."""
        key = ("fastest", is_train, device, *[(t.shape, t.dtype) for t in inputs])
        found = self._compiled.get(key)
        if found is None:
            native = self._native(inputs, is_train, device)
            with self._lock:
                found = self._compiled[key] = promotion.training_contest(self.lowered(is_train, device, inputs), native, inputs, device)
        return found

    def _inference(self, inputs, device):
        """The graph with its weights built in if it was, or should now be, compiled so; else on `native`."""
        key = (device, *[(inputs[i].shape, inputs[i].dtype) for i in self._data])
        found = self._frozen.get(key)
        if type(found) is promotion.Frozen:
            if found.fresh(inputs):
                return found.function
            found = None
        if self.backend is not None:
            backends.check_device(self.backend, device)
            with self._lock:
                module = self.lowered(False, device, inputs)
                found = self._frozen[key] = promotion.freeze(self.backend, module, inputs, self.weights, self.options)
            return found.function
        native = self._native(inputs, False, device)
        if found is None:
            found = self._frozen[key] = self._beginning(key, inputs, device)
        if found is _STAYS:
            return native
        if type(found) is cuda_graph.Captured:
            return functools.partial(found.run, native)
        if found.spent < found.budget:
            return functools.partial(found.run, native)
        with self._lock:
            found = self._frozen.get(key)
            if type(found) is promotion.Candidate:
                module = self.lowered(False, device, inputs)
                found = None if self._patient or self._compares else promotion.trusted(module, inputs, self.weights, device)
                found = self._frozen[key] = found or promotion.contest(module, native, inputs, self.weights, device, self._compares) or _STAYS
        return native if found is _STAYS else found.function

    def _beginning(self, key, inputs, device):
        """What becomes of inference that was not seen before, or whose weights have changed since it was compiled."""
        if promotion.may_compile(device):
            return promotion.Candidate(self, self._patient)
        if device.type != "cuda" or not self._captures or not environment.get_bool("MXNET_EXEC_BULK_EXEC_INFERENCE"):
            return _STAYS
        with self._lock:  # two threads must not hold the memory of two captures
            found = self._frozen.get(key)
            if found is None:
                found = self._frozen[key] = cuda_graph.Captured(self.lowered(False, device, inputs), inputs, self.weights, device)
        return found

    def explain(self):
        """What was done to the graph so far and who runs it, for each mode and set of shapes, as text."""
        lines = [f"{sum(n.op is not None for n in self.symbol._nodes())} operators"]
        for (is_train, device), report in self.reports.items():
            lines.append(f"{'training' if is_train else 'inference'} on {device}: native")
            lines += [f"  {line}" for line in report]
        for (device, *shapes), found in self._frozen.items():
            inputs = ", ".join(f"{self.input_names[i]} {TORCH_TO_NAME.get(dtype)}{tuple(shape)}" for i, (shape, dtype) in zip(self._data, shapes))
            lines.append(f"inference on {device} for {inputs}:")
            if type(found) is promotion.Frozen:
                lines += [f"  {line}" for line in found.program.report] + (["  out of date: a weight was written to"] if found.stale else [])
            elif found is _STAYS:
                lines.append("  native, which proved the fastest" if device.type == "cpu" else "  native")
            elif type(found) is cuda_graph.Captured:
                lines.append(f"  {found.explain()}")
            else:
                lines.append(f"  native, until it has taken {found.budget:.2f} s ({found.spent:.2f} s so far)")
        return "\n".join(lines)

    def _open_key(self, inputs):
        return tuple(t.shape for t in inputs) if self._open else None

    def _source_shapes(self, inputs):
        """The shapes of sources that the shapes of the inputs decide, such as the ``zeros((0, 10))`` an RNN begins with."""
        if not self._open:
            return None
        found, _ = inference.infer_shapes(self.outputs, {n: tuple(t.shape) for n, t in zip(self.input_names, inputs)})
        return {id(n): found[id(n), 0] for n in self._open}

    def _located(self, inputs, is_train, device, error):
        """The error that says which node failed: the graph is run again, node by node, on copies."""
        probe = _Observed(self.lowered(is_train, device, inputs), None)
        try:
            with torch.no_grad():
                probe.run(*[t.detach().clone() for t in inputs])
        except Exception as found:
            node = probe.current
            if node is not None:
                seen = ", ".join(f"{TORCH_TO_NAME.get(t.dtype)}{tuple(t.shape)}" for t in probe.arguments)
                return MXNetError(f"Error in operator {node.name} ({node.op.name}): {str(found).splitlines()[0]} [inputs: {seen}]")
        return error if isinstance(error, MXNetError) else MXNetError(str(error).splitlines()[0])


def _weights(nodes, names):
    """Positions of the variables that every operator which takes them takes as a weight."""
    used = {}
    for node in nodes:
        if node.op is not None:
            for name, (child, _) in zip(node.input_names(), node.inputs):
                if child.op is None:
                    used.setdefault(child.name, set()).add(name)
    return [i for i, name in enumerate(names) if used.get(name) and used[name] <= _WEIGHTS]


class _Observed(fx.Interpreter):
    """Runs a lowered graph node by node, telling an observer and the profiler what happens."""

    def __init__(self, module, observe):
        super().__init__(module)
        self.observe, self.current, self.arguments = observe, None, ()

    def run_node(self, n):
        node = n.meta.get("node")
        if node is None or node.op is None:
            result = super().run_node(n)
            if node is not None and self.observe is not None:
                self.observe(node, (result,))
            return result
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        self.current, self.arguments = node, [a for a in args if isinstance(a, torch.Tensor)]
        start = time.perf_counter_ns()
        result = n.target(*args, **kwargs)
        if dispatch.graph_observer is not None:
            dispatch.graph_observer(node.op.name, start, time.perf_counter_ns(), args, result)
        if self.observe is not None:
            self.observe(node, (result,) if isinstance(result, torch.Tensor) else tuple(result))
        return result
