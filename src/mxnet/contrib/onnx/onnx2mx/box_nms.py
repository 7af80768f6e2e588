"""Recognition of `box_nms` in a graph: of the nodes that `mx.onnx.export_model` writes for it.

ONNX's NonMaxSuppression has outputs whose sizes follow from values, so that an importer cannot translate it. The nodes around it that the
exporter writes are found by writing them again: with attributes read from the graph, and compared node by node.
"""
from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from ....base import MXNetError
from ....onnx.mx2onnx.builder import Builder, Unsupported, Value
from ....onnx.mx2onnx.operators.boxes import box_nms
from ....ops.registry import get
from .reading import onnx_package, read_tensor

DOMAIN, OPERATOR = "mxnet", "box_nms"  # of the one node that takes their place
_FORMATS = ("corner", "center")


class _Graph(NamedTuple):
    """Nodes by what they make, their users by name, and small constants by name."""

    makers: dict
    users: dict
    arrays: dict


def replaced(graph: Any, opset: int, folder: str | None) -> Any:
    """Return the nodes of a graph, in which one node takes the place of those of each `box_nms`.

    Parameters
    ----------
    graph : onnx.GraphProto
    opset : int
    folder : str or None
        Of the file, for arrays in files of their own.

    Returns
    -------
    list of onnx.NodeProto
    """
    nodes = list(graph.node)
    centers = [node for node in nodes if node.op_type == "NonMaxSuppression" and not node.domain]
    if not centers:
        return nodes
    users = {}
    for node in nodes:
        for name in set(node.input):
            users.setdefault(name, []).append(node)
    for info in graph.output:
        users.setdefault(info.name, []).append(None)
    arrays = {tensor.name: read_tensor(tensor, folder, f"the initializer '{tensor.name}'") for tensor in graph.initializer
              if np.prod(tensor.dims) <= 4096}
    graph_of_nodes = _Graph({name: node for node in nodes for name in node.output if name}, users, arrays)
    for center in centers:
        try:
            match = _match(graph_of_nodes, center, opset)
        except (LookupError, ValueError, TypeError, MXNetError):  # it is another use of the operator
            continue
        if match is not None:
            made, gone = match
            last = max(i for i, node in enumerate(nodes) if any(node is other for other in gone))
            nodes[last:last + 1] = [made]
            nodes = [node for node in nodes if not any(node is other for other in gone)]
    return nodes


def _match(graph, center, opset):
    """Return the node for the `box_nms` around a NonMaxSuppression and the nodes that it replaces; None if there is no such thing."""
    x, sizes, given = _read(graph, center)
    for formats in itertools.product(_FORMATS[:1] if not given["center"] else _FORMATS[1:], _FORMATS):
        attributes = {**given["attributes"], "in_format": formats[0], "out_format": formats[1]}
        for leading in (sizes[:-2], (None,)):
            written = _written(attributes, (*leading, *sizes[-2:]), opset)
            matches = written and _same(graph, x, *written)
            if matches:
                name, gone = matches
                made = onnx_package().helper.make_node(OPERATOR, [x], [name], domain=DOMAIN, name=name, **{
                    key: int(value) if isinstance(value, bool) else value for key, value in attributes.items()}, shape=[
                        -1 if n is None else n for n in (*leading, *sizes[-2:])])
                return made, gone
    return None


def _made(graph, name, kind):
    """Return the node that makes a value, of an operator."""
    node = graph.makers[name]
    if node.op_type != kind:
        raise LookupError(name)
    return node


def _column(graph, name):
    """Return the place of a column of the rows, and the rows."""
    part = _made(graph, _made(graph, name, "Squeeze").input[0], "Slice")
    return int(graph.arrays[part.input[1]][0]), part.input[0]


