"""Partitioning a program between a backend and `native`."""
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from ..program import FxNode, Program, holds


def worthwhile(nodes: Iterable[FxNode]) -> bool:
    """Return True if these nodes are worth a partition: one of them is compute-bound."""
    return any(holds(n, "compute_bound") for n in nodes)


class _Support(OperatorSupportBase):
    def __init__(self, accepts: Callable[[FxNode], bool]):
        self.accepts = accepts

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: FxNode) -> bool:
        return node.op == "call_function" and self.accepts(node)


def partition(program: Program, accepts: Callable[[FxNode], bool], worthwhile: Callable[[Iterable[FxNode]], bool] = lambda nodes: True) -> dict[str,
           Program]:
    """Move the accepted nodes into as few submodules as possible.

    Returns
    -------
    dict of str to Program
        The submodules, by name; ``program`` calls them.
    """
    partitioner = CapabilityBasedPartitioner(program.module, _Support(accepts), allows_single_node_partition=True)
    proposals = [p for p in partitioner.propose_partitions() if worthwhile(p.nodes)]
    known = {n.name: (program.values.get(n), program.constants.get(n)) for n in program.graph.nodes}
    program.module = partitioner.fuse_partitions(proposals, prefix="part")
    pieces = {}
    for node in program.graph.nodes:
        if node.op != "call_module" or not node.target.startswith("part"):
            continue
        arguments = [_example(a, known) for a in node.args]
        piece = Program(getattr(program.module, node.target), [t for t, _ in arguments], [i for i, (_, fixed) in enumerate(arguments) if fixed])
        pieces[node.target] = piece
    return pieces


def _example(node: Any, known: dict) -> tuple[Any, bool]:
    """Return a tensor in place of a partition's input, and True if its value is constant."""
    value, constant = known.get(node.name, (None, None))
    if isinstance(constant, torch.Tensor):
        return constant, True
    return value, False


def replace(program: Program, name: str, piece: Program, function: Callable) -> None:
    """Replace the submodule `name`, whose program is `piece`, by `function`, which returns a tuple."""
    single = len(piece.outputs) == 1

    def run(*inputs: torch.Tensor) -> Any:
        results = function(*inputs)
        return results[0] if single else results

    run.__name__ = run.__qualname__ = name
    instrumented = getattr(function, "instrumented", None)
    if instrumented is not None:
        run.instrumented = (lambda *inputs: instrumented(*inputs)[0]) if single else instrumented  # type: ignore[attr-defined]
    for node in list(program.graph.nodes):
        if node.op == "call_module" and node.target == name:
            with program.graph.inserting_before(node):
                node.replace_all_uses_with(program.graph.call_function(run, node.args))
            program.graph.erase_node(node)
    delattr(program.module, name)

