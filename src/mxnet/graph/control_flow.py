"""Loops and branches of a graph: their subgraphs are lowered separately and run under Python's ``for``, ``while`` and ``if``."""
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from .. import util
from ..base import MXNetError
from ..ndarray import dispatch
from ..symbol import control_flow, inference
from ..symbol.node import Entry, Node, topological
from .instrumentation import instrumented
from .ownership import distinct


class Subgraph:
    """A subgraph that takes and returns tensors."""

    def __init__(self, outputs: Sequence[Entry], lower: Callable, is_train: bool, device: torch.device):
        self.outputs, self.lower, self.is_train, self.device = outputs, lower, is_train, device
        nodes = topological(outputs)
        self.names = [n.name for n in control_flow.variables(nodes)]
        self.open = [n for n in nodes if inference.open_shape(n)]
        self.modules: dict[Any, Callable] = {}

    def __call__(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        key = tuple(t.shape for t in tensors) if self.open else None
        module = self.modules.get(key)
        if module is None:
            module = self.modules[key] = self._lower(tensors)
        return (module if dispatch.graph_observer is None else instrumented(module))(*tensors)

    def _lower(self, tensors: Sequence[torch.Tensor]) -> Callable:
        shapes = None
        if self.open:
            inferred, _ = inference.infer_shapes(self.outputs, {n: tuple(t.shape) for n, t in zip(self.names, tensors)})
            shapes = {id(n): inferred[id(n), 0] for n in self.open}
        return self.lower(self.outputs, self.is_train, self.device, source_shapes=shapes).forward

    def empty(self, tensors: Sequence[torch.Tensor], count: int) -> list[torch.Tensor]:
        """Return `count` stacked results for a loop without iterations; shapes and types are inferred, the values are zeros."""
        _, shapes = control_flow.infer(self.outputs, [tuple(t.shape) for t in tensors], None)
        _, types = control_flow.infer(self.outputs, [t.dtype for t in tensors], None, types=True)
        return [torch.zeros((count, *s), dtype=t, device=self.device) for s, t in zip(shapes, types)]


def function(node: Node, lower: Callable, is_train: bool, device: torch.device) -> Callable:
    """Return the function over tensors that a control-flow node computes; `lower` makes modules of its subgraphs."""
    parts = [Subgraph(outputs, lower, is_train, device) for outputs in node.subgraphs]
    return _MAKERS[node.op](node.name, node.parsed(), *parts)


def _foreach(name: str, attributes: Mapping[str, Any], body: Subgraph) -> Callable:
    places, = control_flow.foreach_locs(attributes)
    n_data, n_states, n_out = len(attributes["in_data_locs"]), len(attributes["in_state_locs"]), attributes["num_out_data"]

    def foreach(*inputs: torch.Tensor) -> Any:
        lengths = {t.shape[0] for t in inputs[:n_data]}
        if len(lengths) != 1:
            raise MXNetError(f"{name}: the arrays looped over must have first axes of one length, received {sorted(lengths)}")
        values = list(inputs)
        rows = []
        for elements in zip(*map(_elements, inputs[:n_data])):
            values[:n_data] = elements
            results = body([values[p] for p in places])
            rows.append(results[:n_out])
            values[n_data:n_data + n_states] = results[n_out:]
        if rows:
            stacked = [torch.stack(r) for r in zip(*rows)]
        else:
            values[:n_data] = [_elements(t.new_zeros((1, *t.shape[1:])))[0] for t in inputs[:n_data]]
            stacked = body.empty([values[p] for p in places], 0)[:n_out]
        return _fresh((*stacked, *values[n_data:n_data + n_states]), inputs)

    return foreach


def _elements(data: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the slices of `data` along axis 0; scalars have the shape (1,) unless NumPy shape semantics are active."""
    return (data.unsqueeze(1) if data.dim() == 1 and not util.is_np_shape() else data).unbind(0)


def _while_loop(name: str, attributes: Mapping[str, Any], condition: Subgraph, body: Subgraph) -> Callable:
    cond_places, places = control_flow.while_locs(attributes)
    variable_places = control_flow.while_variables(attributes)
    n_out, limit = attributes["num_out_data"], attributes["max_iterations"]

    def while_loop(*inputs: torch.Tensor) -> Any:
        values = list(inputs)
        rows: list[tuple[torch.Tensor, ...]] = []
        while len(rows) < limit and bool(_scalar(name, condition([values[p] for p in cond_places])[0])):
            results = body([values[p] for p in places])
            rows.append(results[:n_out])
            for place, value in zip(variable_places, results[n_out:]):
                values[place] = value
        if rows:
            stacked = [_padded(r, limit) for r in zip(*rows)]
        else:
            stacked = body.empty([values[p] for p in places], limit)[:n_out]
        return _fresh((*stacked, *(values[p] for p in variable_places)), inputs)

    return while_loop


def _cond(name: str, attributes: Mapping[str, Any], predicate: Subgraph, then_branch: Subgraph, else_branch: Subgraph) -> Callable:
    locs = control_flow.cond_locs(attributes)

    def cond(*inputs: torch.Tensor) -> Any:
        chosen = bool(_scalar(name, predicate([inputs[p] for p in locs[0]])[0]))
        branch, places = (then_branch, locs[1]) if chosen else (else_branch, locs[2])
        return _fresh(branch([inputs[p] for p in places]), inputs)

    return cond


def _scalar(name: str, tensor: torch.Tensor) -> torch.Tensor:
    if tensor.numel() != 1:
        raise MXNetError(f"{name}: the condition must be a single value, received shape {tuple(tensor.shape)}")
    return tensor.detach()


def _padded(rows: tuple[torch.Tensor, ...], count: int) -> torch.Tensor:
    """Return the stacked rows, padded with zeros to `count` iterations."""
    stacked = torch.stack(rows)
    missing = count - len(rows)
    return torch.cat([stacked, stacked.new_zeros((missing, *stacked.shape[1:]))]) if missing else stacked


def _fresh(results: Iterable[torch.Tensor], inputs: Sequence[torch.Tensor]) -> Any:
    """Return the results in separate memory; a single result is returned without a tuple, as by any operator."""
    results = distinct(results, inputs)
    return results if len(results) != 1 else results[0]


_MAKERS: dict[Any, Callable] = {control_flow.FOREACH: _foreach, control_flow.WHILE_LOOP: _while_loop, control_flow.COND: _cond}
