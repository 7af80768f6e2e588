"""The passes for mixed precision: redundant casts are removed, so that the passes behind them find adjacent operators.

On GPUs all weights are then cast at once (`together`): a single cast is one kernel forward and one backward, and a hundred of these take longer
to launch than to run.
"""
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import fx

from ...ops.elemwise.unary import MIXED, amp_cast, amp_multicast
from ..program import FxNode, item, operator_of


def apply(module: fx.GraphModule) -> list[str]:
    """Remove redundant casts; return the lines of a report."""
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
    """Return the common type of all nodes; None if they differ or one is unknown."""
    known = {types.get(n) for n in nodes}
    return known.pop() if len(known) == 1 else None


def _without_multicast(graph: fx.Graph, node: FxNode, types: dict) -> int:
    """Remove a cast to a common type whose inputs share one type; return the number of removed casts."""
    if _one(types, node.args) is None:
        return 0
    if len(node.args) == 1:  # a single result is used directly, without `item`
        node.replace_all_uses_with(node.args[0])
    for part in list(node.users):
        source = node.args[part.args[1]]
        part.replace_all_uses_with(source)
        graph.erase_node(part)
    graph.erase_node(node)
    return 1


def together(module: fx.GraphModule) -> list[str]:
    """Replace the casts of the graph's inputs to one type by one call; return the lines of a report."""
    graph = module.graph
    groups: dict[torch.dtype, list[FxNode]] = {}
    for node in graph.nodes:
        if node.op == "call_function" and operator_of(node) is amp_cast and node.args[0].op == "placeholder":
            groups.setdefault(node.kwargs["dtype"], []).append(node)
    report = []
    for dtype, nodes in groups.items():
        if len(nodes) < 2:
            continue
        with graph.inserting_before(next(node for node in graph.nodes if node.op != "placeholder")):
            call = graph.call_function(cast_together, (dtype, *[node.args[0] for node in nodes]))
            parts = [graph.call_function(item, (call, i)) for i in range(len(nodes))]
        for node, part in zip(nodes, parts):
            node.replace_all_uses_with(part)
            graph.erase_node(node)
        report.append(f"mixed precision: {len(nodes)} inputs cast to {str(dtype).removeprefix('torch.')} at once")
    return report


def cast_together(dtype: torch.dtype, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the results of `amp_cast` for all tensors, in as few kernels as possible; their gradients are cast back the same way."""
    results: tuple[torch.Tensor, ...] = _Together.apply(dtype, *tensors)
    return results


class _Together(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.types = [t.dtype for t in tensors]
        return tuple(_copies(tensors, [dtype if t.dtype in MIXED else t.dtype for t in tensors]))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        present = [i for i, gradient in enumerate(gradients) if gradient is not None]
        cast = dict(zip(present, _copies([gradients[i] for i in present], [ctx.types[i] for i in present])))
        return None, *(cast.get(i) for i in range(len(gradients)))


def _copies(tensors: Sequence[Any], types: Sequence[torch.dtype]) -> list[torch.Tensor]:
    copies = [torch.empty_like(t, dtype=dtype) for t, dtype in zip(tensors, types)]
    if copies:
        torch._foreach_copy_(copies, list(tensors))
    return copies
