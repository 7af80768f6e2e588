"""Tables and drawings of networks: ``mx.viz``."""
import json
import re
import warnings

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
    """The integers in the text of a shape, such as ``'(3, 3)'``, as text."""
    return re.findall(r"\d+", text)


def _graph(symbol, what):
    if not isinstance(symbol, Symbol):
        raise TypeError(f"{what}: symbol must be a Symbol, received {type(symbol).__name__}")
    return json.loads(symbol.tojson())


def _inferred(symbol, given, kind):
    """Shapes or types of everything inside the network, by output name."""
    internals = symbol.get_internals()
    _, found, _ = (internals.infer_shape if kind == "shape" else internals.infer_type)(**given)
    if found is None:
        raise ValueError(f"Input {kind} is incomplete: {given} does not determine the {kind}s of the whole network")
    return dict(zip(internals.list_outputs(), found))


def _output_name(node):
    """The name of what a node computes; of several outputs, the last."""
    if node["op"] == "null":
        return node["name"]
    count = node.get("attrs", {}).get("num_outputs")
    return f"{node['name']}_output" + (str(int(count) - 1) if count else "")


def _product(values):
    result = 1
    for value in values:
        result *= int(value)
    return result


def _count_parameters(node, channels, shapes):
    """How many parameters a layer has, given the channels of its inputs; 0 for layers that bring none."""
    attrs = node.get("attrs", {})
    biased = attrs.get("no_bias") != "True"
    if node["op"] == "Convolution":
        filters = int(attrs["num_filter"])
        weights = channels * filters // int(attrs.get("num_group", "1")) * _product(_integers(attrs["kernel"]))
        return weights + biased * filters
    if node["op"] == "FullyConnected":
        return (channels + biased) * int(attrs["num_hidden"])
    if node["op"] == "BatchNorm" and shapes:
        return 2 * int(shapes[f"{node['name']}_output"][1])
    if node["op"] == "Embedding":
        return int(attrs["input_dim"]) * int(attrs["output_dim"])
    return 0


def print_summary(symbol, shape=None, line_length=120, positions=(.44, .64, .74, 1.)):
    """Print a table of a network's layers: output shape, number of parameters, what comes before.

    Parameters
    ----------
    symbol : Symbol
    shape : dict of str to tuple, optional
        Shapes of the inputs; without them shapes stay empty and the numbers of parameters are too low.
    line_length : int
        Characters in a line.
    positions : list of float or int
        Where columns end, as parts of the line or in characters.

    Raises
    ------
    ValueError
        If `shape` does not determine all shapes.
    """
    nodes = _graph(symbol, "print_summary")["nodes"]
    heads = set(json.loads(symbol.tojson())["heads"][0])
    shapes = _inferred(symbol, shape, "shape") if shape is not None else {}
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
        is_input = node["op"] == "null"
        if is_input and i > 0:
            continue
        before, channels = [], 0
        for source, *_ in node["inputs"]:
            other = nodes[source]
            if other["op"] != "null" or source in heads:
                before.append(other["name"])
                known = shapes.get(other["name"] if other["op"] == "null" else f"{other['name']}_output")
                if known is not None:
                    channels += int(known[1])
        out_shape = ()
        if not is_input or i in heads:
            out_shape = shapes.get(node["name"] if is_input else f"{node['name']}_output", ())[1:]
        count = _count_parameters(node, channels, shapes)
        print_row(f"{node['name']}({node['op']})", "x".join(map(str, out_shape)), count, before[0] if before else "")
        for name in before[1:]:
            print_row("", "", "", name)
        total += count
        print(("=" if i == len(nodes) - 1 else "_") * line_length)
    print(f"Total params: {total}")
    print("_" * line_length)


def _label(node):
    """What stands in the box of a node."""
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


def plot_network(symbol, title="plot", save_format="pdf", shape=None, dtype=None, node_attrs={}, hide_weights=True):  # noqa: B006
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
        raise ImportError("Draw network requires graphviz library: pip install 'remex[viz]', and the Graphviz program `dot`") from None
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


def _of(found, key):
    try:
        return found[key]
    except KeyError:
        raise MXNetError(f"plot_network: nothing is known of {key!r}; does the operator name its outputs differently?") from None
