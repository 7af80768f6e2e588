"""The pooling-order pass: an activation before a maximum pooling is applied to the pooled values instead.

Activations that never decrease keep the largest value of a window the largest, so that the result is the same. With windows of 2 x 2, a quarter
of the values is left for the activation and for its gradient.
"""
from torch import fx

from ...ops.elemwise.unary import sigmoid, tanh
from ...ops.nn.activation import activation
from ...ops.nn.pooling import pooling
from ..program import FxNode, attributes_of, calls, holds

_NEVER_DECREASING = {"relu", "sigmoid", "softrelu", "tanh", "log_sigmoid"}  # softsign makes NaN of an infinite number


def apply(module: fx.GraphModule) -> list[str]:
    """Exchange each such activation and the maximum pooling that alone reads it; return the lines of a report."""
    graph, count = module.graph, 0
    for node in list(graph.nodes):
        if not calls(node, pooling) or not takes_each_maximum(attributes_of(node)):
            continue
        source: FxNode = node.args[0]
        while _never_decreases(source) and len(source.users) == 1:
            before = source.args[0]
            node.update_arg(0, before)
            with graph.inserting_after(node):
                behind = graph.call_function(source.target, (), source.kwargs)
            behind.meta = dict(source.meta)
            node.replace_all_uses_with(behind)
            behind.args = (node, *source.args[1:])
            graph.erase_node(source)
            source, count = before, count + 1
    return [f"fusion: {count} x activation behind the maximum pooling"] if count else []


def _never_decreases(node: object) -> bool:
    if calls(node, activation):
        return attributes_of(node)["act_type"] in _NEVER_DECREASING
    return holds(node, "is_relu") or calls(node, sigmoid, tanh)


def takes_each_maximum(attributes: dict) -> bool:
    """Return True for a maximum pooling of which each window holds a value: what stands in the padding is no activation's result."""
    if attributes["pool_type"] != "max":
        return False
    if attributes["global_pool"]:
        return True
    kernel = attributes["kernel"]
    stride, pad = attributes["stride"] or (1,) * len(kernel), attributes["pad"] or (0,) * len(kernel)
    if attributes["pooling_convention"] == "valid":
        return all(p < k for p, k in zip(pad, kernel))
    return not any(pad) and all(s <= k for s, k in zip(stride, kernel))
