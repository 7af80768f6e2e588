"""Tables and drawings of networks: ``mx.viz``."""
from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from .base import MXNetError
from .symbol import Symbol

__all__ = ["plot_network", "print_summary"]

_WEIGHT_ENDINGS = ("_weight", "_bias", "_beta", "_gamma", "_moving_var", "_moving_mean", "_running_var", "_running_mean")
# Fill colours: inputs, layers with weights, activations, normalization, pooling, shape changes, softmax, all else.
_COLORS = {"null": "#8dd3c7", "Convolution": "#fb8072", "FullyConnected": "#fb8072", "Activation": "#ffffb3", "LeakyReLU": "#ffffb3",
           "BatchNorm": "#bebada", "Pooling": "#80b1d3", "Concat": "#fdb462", "Flatten": "#fdb462", "Reshape": "#fdb462",
           "Softmax": "#b3de69"}
_OTHER_COLOR = "#fccde5"


def _integers(text):
    """Return the integers in the text of a shape, such as ``'(3, 3)'``, as text."""
    return re.findall(r"\d+", text)


def _graph(symbol, what):
    if not isinstance(symbol, Symbol):
        raise TypeError(f"{what}: symbol must be a Symbol, received {type(symbol).__name__}")
    return json.loads(symbol.tojson())


def _inferred(symbol, given, kind):
    """Return the shapes or types of all values inside the network, by output name."""
    internals = symbol.get_internals()
    _, inferred, _ = (internals.infer_shape if kind == "shape" else internals.infer_type)(**given)
    if inferred is None:
        raise ValueError(f"Input {kind} is incomplete: {given} does not determine the {kind}s of the whole network")
    return dict(zip(internals.list_outputs(), inferred))


def _output_name(node):
    """Return the name of a node's output; of several outputs, the last."""
    if node["op"] == "null":
        return node["name"]
    count = node.get("attrs", {}).get("num_outputs")
    return f"{node['name']}_output" + (str(int(count) - 1) if count else "")


def _count(node, name, shape):
    """Return the number of elements of a node's input, from its shape or as far as the operator's attributes determine it."""
    if shape and all(size > 0 for size in shape):
        return math.prod(shape)
    attributes = {} if node.op is None else node.op.with_defaults(node.parsed())
    if name == "bias":
        return attributes.get("num_filter") or attributes.get("num_hidden") or 0
    if name == "weight" and attributes.get("output_dim"):
        return attributes["input_dim"] * attributes["output_dim"]
    return 0


# The names of operators' inputs that are no parameters, besides their data.
_NO_PARAMETERS = {"label", "length", "state", "state_cell", "sequence_length", "data_lengths", "label_lengths"}


def _inputs(symbol, given):
    """Return the variables of a network that are no parameters: those of `given`, the first one if it is data, labels, and states."""
    uses: dict[Any, Any] = {}
    for node in symbol._nodes():
        if node.op is not None:
            for (source, _), name in zip(node.inputs, node.input_names()):
                uses.setdefault(id(source), set()).add(name)
    variables = [node for node in symbol._nodes() if node.op is None]
    auxiliary = set(symbol.list_auxiliary_states())
    inputs = {id(node) for node in variables if node.name in given or node.name in auxiliary or uses.get(id(node), set()) <= _NO_PARAMETERS}
    if variables and (not uses.get(id(variables[0])) or "data" in uses[id(variables[0])] or "arg0" in uses[id(variables[0])]):
        inputs.add(id(variables[0]))
    return inputs


def print_summary(symbol: Symbol, shape: Mapping[str, Sequence[int]] | None = None, line_length: int = 120,
                  positions: Sequence[float] = (.44, .64, .74, 1.)) -> None:
    """Print a table of a network's layers: output shape, number of parameters, and previous layers.

    Parameters are counted from their shapes, in the first layer that uses them; auxiliary states do not count.

    Parameters
    ----------
    symbol : Symbol
    shape : dict of str to tuple, optional
        Shapes of the inputs. Without them the column of shapes stays empty, and only parameters with known shapes count.
    line_length : int
        Characters in a line.
    positions : list of float or int
        The ends of the columns, as fractions of the line or in characters.

    Raises
    ------
    TypeError
        If `symbol` is no Symbol.
    ValueError
        If `shape` does not determine all shapes.
    """
    if not isinstance(symbol, Symbol):
        raise TypeError(f"print_summary: symbol must be a Symbol, received {type(symbol).__name__}")
    internals = symbol.get_internals()
    inferred = (internals.infer_shape_partial() if shape is None else internals.infer_shape(**shape))[1]
    if inferred is None:
        raise ValueError(f"Input shape is incomplete: {shape} does not determine the shapes of the whole network")
    shapes = {(id(node), i): size for (node, i), size in zip(internals._outputs, inferred)}
    nodes, heads = symbol._nodes(), {id(node) for node, _ in symbol._outputs}
    shown = heads | {id(nodes[0])}  # of the variables
    counted = _inputs(symbol, shape or {})
    ends = [int(line_length * p) for p in positions] if positions[-1] <= 1 else positions

    def print_row(*fields):
        line = ""
        for field, end in zip(fields, ends):
            line = (line + str(field))[:end].ljust(end)
        print(line)

    print("_" * line_length)
    print_row("Layer (type)", "Output Shape", "Param #", "Previous Layer")
    print("=" * line_length)
    total = 0
    for i, node in enumerate(nodes):
        if node.op is None and i > 0:
            continue
        before, count = [], 0
        names = [*node.input_names(), *[""] * len(node.inputs)] if node.op is not None else ()
        for name, (source, _) in zip(names, node.inputs):
            if source.op is not None or id(source) in shown:
                before.append(source.name)
            if source.op is None and id(source) not in counted:
                counted.add(id(source))
                count += _count(node, name, shapes[id(source), 0])
        out_shape = shapes.get((id(node), 0), ())[1:] if shape is not None else ()
        print_row(f"{node.name}({'null' if node.op is None else node.op.name})", "x".join(map(str, out_shape)), count, before[0] if before else "")
        for name in before[1:]:
            print_row("", "", "", name)
        total += count
        print(("=" if i == len(nodes) - 1 else "_") * line_length)
    print(f"Total params: {total}")
    print("_" * line_length)


