"""The part of a graph that can be imported only when the network runs: one node that keeps its ONNX form.

The shapes and values that such nodes need (a `shape` that is an input, open sizes, the condition of a loop) are known when the
network runs. All nodes that depend on one of them are in the part too, so that no earlier node depends on it.
"""
from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np

from ....base import MXNetError
from .reading import onnx_package, read_tensor

OPERATOR = "_contrib_onnx_graph"


def finish(g: Any, nodes: Any, scope: Any, infos: Any) -> dict[str, Any]:
    """Make one node of the deferred nodes, and of those that compute their inputs from open sizes.

    Parameters
    ----------
    g : Translator
    nodes : sequence of onnx.NodeProto
        All of the graph, in their order.
    scope : dict of str to Value
    infos : list of onnx.ValueInfoProto
        The outputs of the graph that these nodes make.

    Returns
    -------
    dict of str to Value
        These outputs.
    """
    if not infos:
        return {}
    onnx = onnx_package()
    wanted = [scope[info.name].name for info in infos]
    live, needed = [], set(wanted)
    for node in reversed(nodes):
        if any(name in needed and _belongs(scope[name]) for name in node.output):
            live.append(node)
            needed |= free_names([node])
    model = onnx.ModelProto()
    model.ir_version = onnx.IR_VERSION
    model.opset_import.add(domain="", version=g.opset)
    model.functions.extend(g.functions.values())
    graph = model.graph
    made = {name for node in live for name in node.output}
    outside = free_names(live) - made
    missing = sorted(outside - scope.keys())
    if missing:
        raise MXNetError(f"a graph within a node uses '{missing[0]}', which is no input of the graph, no initializer, and made by no node before")
    inputs = [taken for name, value in scope.items() if name in outside for taken in _input(g, graph, name, value)]
    graph.node.extend(live[::-1])
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        if attribute.HasField("t") and attribute.t.data_location == attribute.t.EXTERNAL:
            attribute.t.CopyFrom(onnx.numpy_helper.from_array(read_tensor(attribute.t, g.folder, f"the attribute {attribute.name!r}")))
    for name, info in zip(wanted, infos):
        graph.output.add(name=name).type.CopyFrom(info.type)
    text = base64.b64encode(model.SerializeToString(deterministic=True)).decode()
    results = g.op(OPERATOR, *inputs, graph=text, num_outputs=len(infos))
    return dict(zip((info.name for info in infos), results if isinstance(results, tuple) else (results,)))


def _belongs(value):
    """Return True if the part computes a value: it was put off, or it follows from open sizes and nothing before has needed it."""
    return value.later or value.entry is None and value.arrays is not None and value.array is None


def free_names(nodes: Iterable[Any]) -> Any:
    """Return the values that nodes, with the graphs in them, take from outside: a set of str."""
    free, made = set(), set()
    for node in nodes:
        free |= {name for name in node.input if name} - made
        for attribute in node.attribute:
            for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
                own |= {name for inner in graph.node for name in inner.output}
                free |= (free_names(graph.node) | {info.name for info in graph.output}) - own - made
        made |= {*node.output}
    return free


def _input(g, graph, name, value):
    """Add an input to the part for an outer value; return the node's operand for it."""
    onnx = onnx_package()
    if value.sequence is not None:
        names = [f"{name}#{i}" for i in range(len(value.sequence))]
        graph.node.add(op_type="SequenceConstruct", input=names, output=[name])
        return [entry for element, part in zip(value.sequence, names) for entry in _input(g, graph, part, element)]
    if value.entry is None and value.array is not None and value.array.dtype.kind != "f":  # such as axes: part of the operator's arguments
        graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value.array), name))
        return []
    g.entry(value)
    tensor = graph.input.add(name=name).type.tensor_type
    if value.boolean:
        tensor.elem_type = onnx.TensorProto.BOOL
    if value.scalar:
        tensor.shape.SetInParent()
    return [value]
