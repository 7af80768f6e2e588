"""Recurrent layers of graphs on torch: they cache the reordered weights as long as the weights do not change."""
from typing import Any, NamedTuple, Optional

import torch
from torch import fx

from ...kernels.nn.recurrent import Ordered
from ...ndarray import writes
from ...ops.nn.rnn import Parts, rnn
from ...ops.shape.joining import rnn_param_concat
from ...ops.shape.reshaping import reshape
from ..program import Function, FxNode, calls
from ..weight_guard import WeightGuard


class _CachedWeights(NamedTuple):
    """The guard of the last call's weights, and the reordered weights, which are filled if the same weights come again."""

    weights: WeightGuard
    ordered: Ordered


class RecurrentLayers:
    """The operator `RNN`, called with its vector of parameters, or with the tuple of arrays that would be concatenated to it.

    Weights are reordered when they come a second time: weights in training change before that.
    """

    __name__ = "RNN"  # in generated code and profiles

    def __init__(self) -> None:
        self._cached: Optional[_CachedWeights] = None

    def __call__(self, data: torch.Tensor, parameters: Any, *states: torch.Tensor, **attributes: Any) -> Any:
        parts = tuple(parameters) if isinstance(parameters, (tuple, list)) else (parameters,)
        return rnn.raw(data, Parts(parts, self._ordered(parts)), *states, **attributes)

    def _ordered(self, parts: tuple[torch.Tensor, ...]) -> Optional[Ordered]:
        if torch.is_grad_enabled() or not all(isinstance(part, torch.Tensor) and part.is_cpu for part in parts):
            return None
        cached = self._cached
        if cached is not None and cached.weights.holds(parts):
            return cached.ordered
        self._cached = _CachedWeights(WeightGuard(parts), Ordered()) if all(map(writes.may_watch, parts)) else None
        return None

    def release(self) -> None:
        """Release the reordered weights: another backend runs the graph."""
        self._cached = None


def apply(module: fx.GraphModule) -> list[str]:
    """Let recurrent layers read separate parameters, without a concatenated vector, and cache the reordered weights; return the report."""
    count = 0
    for node in module.graph.nodes:
        if not calls(node, rnn):
            continue
        vector = node.args[1]
        if calls(vector, rnn_param_concat) and len(vector.users) == 1:
            node.args = (node.args[0], tuple(map(_source, vector.args)), *node.args[2:])
            for gone in (vector, *vector.args):
                if not gone.users and gone.op == "call_function":
                    module.graph.erase_node(gone)
            count += 1
        parts = node.args[1] if isinstance(node.args[1], (tuple, list)) else (node.args[1],)
        if all(part.op in ("placeholder", "get_attr") for part in parts):
            node.target = RecurrentLayers()
    return [f"memory: {count} x recurrent layers without a copy of their parameters"] if count else []


def _source(part: FxNode) -> FxNode:
    """Return the array before it was flattened: a layer's parameters are concatenated flat."""
    return part.args[0] if calls(part, reshape) else part


def caches_weights(function: Function) -> bool:
    """Return True if a graph's function has recurrent layers, which become faster when the same weights come again."""
    return bool(_layers(function))


def release(function: Function) -> None:
    """Release the cached weights of all layers."""
    for layer in _layers(function):
        layer.release()


def _layers(function: Function) -> list[RecurrentLayers]:
    module = getattr(function, "__self__", None)  # of which it is the method `forward`
    return [n.target for n in module.graph.nodes if isinstance(n.target, RecurrentLayers)] if isinstance(module, fx.GraphModule) else []
