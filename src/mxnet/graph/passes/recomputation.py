"""Recomputation (activation checkpointing): parts of the graph save only their inputs, and are computed again in backward.

``MXNET_BACKWARD_DO_MIRROR=1`` cuts the graph into about as many parts as each then has operators (Chen et al., "Training deep nets with
sublinear memory cost", https://arxiv.org/abs/1604.06174), where few values cross. The attribute ``force_mirroring`` selects single nodes
for recomputation. Nodes that draw random numbers or run Python code are never run twice.
"""
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import checkpoint

from ...ndarray import dispatch
from ...ops.nn.training_layers import add_bias, batch_norm
from ...ops.registry import get as operators_get
from ..instrumentation import instrumented, nodes_of
from ..program import FxNode, is_stochastic, item, operator_of
from .fusion import rectify


class Part(torch.nn.Module):
    """Consecutive nodes that save their inputs only, and are recomputed in backward.

    Parameters
    ----------
    module : torch.fx.GraphModule
    written : list of int
        Positions of inputs that the nodes write to, such as moving averages: recomputation writes to copies of these.
    """

    def __init__(self, module: fx.GraphModule, written: Sequence[int]):
        super().__init__()
        self.module, self.written = module, tuple(written)

    def _run(self, *inputs: torch.Tensor) -> Any:
        return (self.module.forward if dispatch.graph_observer is None else instrumented(self.module.forward))(*inputs)

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Return the results of the nodes."""
        if not torch.is_grad_enabled() or not any(t.requires_grad for t in inputs):
            return self._run(*inputs)
        first = True

        def run(*given: torch.Tensor) -> Any:
            nonlocal first
            if first:
                first = False
            else:
                given = tuple(t.clone() if i in self.written else t for i, t in enumerate(given))
            return self._run(*given)

        return checkpoint.checkpoint(run, *inputs, use_reentrant=False, preserve_rng_state=False)


def marked(module: fx.GraphModule) -> bool:
    """Return True if a node has the attribute ``force_mirroring``."""
    return any(map(_is_marked, module.graph.nodes))


def apply(module: fx.GraphModule, everywhere: bool) -> list[str]:
    """Replace parts of the graph by `Part` modules; return the lines of a report.

    Parameters
    ----------
    module : torch.fx.GraphModule
    everywhere : bool
        If True, the whole graph is cut into parts; else the marked nodes are.
    """
    nodes = [n for n in module.graph.nodes if n.op not in ("placeholder", "output")]
    runs = _runs(nodes, everywhere)
    parts = [part for run in runs for part in (_divided(run) if everywhere else [run])]
    if everywhere and parts and parts[-1][-1] is nodes[-1]:
        del parts[-1]  # backward begins with it
    parts = [part for part in parts if len(part) > 1]
    for i, part in enumerate(parts):
        _replace(module, part, f"part_{i}")
    if parts:
        module.graph.lint()
        module.recompile()
    return [f"memory: {len(parts)} parts with {sum(map(len, parts))} operators are computed again in backward"] if parts else []


def _is_marked(node: FxNode) -> bool:
    return any(str(n.attrs.get("__force_mirroring__", "")).lower() in ("true", "1") for n in nodes_of(node))


def _runs(nodes: Sequence[FxNode], everywhere: bool) -> list[list[FxNode]]:
    """Return runs of consecutive nodes that may be computed twice."""
    runs: list[list[FxNode]] = [[]]
    for node in nodes:
        if node.op != "call_function" or is_stochastic(node):
            runs.append([])
        elif everywhere or _is_marked(node) or _takes_part(node) and runs[-1] and node.args[0] is runs[-1][-1]:
            runs[-1].append(node)
        else:
            runs.append([])
    return [run for run in runs if run]


def _takes_part(node: FxNode) -> bool:
    """Return True if the node only selects one of several results."""
    return node.target is item


def _divided(run: list[FxNode]) -> list[list[FxNode]]:
    """Cut a run into about as many parts as each has nodes, where the fewest values cross."""
    count = math.isqrt(len(run))
    if count < 2:
        return [run]
    places = {node: i for i, node in enumerate(run)}
    crossing = [0] * len(run)  # number of the run's values needed behind node i; len(run), no cut, where one of them must not be saved
    for i, node in enumerate(run):
        last = max((places.get(user, len(run)) for user in node.users), default=i)
        for j in range(i, min(last, len(run))):
            crossing[j] += 1
        if any(_takes_part(user) for user in node.users):
            crossing[i:min(last, len(run))] = [len(run)] * (min(last, len(run)) - i)
    size, parts, begin = len(run) / count, [], 0
    for k in range(1, count):
        first, final = max(begin + 1, round((k - 0.5) * size)), min(len(run) - 2, round((k + 0.5) * size))
        if first > final:
            continue
        at = min(range(first, final), key=lambda j: (crossing[j], abs(j - k * size)), default=None)
        if at is None or crossing[at] >= len(run):
            continue
        parts.append(run[begin:at + 1])
        begin = at + 1
    return [*parts, run[begin:]]


def _replace(module: fx.GraphModule, part: list[FxNode], name: str) -> None:
    """Replace consecutive nodes by one call."""
    inside = set(part)
    given = list(dict.fromkeys(n for node in part for n in node.all_input_nodes if n not in inside))
    results = [node for node in part if any(user not in inside for user in node.users)]
    graph = fx.Graph()
    env: dict[FxNode, FxNode] = {n: graph.placeholder(f"given_{i}") for i, n in enumerate(given)}
    written = set()
    for node in part:
        op = operators_get("BatchNorm") if node.target is batch_norm else operator_of(node)  # fused, it writes to the same inputs
        if op is not None and op.mutates:
            written |= {node.args[i] for i in op.mutated_indices if i < len(node.args)}
        env[node] = graph.node_copy(node, lambda n: env[n])
        if node.target in (rectify, add_bias) and node.args[0] not in inside:
            with graph.inserting_before(env[node]):
                env[node].update_arg(0, graph.call_function(torch.clone, (env[node.args[0]],)))  # a part's inputs are needed again
    graph.output(tuple(env[n] for n in results))
    module.add_submodule(name, Part(fx.GraphModule(module, graph), [i for i, n in enumerate(given) if n in written]))
    with module.graph.inserting_after(part[-1]):
        outputs = module.graph.call_module(name, tuple(given))
    after = outputs
    for i, node in enumerate(results):
        with module.graph.inserting_after(after):
            after = module.graph.call_function(item, (outputs, i))
        node.replace_all_uses_with(after, delete_user_cb=lambda user: user not in inside and user is not outputs)
    for node in reversed(part):
        module.graph.erase_node(node)


__all__ = ["Part", "apply", "marked"]
