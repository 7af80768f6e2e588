"""Running a Symbol: lowered once for each mode and device, compiled once for whatever its backend tells apart."""
import threading
import time

import torch
from torch import fx

from ..base import MXNetError
from ..ndarray import dispatch
from ..ops import random_state
from ..ops.dtypes import TORCH_TO_NAME
from ..symbol import inference
from ..symbol.node import auxiliary
from . import backends
from .lower import lower
from .passes import draws, eliminate_common_expressions


class GraphRunner:
    """Runs one Symbol on torch tensors.

    Parameters
    ----------
    symbol : Symbol
    group2ctx : dict of str to Context, optional
        Where the nodes of each ``ctx_group`` run.
    backend : str, optional
        By default what ``MXNET_SUBGRAPH_BACKEND`` names, else `native`.
    options : dict, optional
        The backend's options.

    The runner holds no values: several threads may call it at once.
    """

    def __init__(self, symbol, group2ctx=None, backend=None, options=None):
        self.outputs = eliminate_common_expressions(symbol._outputs)
        self.symbol = symbol
        nodes = symbol._nodes()
        self.input_names = [n.name for n in nodes if n.op is None]
        aux = auxiliary(nodes)
        self.aux_names = [n.name for n in nodes if id(n) in aux]
        self.node_devices = {g: c.torch_device for g, c in group2ctx.items()} if group2ctx else None
        self.backend = backends.get(backend)
        self.options = options or {}
        self.draws = any(n.op is not None and (n.op.wants_training or draws(n.op)) for n in nodes)
        self._open = [n for n in nodes if inference.open_shape(n)]
        self._lowered, self._compiled = {}, {}
        self._lock = threading.Lock()

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
            function = self._function(inputs, is_train, device)
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
        backend = self.backend
        if not backend.trains and torch.is_grad_enabled() and any(t.requires_grad for t in inputs):
            backend = backends.get("native")
        key = (is_train, device, backend.name, self._open_key(inputs))
        if backend.specializes:
            key += tuple((t.shape, t.dtype) for t in inputs)
        found = self._compiled.get(key)
        if found is None:
            module = self.lowered(is_train, device, inputs)
            with self._lock:
                found = self._compiled.get(key)
                if found is None:
                    found = self._compiled[key] = backend.compile(module, inputs, **(self.options if backend is self.backend else {}))
        return found

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