def _read(graph, center):
    """Return the name of the boxes, their sizes, and the attributes of `box_nms` as the constants of the graph say them."""
    best = _made(graph, _made(graph, center.input[1], "Unsqueeze").input[0], "TopK")
    chosen = _made(graph, best.input[0], "Where")
    score_index, rows = _column(graph, chosen.input[1])
    valid, id_index, background = _made(graph, chosen.input[0], graph.makers[chosen.input[0]].op_type), -1, -1.0
    if valid.op_type == "And":
        equal = _made(graph, _made(graph, valid.input[1], "Not").input[0], "Equal")
        id_index, background = _column(graph, equal.input[0])[0], float(graph.arrays[equal.input[1]])
        valid = _made(graph, valid.input[0], "Greater")
    first = _made(graph, rows, "Reshape")
    _, count, width = map(int, graph.arrays[first.input[1]])
    part, force = graph.makers[center.input[0]], True
    while part.op_type != "Slice":  # boxes are moved apart by their classes: corners, or the centres that are split off
        part, force = graph.makers[part.input[0]], False
    most_boxes = int(graph.arrays[best.input[1]][0])
    attributes = {"overlap_thresh": float(graph.arrays[center.input[3]][0]), "valid_thresh": float(graph.arrays[valid.input[1]]), "topk": most_boxes,
                  "coord_start": int(graph.arrays[part.input[1]][0]), "score_index": score_index, "id_index": id_index,
                  "background_id": int(background), "force_suppress": force}
    centered = any(attribute.name == "center_point_box" and attribute.i for attribute in center.attribute)
    return first.input[0], _sizes(graph, center, count, width), {"attributes": attributes, "center": centered}


def _sizes(graph, center, count, width):
    """Return the sizes of the result: those of the first reshape behind NonMaxSuppression to rows of such number and width."""
    seen, names = set(), list(center.output)
    while names:
        for node in graph.users.get(names.pop(), ()):
            if node is None or id(node) in seen:
                continue
            seen.add(id(node))
            if node.op_type == "Reshape" and (sizes := graph.arrays.get(node.input[1])) is not None and sizes[-2:].tolist() == [count, width]:
                return tuple(sizes.tolist())
            names += node.output
            if len(seen) > 64:
                break
    return None, count, width


def _written(attributes, shape, opset):
    """Return the nodes that the exporter writes for these attributes: the builder, its input and its result."""
    on, x = Builder(opset), Value("x", np.dtype(np.float32), shape)
    on.scope = OPERATOR
    defaults = {key: attribute.default for key, attribute in get("_contrib_box_nms").attributes.items()}
    try:
        result = box_nms(on, x, **{**defaults, **attributes})
    except Unsupported:
        return None
    on.keep_only([result])
    return on, x, result


def _same(graph, x, on, given, result):
    """Return the name of the result in the graph, and the nodes that make it, if they are those that were written."""
    names, gone = {id(given): x}, []
    for node in on.nodes:
        for candidate in _candidates(graph, node, names):
            if not any(candidate is other for other in gone) and _alike(graph, node, candidate, names):
                names.update((id(value), name) for value, name in zip(node.outputs, candidate.output))
                gone.append(candidate)
                break
        else:
            return None
    last = names[id(result)]
    inside = {name for node in gone for name in node.output} - {last}
    if any(not any(user is other for other in gone) for name in inside for user in graph.users.get(name, ())):
        return None  # a value between them is used elsewhere
    return last, gone


def _candidates(graph, node, names):
    known = [names[id(value)] for value in node.inputs if value is not None and id(value) in names]
    return [user for user in graph.users.get(known[0], ()) if user is not None] if known else []


def _alike(graph, node, candidate, names):
    """Return True if a node of the file is one that was written: its operator, inputs and attributes."""
    if candidate.op_type != node.kind or candidate.domain or len(candidate.output) != len(node.outputs):
        return False
    inputs = list(candidate.input)
    while inputs and not inputs[-1]:
        inputs.pop()
    values = list(node.inputs)
    while values and values[-1] is None:
        values.pop()
    if len(inputs) != len(values):
        return False
    for name, value in zip(inputs, values):
        if value is None or id(value) in names:
            if name != ("" if value is None else names[id(value)]):
                return False
        elif value.array is None or name not in graph.arrays or not _equal(graph.arrays[name], value.array):
            return False
    onnx = onnx_package()
    theirs = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in candidate.attribute}
    return theirs.keys() == node.attributes.keys() and all(_plain(theirs[key], onnx) == _plain(value, onnx) for key, value in node.attributes.items())


def _equal(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)


def _plain(value, onnx):
    """Return an attribute in a form that can be compared."""
    if isinstance(value, np.dtype):
        return onnx.helper.np_dtype_to_tensor_dtype(value)
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.tolist()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return list(value) if isinstance(value, (list, tuple)) or hasattr(value, "extend") else value
