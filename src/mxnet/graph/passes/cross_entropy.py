"""The cross-entropy pass for training: the log-softmax of which one element a line is picked is computed for that element alone.

It saves two passes over an array as large as the scores, and half of the memory that the gradient needs.
"""
from torch import fx

from ...ops.indexing import pick
from ...ops.nn.softmax import log_softmax
from ...ops.nn.training_layers import log_likelihood
from ..instrumentation import record_origins
from ..program import FxNode, attributes_of, calls

_PLAIN = {"axis": -1, "temperature": None, "dtype": None, "use_length": False}


def apply(module: fx.GraphModule) -> list[str]:
    """Replace each `pick` of a `log_softmax` along the last axis; return the lines of a report."""
    graph, count = module.graph, 0
    for node in list(graph.nodes):
        source: FxNode = node.args[0] if calls(node, pick) else None
        if not calls(source, log_softmax) or len(source.users) > 1 or node.args[1] is source:
            continue
        picks, scores = attributes_of(node), attributes_of(source)
        if picks["axis"] != -1 or picks["mode"] != "clip" or scores != {**scores, **_PLAIN}:
            continue
        with graph.inserting_before(node):
            new = graph.call_function(log_likelihood, (source.args[0], node.args[1]), {"keepdims": picks["keepdims"]})
        record_origins(new, source, node)
        node.replace_all_uses_with(new)
        graph.erase_node(node)
        graph.erase_node(source)
        count += 1
    return [f"kernels: {count} x cross entropy"] if count else []
