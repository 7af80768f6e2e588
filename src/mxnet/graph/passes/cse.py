"""Common subexpression elimination: a function from outputs to outputs, which does not modify its input."""
import os
from typing import Any

from ...ops.elemwise.unary import identity
from ...ops.registry import Operator
from ...symbol.node import Entry, Node, topological


def eliminate_common_expressions(outputs: list[Entry]) -> list[Entry]:
    """Eliminate common subexpressions: equal operators on equal inputs are computed once.

    Nodes that draw random numbers, run user code, write to their inputs or behave otherwise in training are left alone. The outputs of
    the graph remain distinct: of two equal outputs the second is a copy. ``MXNET_ELIMINATE_COMMON_EXPR=0`` turns the pass off.
    """
    if os.environ.get("MXNET_ELIMINATE_COMMON_EXPR", "1") == "0":
        return outputs
    nodes = topological(outputs)
    replacements: dict[int, Node] = {}
    by_content: dict[Any, Node] = {}
    replaced = False
    for node in nodes:
        inputs = [(replacements[id(n)], i) for n, i in node.inputs]
        if node.op is None or node.subgraphs or _is_not_shareable(node.op):
            replacements[id(node)] = node if [id(n) for n, _ in inputs] == [id(n) for n, _ in node.inputs] else _with_inputs(node, inputs)
            continue
        # Annotations are part of the key: nodes of two ctx_groups are different.
        content = (node.op.name, tuple(sorted(node.attrs.items())), tuple((id(n), i) for n, i in inputs))
        same = by_content.get(content)
        if same is None:
            same = by_content[content] = node if [id(n) for n, _ in inputs] == [id(n) for n, _ in node.inputs] else _with_inputs(node, inputs)
        else:
            replaced = True
        replacements[id(node)] = same
    if not replaced:
        return outputs
    result, seen = [], set()
    for node, index in outputs:
        entry = (replacements[id(node)], index)
        if (id(entry[0]), index) in seen and replacements[id(node)] is not node:
            entry = (Node(identity, node.name, {}, [entry]), 0)
        seen.add((id(entry[0]), entry[1]))
        result.append(entry)
    return result


def _with_inputs(node: Node, inputs: list[Entry]) -> Node:
    return Node(node.op, node.name, dict(node.attrs), inputs, node.subgraphs)


def _is_not_shareable(op: Operator) -> bool:
    """Return True if equal calls of the operator must not be merged."""
    return bool(op.stochastic or op.data_dependent or op.mutates or op.wants_training or op.wants_device)
