"""The pass for small fully connected layers in training: consecutive ones, with their activations, become one call forward and one backward."""
from typing import Any

from torch import fx

from ...kernels.gemm.mlp_training import ACTIVATIONS, MOST
from ...ops.elemwise.unary import sigmoid, tanh
from ...ops.nn.activation import activation
from ...ops.nn.dense import fully_connected
from ...ops.nn.training_layers import DenseLayer, DenseLayers
from ..instrumentation import record_origins
from ..program import FxNode, attributes_of, calls, holds


def apply(module: fx.GraphModule) -> list[str]:
    """Fuse chains of fully connected layers and activations; return the lines of a report."""
    taken: set[FxNode] = set()
    layer_count = call_count = 0
    for node in list(module.graph.nodes):
        if node not in taken and calls(node, fully_connected):
            parts, layers = _chain(node)
            taken.update(parts)
            if len(parts) > 1:
                _replace(module, parts, layers)
                layer_count, call_count = layer_count + len(layers), call_count + 1
    return [f"kernels: {layer_count} x fully connected layer in {call_count} call{'s' * (call_count > 1)}"] if layer_count else []


def _chain(node: FxNode) -> tuple[list[FxNode], list[DenseLayer]]:
    """Return the nodes and layers of the longest chain that starts with this layer."""
    parts: list[FxNode] = []
    layers: list[DenseLayer] = []
    flattens = attributes_of(node)["flatten"]
    while len(layers) < MOST and calls(node, fully_connected) and (not parts or node.args[0] is parts[-1]):
        attributes = attributes_of(node)
        if not flattens and attributes["flatten"] or any(source is parts[-1] for source in node.args[1:] if parts):
            break
        after = _only_user(node)
        act_type = _act_type(after) if after is not None else ""
        layers.append(DenseLayer({k: attributes[k] for k in ("num_hidden", "no_bias", "flatten")}, act_type))
        parts += [node, after] if act_type else [node]
        node = _only_user(parts[-1])
    return parts, layers


def _act_type(node: FxNode) -> str:
    """Return the name of the activation that a node computes, or an empty string if it is none of the kernel's."""
    if holds(node, "is_relu"):
        return "relu"
    if calls(node, activation):
        name = attributes_of(node)["act_type"]
        return name if name in ACTIVATIONS else ""
    return "sigmoid" if calls(node, sigmoid) else "tanh" if calls(node, tanh) else ""


def _replace(module: fx.GraphModule, parts: list[FxNode], layers: list[DenseLayer]) -> None:
    graph, first, last = module.graph, parts[0], parts[-1]
    sources = [part.args[1:] for part in parts if calls(part, fully_connected)]
    with graph.inserting_before(last):
        new = graph.call_function(DenseLayers(layers), (first.args[0], tuple(weight for weight, *_ in sources),
                                                        tuple(bias[0] if bias else None for _, *bias in sources)))
    record_origins(new, *parts)
    last.replace_all_uses_with(new)
    for part in reversed(parts):
        graph.erase_node(part)


def _only_user(node: FxNode) -> Any:
    return next(iter(node.users)) if len(node.users) == 1 else None
