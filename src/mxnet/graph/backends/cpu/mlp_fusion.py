"""MLP fusion, a pass of the `kernels` backend: consecutive small fully connected layers, with their ReLUs, become one call."""
import math
from typing import Any

import torch
from torch import fx

from ....kernels.gemm.fused_mlp import MOST, FusedMLP, Layer, fits
from ....ops.nn.dense import fully_connected
from ...instrumentation import record_origins
from ...program import FxNode, Program, attributes_of, calls, holds

SMALL_WEIGHT = 1 << 20  # elements of a weight that fits a cache: reading larger ones takes longer than calls do


def apply(program: Program) -> list[str]:
    """Fuse chains of fully connected layers; return the lines of a report."""
    calls_made = count = 0
    taken: set[FxNode] = set()
    for node in list(program.graph.nodes):
        if node not in taken:
            parts, layers = _chain(program, node)
            if layers:
                _replace(program, parts, layers)
                taken.update(parts)
                calls_made, count = calls_made + 1, count + len(layers)
    together = "" if calls_made == count else " in one call" if calls_made == 1 else f" in {calls_made} calls"
    return [f"kernels: {count} x fully connected layer{together}"] if count else []


def may_suit(module: fx.GraphModule) -> bool:
    """Return True if the operators and their number allow a fused MLP; `suits` then checks shapes and weights."""
    operators = [n for n in module.graph.nodes if n.op not in ("placeholder", "output")]
    return 0 < len(operators) <= 2 * MOST and all(calls(n, fully_connected) or holds(n, "is_relu") for n in operators)


def suits(program: Program) -> bool:
    """Return True if the whole program is one such chain."""
    operators = [n for n in program.graph.nodes if n.op not in ("placeholder", "output")]
    return bool(operators) and _chain(program, operators[0])[0] == operators


def _chain(program: Program, node: FxNode) -> tuple[list[FxNode], list[Layer]]:
    """Return the nodes and layers of the longest chain that starts with this node; empty lists if there is none."""
    parts: list[FxNode] = []
    layers: list[Layer] = []
    flattens = attributes_of(node)["flatten"] if calls(node, fully_connected) else None
    while len(layers) < MOST and calls(node, fully_connected) and (not parts or node.args[0] is parts[-1]):
        layer = _layer(program, node)
        if layer is None or layers and program.values[node.args[0]].dim() > 2 and attributes_of(node)["flatten"] is not flattens:
            break
        relu = _only_user(node)
        is_relu = relu is not None and holds(relu, "is_relu")
        layers.append(layer._replace(relu=is_relu))
        parts += [node, relu] if is_relu else [node]
        node = _only_user(parts[-1])
    return parts, layers


def _layer(program: Program, node: FxNode) -> Layer | None:
    """Return a node's layer, without a ReLU; None if its weights are not constant, or the kernel does not support it."""
    shape, fixed = program.shape(node), node.args[1:]
    if not shape or any(n not in program.constants for n in fixed) or any(program.values[n].dtype is not torch.float32 for n in node.args):
        return None
    weight, bias = program.constants[fixed[0]].detach(), program.constants[fixed[1]].detach() if len(fixed) > 1 else None
    layer = Layer(weight, bias, False)
    small = program.values[node.args[0]].dim() >= 2 and 0 < weight.numel() <= SMALL_WEIGHT
    return layer if small and fits(math.prod(shape[:-1]), [layer]) else None


def _replace(program: Program, parts: list[FxNode], layers: list[Layer]) -> None:
    graph, first, last = program.graph, parts[0], parts[-1]
    with graph.inserting_before(last):
        new = graph.call_function(FusedMLP(layers, attributes_of(first)["flatten"]), (first.args[0],))
    record_origins(new, *parts)
    program.values[new] = program.values[last]
    last.replace_all_uses_with(new)
    for part in reversed(parts):
        graph.erase_node(part)


def _only_user(node: FxNode) -> Any:
    return next(iter(node.users)) if len(node.users) == 1 else None
