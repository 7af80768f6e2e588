"""Ownership of outputs: a graph's outputs share no memory with its inputs, nor with one another.

Inside of a graph views are free. The pass finds the nodes that return views, so an output is copied only if it is one: there is no check when
the graph runs. An output that is a variable itself is not copied: an executor returns the bound array, as MXNet's does.
"""
from torch import fx

from ..ownership import owned
from ..program import FxNode, operator_of
from . import fusion, layout

# Functions added by passes, whose result may be (a view of) their first argument.
_VIEWS = (fusion.rectify, layout.standard, layout.channels_last)


def root(node: FxNode) -> FxNode:
    """Return the node whose memory the result of `node` may share: `node` itself if it computes a new array."""
    while True:
        op = operator_of(node)
        moves = node.op == "call_method" and node.target == "to"
        views = node.op == "call_function" and (node.target in _VIEWS or op is not None and op.view is not None and node.target is op.in_graph)
        if not (moves or views):
            return node
        node = node.args[0]


def apply(module: fx.GraphModule) -> None:
    """Copy the outputs that would share memory with an input or an earlier output. A module that has run before must be recompiled."""
    graph = module.graph
    end = next(n for n in reversed(graph.nodes) if n.op == "output")
    taken: set[FxNode] = set()
    outputs = []
    for node in end.args[0]:
        source = root(node)
        if node.op != "placeholder":
            if source.op == "placeholder" or source in taken:
                with graph.inserting_before(end):
                    node = graph.call_function(owned, (node,))
            taken.add(source)
        outputs.append(node)
    end.args = (tuple(outputs),)
