"""The layout pass: networks of two-dimensional convolutions run with their channels last.

The shapes stay those of MXNet; only the order in memory changes, between the first convolution and the last operator that keeps it.
"""
import torch

from .program import operator_of

# Operators whose results have the layout of their (first) input, whatever it is.
_KEEPS = {
    "BatchNorm", "Activation", "relu", "sigmoid", "tanh", "clip", "LeakyReLU", "Pooling", "Dropout", "elemwise_add", "elemwise_sub", "elemwise_mul",
    "_grad_add", "add_n", "_plus_scalar", "_minus_scalar", "_mul_scalar", "_div_scalar", "_copy", "BlockGrad", "Concat", "amp_cast", "Cast",
    "hard_sigmoid", "square", "negative", "broadcast_mul", "broadcast_add",
}


def channels_last(data):
    """The same values with the channels last in memory."""
    return data.contiguous(memory_format=torch.channels_last)


def standard(data):
    """The same values, contiguous (channels first)."""
    return data.contiguous()


def convolves(node):
    """Whether the node is a convolution in two dimensions with the channels first."""
    op = operator_of(node)
    return op is not None and op.name == "Convolution" and len(node.kwargs["kernel"]) == 2 and node.kwargs.get("layout") in (None, "NCHW")


def apply(module):
    """Rewrite the graph; returns what was done, as lines of a report."""
    graph = module.graph
    convolutions = [n for n in graph.nodes if convolves(n)]
    if not convolutions:
        return []
    last, moved = set(), {}

    def other(node, function, before):
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
        op = operator_of(node)
        if convolves(node):
            if node.args[0] not in last:
                node.update_arg(0, other(node.args[0], channels_last, node))
            last.add(node)
        elif op is not None and op.name in _KEEPS and not _by_axis(op, node) and any(a in last for a in node.all_input_nodes):
            last.add(node)
        else:
            for i, a in enumerate(node.args):
                if a in last:
                    node.update_arg(i, other(a, standard, node))
    count = sum(function is channels_last for _, function in moved), sum(function is standard for _, function in moved)
    return [f"layout: {len(convolutions)} convolutions with channels last, {count[0]} arrays reordered before and {count[1]} after them"]


def weights(module):
    """Positions of the inputs that are weights of convolutions with their channels last, and whose order in memory matters."""
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    read = {n.args[1] for n in module.graph.nodes if convolves(n) and n.kwargs["kernel"] != (1, 1)}
    # With mixed precision a convolution reads a copy of another type, which keeps the order.
    read |= {n.args[0] for n in read if (op := operator_of(n)) is not None and op.name == "amp_cast" and len(n.users) == 1}
    return tuple(i for i, n in enumerate(placeholders) if n in read and len(n.users) == 1)


def _by_axis(op, node):
    """True for a use that goes by another axis than the channels."""
    if op.name == "BatchNorm":
        return node.kwargs.get("axis", 1) != 1 or bool(node.kwargs.get("output_mean_var"))
    if op.name == "Pooling":
        return node.kwargs.get("layout") not in (None, "NCHW")
    if op.name == "Concat":
        return node.kwargs.get("dim", 1) != 1
    return False
