"""The pass for mixed precision: casts of what has that type already go, so that the passes behind it see what belongs together."""
from collections.abc import Iterable
from typing import Any

import torch
from torch import fx

from ..ops.elemwise.unary import amp_cast, amp_multicast
from .program import FxNode, operator_of


def apply(module: fx.GraphModule) -> list[str]:
    """Rewrite the graph; returns what was done, as lines of a report."""
    types: dict[Any, Any] = {}
    count = 0
    for node in list(module.graph.nodes):
        op = operator_of(node)
        if node.op != "call_function" or op is None:
            continue
        if op is amp_cast:
            target = node.kwargs.get("dtype")
            if types.get(node.args[0]) is target and target is not None:
                node.replace_all_uses_with(node.args[0])
                module.graph.erase_node(node)
                count += 1
            else:
                types[node] = target
        elif op is amp_multicast:
            count += _without_multicast(module.graph, node, types)
        elif op.result_type == "data":
            types[node] = types.get(node.args[0])
        elif op.result_type == "inputs":
            types[node] = _one(types, node.all_input_nodes)
    return [f"mixed precision: {count} x cast to the same type dropped"] if count else []


def _one(types: dict, nodes: Iterable) -> torch.dtype | None:
    """The type that is known to be that of all nodes."""
    found = {types.get(n) for n in nodes}
    return found.pop() if len(found) == 1 else None


def _without_multicast(graph: fx.Graph, node: FxNode, types: dict) -> int:
    """Let the users of a cast to a common type read its inputs, if these have one type."""
    if _one(types, node.args) is None:
        return 0
    if len(node.args) == 1:  # its one result is not taken out of a tuple
        node.replace_all_uses_with(node.args[0])
    for item in list(node.users):
        source = node.args[item.args[1]]
        item.replace_all_uses_with(source)
        graph.erase_node(item)
    graph.erase_node(node)
    return 1
