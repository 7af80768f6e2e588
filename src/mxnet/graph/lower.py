"""Lowering of a Symbol to a `torch.fx.GraphModule`, the representation of passes and backends."""
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from ..context import parse_context
from ..symbol.fused import CachedGraph, Fused, stands_for
from ..symbol.node import Entry, Node, topological
from . import control_flow
from .int8 import fused_nodes
from .program import GraphModule, item


def lower(outputs: Sequence[Entry], is_train: bool, device: torch.device, node_devices: Mapping[Any, torch.device] | None = None,
          source_shapes: Mapping[int, Any] | None = None, inlines: bool = True) -> fx.GraphModule:
    """Return a module that computes the outputs of a graph.

    Parameters
    ----------
    outputs : list of (Node, int)
    is_train : bool
        The value of the `training` argument of the operators that take one.
    device : torch.device
        Where operators without inputs create their arrays.
    node_devices : dict of str to torch.device, optional
        For model parallelism: the device of each ``ctx_group``; others run on `device`.
    source_shapes : dict of int to shape, optional
        By id of the node: the shapes of sources whose attributes leave sizes open.
    inlines : bool
        If True, fused nodes on real numbers are expanded into the nodes that they represent.

    Returns
    -------
    torch.fx.GraphModule
        Takes the variables as positional arguments, in the order of `topological`; returns a tuple. The ``meta`` of each fx node
        holds the Symbol's node under ``"node"``.
    """
    graph = fx.Graph()
    values, places, count = {}, {}, 0
    for node in topological(outputs):
        place = (node_devices or {}).get(node.attrs.get("__ctx_group__"), device)
        places[id(node)] = place
        if node.op is None:
            # Placeholders are numbered: user names may collide as identifiers (`a.b`, `a_b`), or shadow names in generated code (`torch`, `inf`).
            value = graph.placeholder(f"variable_{count}")
            count += 1
            value.meta["node"] = node
            values[id(node), 0] = value
            continue
        arguments = []
        for child, index in node.inputs:
            value = values[id(child), index]
            if node_devices and places[id(child)] != place:
                value = graph.call_method("to", (value, place))
            arguments.append(value)
        if isinstance(node.op, (Fused, CachedGraph)):
            subgraph = stands_for(node) if inlines else None
            if subgraph is not None:
                values.update({(id(node), i): output for i, output in enumerate(_inlined(graph, subgraph, arguments, is_train, place))})
                continue
            value = graph.call_function(fused_nodes.function(node, lower, is_train, place), tuple(arguments))
        elif node.subgraphs and not node.op.may_hold_graph:
            value = graph.call_function(control_flow.function(node, lower, is_train, place), tuple(arguments))
        else:
            attributes = call_attributes(node, is_train, place)
            if source_shapes and id(node) in source_shapes:
                attributes.update(_sized(node, source_shapes[id(node)]))
            value = graph.call_function(node.op.in_graph, tuple(arguments), attributes)
        _record_value(graph, values, node, value)
    graph.output(tuple(values[id(n), i] for n, i in outputs))
    # Unused outputs of operators with several results are not extracted.
    for fx_node in reversed(graph.nodes):
        if fx_node.op == "call_function" and fx_node.target is item and not fx_node.users:
            graph.erase_node(fx_node)
    return GraphModule(torch.nn.Module(), graph)


def _record_value(graph: fx.Graph, values: dict, node: Node, value: fx.Node) -> None:
    """Record the fx node that computes a Symbol's node, and add an `item` node for each of several results."""
    value.meta["node"] = node
    if node.num_outputs() == 1:
        values[id(node), 0] = value
    else:
        for i in range(node.num_outputs()):
            values[id(node), i] = graph.call_function(item, (value, i))


def _inlined(graph: fx.Graph, outputs: Sequence[Entry], arguments: Sequence[fx.Node], is_train: bool, device: torch.device) -> list[fx.Node]:
    """Add the nodes of a subgraph whose variables are `arguments`, in order; return its outputs."""
    values: dict[tuple[int, int], Any] = {}
    given = iter(arguments)
    for node in topological(outputs):
        if node.op is None:
            values[id(node), 0] = next(given)
        else:
            value = graph.call_function(node.op.in_graph, tuple(values[id(n), i] for n, i in node.inputs), call_attributes(node, is_train, device))
            _record_value(graph, values, node, value)
    return [values[id(n), i] for n, i in outputs]


def _sized(node: Node, shape: Any) -> dict[str, Any]:
    """Return the attributes that make an array-creating node produce this shape."""
    if node.op.sized is None:
        return {"shape": shape}
    return node.op.sized(shape, node.op.with_defaults(node.parsed()))


def call_attributes(node: Node, is_train: bool, device: torch.device) -> dict[str, Any]:
    """Return the keyword arguments of the operator's function for one node."""
    kwargs = dict(node.parsed())
    op = node.op
    if op.wants_training:
        kwargs[op.wants_training] = is_train
    if op.wants_device:
        given = node.attrs.get("ctx")
        kwargs[op.wants_device] = device if not given else _device_of(given, device)
    return kwargs


def _device_of(text: str, device: torch.device) -> torch.device:
    """Return the torch device of a node's ``ctx``; ``cpu`` in a graph bound to another device means that device's host memory."""
    ctx = parse_context(text)
    return device if ctx.device_type == device.type else ctx.torch_device
