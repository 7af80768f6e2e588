"""The cross-entropy pass for training: the log-softmax of which one element a line is picked is computed for that element alone.

It saves two passes over an array as large as the scores, and half of the memory that the gradient needs. Scores that a program can write to between
forward and backward, for they come from outside or are returned, are copied: MXNet's gradient is that of the log-softmax, which it keeps.
"""
from typing import Any

from torch import fx

from ...ops.elemwise.scalar import multiply
from ...ops.indexing import pick
from ...ops.nn.softmax import log_softmax
from ...ops.nn.training_layers import CrossEntropy
from ...ops.reduce import mean
from ..instrumentation import record_origins
from ..program import FxNode, attributes_of, calls
from .output_ownership import root

_PLAIN = {"axis": -1, "temperature": None, "dtype": None, "use_length": False}


def apply(module: fx.GraphModule) -> list[str]:
    """Replace each `pick` of a `log_softmax` along the last axis, and what only scales and averages it; return the lines of a report."""
    graph, count = module.graph, 0
    end = next(n for n in reversed(graph.nodes) if n.op == "output")
    returned = {root(n) for n in end.all_input_nodes}
    for node in list(graph.nodes):
        source: FxNode = node.args[0] if calls(node, pick) else None
        if not calls(source, log_softmax) or len(source.users) > 1 or node.args[1] is source:
            continue
        picks, scores = attributes_of(node), attributes_of(source)
        if picks["axis"] != -1 or picks["mode"] != "clip" or scores != {**scores, **_PLAIN}:
            continue
        parts, scale, means = [source, node], 1.0, None
        while means is None and (user := _only_user(parts[-1])) is not None and user.args[0] is parts[-1]:
            if calls(user, multiply):
                scale *= attributes_of(user)["scalar"]
            elif calls(user, mean):
                means = attributes_of(user)
            else:
                break
            parts.append(user)
        origin = root(source.args[0])
        copies = origin.op == "placeholder" or origin in returned
        with graph.inserting_before(parts[-1]):
            new = graph.call_function(CrossEntropy(picks["keepdims"], scale, means, copies), (source.args[0], node.args[1]))
        record_origins(new, *parts)
        parts[-1].replace_all_uses_with(new)
        for part in reversed(parts):
            graph.erase_node(part)
        count += 1
    return [f"kernels: {count} x cross entropy"] if count else []


def _only_user(node: FxNode) -> Any:
    return next(iter(node.users)) if len(node.users) == 1 else None