def _label(node):
    """Return the label in the box of a node."""
    op, attrs = node["op"], node.get("attrs", {})

    def size(key, otherwise):
        return "x".join(_integers(attrs[key])) if key in attrs else otherwise

    if op == "Convolution":
        return f"Convolution\n{size('kernel', '')}/{size('stride', '1')}, {attrs['num_filter']}"
    if op == "FullyConnected":
        return f"FullyConnected\n{attrs['num_hidden']}"
    if op == "Activation":
        return f"Activation\n{attrs['act_type']}"
    if op == "LeakyReLU":
        return f"LeakyReLU\n{attrs.get('act_type', 'Leaky')}"
    if op == "Pooling":
        return f"Pooling\n{attrs.get('pool_type', 'max')}, {size('kernel', '[]')}/{size('stride', '1')}"
    if op == "Custom":
        return attrs["op_type"]
    return node["name"]


def plot_network(symbol: Symbol, title: str = "plot", save_format: str = "pdf", shape: Mapping[str, Sequence[int]] | None = None,
                 dtype: Mapping[str, Any] | None = None, node_attrs: Mapping[str, str] = {}, hide_weights: bool = True) -> Any:  # noqa: B006
    """Draw a network with Graphviz.

    Parameters
    ----------
    symbol : Symbol
    title : str
        The name of the drawing, and of the file when it is rendered.
    save_format : str
        ``'pdf'``, ``'png'``, ...
    shape : dict of str to tuple, optional
        Shapes of the inputs; the shapes of all values are then written to the arrows.
    dtype : dict of str to type, optional
        Types of the inputs; the types of all values are then written to the arrows.
    node_attrs : dict of str to str
        Graphviz attributes of all boxes.
    hide_weights : bool
        Leave parameters out.

    Returns
    -------
    graphviz.Digraph

    Raises
    ------
    ImportError
        If the package graphviz is not installed.

    Example
    -------
    >>> import mxnet as mx
    >>> net = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=10, name='fc')
    >>> mx.viz.plot_network(net, shape={'data': (1, 20)}).render()     # doctest: +SKIP
    """
    try:
        from graphviz import Digraph
    except ImportError:
        raise ImportError("Draw network requires graphviz library: pip install 'remexnet[viz]', and the Graphviz program `dot`") from None
    nodes = _graph(symbol, "plot_network")["nodes"]
    shapes = _inferred(symbol, shape, "shape") if shape is not None else None
    types = _inferred(symbol, dtype, "type") if dtype is not None else None

    names = [node["name"] for node in nodes]
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        warnings.warn("Several variables of the graph have one name, and are drawn as one: "
                      + ",".join(repeated), RuntimeWarning, stacklevel=2)

    drawing = Digraph(name=title, format=save_format)
    box = {"shape": "box", "fixedsize": "true", "width": "1.3", "height": "0.8034", "style": "filled", **node_attrs}
    hidden = set()
    for node in nodes:
        if node["op"] == "null" and node["name"].endswith(_WEIGHT_ENDINGS):
            if hide_weights:
                hidden.add(node["name"])
            continue  # drawn as the end of its arrow only
        form = {**box, "fillcolor": _COLORS.get(node["op"], _OTHER_COLOR)}
        if node["op"] == "null":
            form["shape"] = "oval"
        drawing.node(name=node["name"], label=_label(node), **form)
    for node in nodes:
        inputs = node["inputs"][:1] if node["op"] == "_contrib_BilinearResize2D" else node["inputs"]
        for source, *_ in inputs:
            other = nodes[source]
            if other["name"] in hidden:
                continue
            label, key = "", _output_name(other)
            if shapes is not None:
                label = "x".join(map(str, _of(shapes, key)[1:]))
            if types is not None:
                label += f"({_of(types, key).__name__})"
            drawing.edge(tail_name=node["name"], head_name=other["name"], dir="back", arrowtail="open", label=label)
    return drawing


def _of(shapes, key):
    try:
        return shapes[key]
    except KeyError:
        raise MXNetError(f"plot_network: nothing is known of {key!r}; does the operator name its outputs differently?") from None
