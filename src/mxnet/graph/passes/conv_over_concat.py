"""The pass for programs with fixed weights that splits a convolution over a concatenation into convolutions of its parts.

A convolution is linear in its channels: over ``concat(a, b)`` it is the sum of a convolution of `a` with the first part of the weights and
one of `b` with the rest. Convolution engines add such sums at no cost, whereas a concatenation copies all its inputs. So the concatenation is
removed where the result is small compared with the copied arrays, as in SqueezeNet: 128 to 512 channels go into 16 to 64 each time.
"""
from torch import fx

from ...ops.elemwise.binary import elemwise_add
from ...ops.nn.pooling import pooling as pooling_operator
from ...ops.registry import Operator
from ...ops.shape.joining import concat
from ...ops.shape.slicing import slice_axis
from ...symbol.node import Node
from ..program import FxNode, Program, attributes_of, calls, holds
from .layout import convolves


def split_convolutions(program: Program) -> None:
    """Split the convolutions over concatenations, also with a pooling in between, that are cheaper in parts."""
    count = 0
    for node in list(program.graph.nodes):
        if convolves(node) and attributes_of(node)["num_group"] == 1 and node.args[1] in program.constants:
            parts = _parts(program, node)
            if parts is not None:
                _replace(program, node, parts)
                count += 1
    if count:
        program.finish()
        program.infer()
        program.note(f"distribution: {count} x convolution of a concatenation in parts")


def _parts(program: Program, node: FxNode) -> tuple | None:
    """Return the concatenated arrays of a convolution's input, and the pooling in between (or None); None if splitting does not pay."""
    source, pooling = node.args[0], None
    if calls(source, pooling_operator) and len(source.users) == 1 and holds(source, "layout_agnostic"):
        source, pooling = source.args[0], source
    if not calls(source, concat) or len(source.users) != 1 or attributes_of(source)["dim"] != 1:
        return None
    if any(program.shape(a) is None for a in (node, source, *source.args)):
        return None
    filters, channels = program.values[node].shape[1], program.values[source].shape[1]
    # Each further part reads and writes the sum once; a concatenation reads and writes all channels.
    return (source.args, pooling) if 2 * (len(source.args) - 1) * filters <= channels else None


def _replace(program: Program, node: FxNode, source: tuple) -> None:
    parts, pooling = source
    graph, data, start, total = program.graph, node.args[1], 0, None
    with graph.inserting_before(node):
        for i, part in enumerate(parts):
            stop = start + program.values[part].shape[1]
            weight = _call(graph, slice_axis, (data,), {"axis": 1, "begin": start, "end": stop})
            if pooling is not None:
                part = _like(graph, pooling, (part,), {})
            bias = node.args[2:] if i == 0 else ()
            product = _like(graph, node, (part, weight, *bias), {"no_bias": not bias})
            total = product if total is None else _call(graph, elemwise_add, (total, product), {})
            start = stop
    node.replace_all_uses_with(total)
    graph.erase_node(node)


def _like(graph: fx.Graph, node: FxNode, args: tuple, changed: dict) -> FxNode:
    """Add a node with the same operator, other inputs and changed attributes."""
    new = graph.call_function(node.target, args, {**node.kwargs, **changed})
    new.meta = dict(node.meta)
    return new


def _call(graph: fx.Graph, op: Operator, args: tuple, kwargs: dict) -> FxNode:
    new = graph.call_function(op.in_graph, args, kwargs)
    new.meta["node"] = Node(op, op.name, {})
    return new
