"""The layout pass: networks of two-dimensional convolutions run in the channels-last memory format.

Shapes stay MXNet's; only the memory format changes, between the first convolution and the last layout-agnostic operator.
"""
from collections.abc import Callable

import torch
from torch import fx

from ...ops.elemwise.unary import amp_cast
from ...ops.nn.convolution import convolution
from ..program import FxNode, attributes_of, calls, holds


def channels_last(data: torch.Tensor) -> torch.Tensor:
    """Return the array in the channels-last memory format."""
    return data.contiguous(memory_format=torch.channels_last)


def standard(data: torch.Tensor) -> torch.Tensor:
    """Return the array contiguous (channels first)."""
    return data.contiguous()


def convolves(node: FxNode) -> bool:
    """Return True if the node is a two-dimensional convolution with the channels first."""
    return calls(node, convolution) and len(node.kwargs["kernel"]) == 2 and attributes_of(node)["layout"] in (None, "NCHW")


def apply(module: fx.GraphModule) -> list[str]:
    """Convert convolutions to the channels-last memory format; return the lines of a report."""
    graph = module.graph
    convolutions = [n for n in graph.nodes if convolves(n)]
    if not convolutions:
        return []
    last, moved = set(), {}

    def other(node: FxNode, function: Callable, before: FxNode) -> FxNode:
        key = node, function
        if key not in moved:
            with graph.inserting_before(before):
                moved[key] = graph.call_function(function, (node,))
        return moved[key]

    for node in list(graph.nodes):
        if node.op == "output":
            node.args = (tuple(other(a, standard, node) if a in last else a for a in node.args[0]),)
            continue
        if node.op != "call_function":
            continue
        if convolves(node):
            if node.args[0] not in last:
                node.update_arg(0, other(node.args[0], channels_last, node))
            last.add(node)
        elif holds(node, "layout_agnostic") and any(a in last for a in node.all_input_nodes):
            last.add(node)
        else:
            for i, a in enumerate(node.args):
                if a in last:
                    node.update_arg(i, other(a, standard, node))
    count = sum(function is channels_last for _, function in moved), sum(function is standard for _, function in moved)
    return [f"layout: {len(convolutions)} convolutions with channels last, {count[0]} arrays reordered before and {count[1]} after them"]


def weights(module: fx.GraphModule) -> tuple[int, ...]:
    """Return the positions of the inputs that are weights of channels-last convolutions, and whose memory format matters."""
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    read = {n.args[1] for n in module.graph.nodes if convolves(n) and n.kwargs["kernel"] != (1, 1)}
    # With mixed precision a convolution reads a cast copy, which keeps the memory format.
    read |= {n.args[0] for n in read if calls(n, amp_cast) and len(n.users) == 1}
    return tuple(i for i, n in enumerate(placeholders) if n in read and len(n.users) == 1)
