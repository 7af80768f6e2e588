"""Parts of an imported graph that are kept in ONNX's form: they are written as they are, under names of their own."""
from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from ..builder import Node, Unsupported, Value
from ..registry import exports, find

if TYPE_CHECKING:
    from ....ops.registry import Operator
    from ..builder import Builder


def embedded_model(text: str) -> Any:
    """Return the ``onnx.ModelProto`` in the attribute `graph` of the operator; its rule of types has read it before."""
    import onnx
    model = onnx.ModelProto()
    model.ParseFromString(base64.b64decode(text))
    return model


def declared_shapes(text: str) -> list[tuple[int | None, ...] | None]:
    """Return the shapes of the outputs as the imported file had them, with None for an open size, and in place of a shape that it had not.

    No axes are one of size 1, as in Symbols.
    """
    kinds = [info.type.tensor_type for info in embedded_model(text).graph.output]
    return [(tuple(dim.dim_value if dim.dim_value > 0 else None for dim in kind.shape.dim) or (1,)) if kind.HasField("shape") else None
            for kind in kinds]


def is_onnx_graph(op: Operator) -> bool:
    """Return True if an operator holds a part of an imported graph."""
    converter = find(op)
    return converter is not None and converter[1].function is onnx_graph


@exports("_contrib_onnx_graph", ignores=("num_args",))
def onnx_graph(on: Builder, *values: Value, graph: str, num_outputs: int) -> Any:
    """Write the nodes that the operator holds."""
    import onnx
    model = embedded_model(graph)
    opset = max(entry.version for entry in model.opset_import)
    if opset != on.opset:
        raise Unsupported(f"it holds nodes of opset {opset}, to be run as they are; pass opset_version={opset}")
    if any(node.domain not in ("", "ai.onnx") for node in model.graph.node) or any(f.name in {n.op_type for n in model.graph.node}
                                                                                   for f in model.functions):
        raise Unsupported("it holds operators that the imported file defines itself")
    known = {"": None}
    for info, value in zip(model.graph.input, values):
        kind = info.type.tensor_type
        value = on.cast(value, bool) if kind.elem_type == onnx.TensorProto.BOOL else value
        known[info.name] = on.Reshape(value, []) if kind.HasField("shape") and not kind.shape.dim else value
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        known[tensor.name] = on.const(array, array.dtype)
    types = dict(zip([info.name for info in model.graph.output], on.out))
    for node in model.graph.node:
        made = []
        for name in node.output:
            if name:
                known[name] = Value(on.unique(f"{on.scope}/{node.op_type}"), types[name].dtype if name in types else np.dtype(np.float32))
            made.append(known[name] if name else Value("", np.dtype(np.float32)))
        attributes = {attribute.name: _renamed(attribute, known) for attribute in node.attribute}
        on.nodes.append(Node(node.op_type, [known[name] for name in node.input], made, attributes, made[0].name))
    return [on.reshape(known[info.name], [1]) if _scalar(info) else known[info.name] for info in model.graph.output]


def _scalar(info):
    return info.type.tensor_type.HasField("shape") and not info.type.tensor_type.shape.dim


def _renamed(attribute, known):
    """Return an attribute's value; graphs take outer values, which have other names now."""
    import onnx
    if any(True for _ in attribute.graphs):
        raise Unsupported(f"the attribute {attribute.name!r} holds several graphs")
    if not attribute.HasField("g"):
        return onnx.helper.get_attribute_value(attribute)
    inner = onnx.GraphProto()
    inner.CopyFrom(attribute.g)
    _rename(inner, {name: value.name for name, value in known.items() if value is not None and value.array is None}, known)
    return inner


def _rename(graph, names, known):
    import onnx
    own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    names = {name: new for name, new in names.items() if name not in own}
    for node in graph.node:
        for i, name in enumerate(node.input):
            value = known.get(name)
            if name not in own and value is not None and value.array is not None:  # constants have no name before the end
                graph.initializer.append(onnx.numpy_helper.from_array(value.array, name))
                own.add(name)
            node.input[i] = names.get(name, name)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename(attribute.g, names, known)
        own.update(node.output)
        names = {name: new for name, new in names.items() if name not in own}
    for info in graph.output:
        info.name = names.get(info.name, info.name)
