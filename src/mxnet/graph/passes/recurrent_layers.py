"""Recurrent layers of a graph that runs on torch: they remember what they made of weights that stay the same."""
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
    """The weights of the call before, and what is made of them if they come again."""

    weights: WeightGuard
    ordered: Ordered


class RecurrentLayers:
    """`RNN`, called with its vector of parameters, or a tuple of what that would be put together from.

    Weights are brought into the order that is read fastest when they come a second time: those that are trained change before.
    """

    __name__ = "RNN"  # what generated code and profiles call it

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
        """Give up what was made of the weights: others run the graph."""
        self._cached = None


def apply(module: fx.GraphModule) -> list[str]:
    """Let recurrent layers read their parameters where they are, not from a vector that each step puts together and takes apart, and keep them."""
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
    """Whose elements these are, in their order: a layer's parameters come flat."""
    return part.args[0] if calls(part, reshape) else part


def caches_weights(function: Function) -> bool:
    """Whether what runs a graph has layers that will be faster when their weights come again."""
    return bool(_layers(function))


def release(function: Function) -> None:
    """Let all layers give up what they keep."""
    for layer in _layers(function):
        layer.release()


def _layers(function: Function) -> list[RecurrentLayers]:
    module = getattr(function, "__self__", None)  # of which it is the method `forward`
    return [n.target for n in module.graph.nodes if isinstance(n.target, RecurrentLayers)] if isinstance(module, fx.GraphModule) else []
