"""Graphs for GPUs with derived weights: folded, cast, and in the memory format that is read fastest.

A graph is split into the nodes that depend on weights only, which run when a weight has changed, and the rest, which reads their results. So a
weight may be written to between two runs, as in validation between steps of training, without a new compilation.
"""
import logging
import operator
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import fx
from torch.multiprocessing.reductions import StorageWeakRef

from .... import environment
from ....ndarray import writes
from ....ops.grad_mode import no_grad
from ...passes import attention, folding, fusion, output_ownership
from ...program import Function, FxNode, GraphModule, Program, mutates_inputs
from .. import registry
from . import fused_convolutions
from .scoring_layers import Layer

_log = logging.getLogger(__name__)
_version, _address = operator.attrgetter("_version"), operator.methodcaller("data_ptr")


class Unchanged:
    """A guard of weights: it detects writes and moves, and holds no memory.

    Attributes
    ----------
    stale : bool
        True once a weight was written to.
    compares : bool
        If True, torch's version counters are compared: a weight is accessible as a torch tensor.
    """

    def __init__(self, weights: Sequence[torch.Tensor]):
        self.compares = False
        self.stale = not all(map(writes.may_watch, weights))
        self._versions = [] if self.stale else list(map(_version, weights))
        self._places, self._addresses = list(map(place, weights)), list(map(_address, weights))
        self._tensors = list(map(weakref.ref, weights))
        self._storages = [StorageWeakRef(t.untyped_storage()) for t in weights]  # freed memory may be reused by another weight
        self._numbers = [ref.cdata for ref in self._storages]
        if not self.stale:
            writes.watch(weights, self)

    def holds(self, current: Sequence[torch.Tensor]) -> bool:
        """Return True if these are the guarded weights, and none of them has changed."""
        # Networks have hundreds of weights, so each property is compared for all of them at once.
        if self.stale or list(map(_address, current)) != self._addresses or any(map(torch.UntypedStorage._expired, self._numbers)):
            return False
        if self.compares and list(map(_version, current)) != self._versions:
            return False
        return all(map(operator.is_, current, [ref() for ref in self._tensors])) or list(map(place, current)) == self._places


class Prepared:
    """A graph in two parts: the derivation of weights, and the rest.

    Attributes
    ----------
    prepare : callable
        From the graph's inputs to a tuple of derived weights, in separate memory. It reads no inputs that are data.
    run : callable
        From the graph's inputs, followed by the derived weights, to the tuple of outputs.
    positions, direct : list of int
        The positions of the inputs that `prepare` reads, and of those that `run` reads.
    reordered : list of int
        The positions of the inputs of which `run` only reads a copy with channels last.

    Parameters
    ----------
    program : Program
        The rewritten graph.
    nodes : set of fx.Node
        The nodes that are computed from weights only.
    """

    def __init__(self, program: Program, nodes: set[FxNode]):
        self._report = program.report
        preparation = _part(program, nodes)
        places = preparation.graph.find_nodes(op="placeholder")
        self.positions = [i for i, n in enumerate(places) if n.users]
        self.prepare: Function = preparation.forward
        _read_from_inputs(program, nodes)
        output_ownership.apply(program.module)  # removed dropout was a copy
        program.finish()
        self.run: Function = program.module.forward
        self.direct = [i for i, n in enumerate(program.placeholders) if n.users]
        self.reordered = [i for i in self.direct if all(user.target is registry.channels_last_for_tensor_cores
                                                        for user in program.placeholders[i].users)]
        self._layers = [n.target for n in program.graph.nodes if isinstance(n.target, Layer)]
        self._lock = threading.Lock()
        self._derived: tuple[Sequence[torch.Tensor], Unchanged] | None = None

    def function(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        """Return the outputs, a tuple of tensors; weights are derived again after a change."""
        weights = self.weights(inputs)
        with self._lock:
            if self._derived is None or not self._derived[1].holds(weights):
                unchanged = Unchanged(weights)  # before they are read, so that no write is missed
                with no_grad():
                    self._derived = self.prepare(*inputs), unchanged
            prepared = self._derived[0]
        return self.run(*inputs, *prepared)

    def weights(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the inputs that `prepare` reads."""
        return list(map(inputs.__getitem__, self.positions))

    def explain(self) -> list[str]:
        """Return the report of the rewrites, and the algorithms of the layers."""
        algorithms = Counter(layer.algorithm for layer in self._layers if layer.algorithm)
        return [*self._report, *(f"cuda: {count} x {algorithm}" for algorithm, count in sorted(algorithms.items()))]


def place(tensor: torch.Tensor) -> tuple:
    """Return a tensor's address, strides, shape and type."""
    return tensor.data_ptr(), tensor.stride(), tensor.shape, tensor.dtype


def prepared(module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Iterable[int], device: torch.device,
             exact: bool = False) -> Prepared | None:
    """Rewrite a graph for inference on a GPU.

    Parameters
    ----------
    module : torch.fx.GraphModule
        The lowered graph; it is not modified.
    inputs : list of torch.Tensor
        Example inputs, with the shapes and types of all later ones.
    weights : iterable of int
        Positions of the inputs that rarely change.
    device : torch.device
    exact : bool
        If True, results must equal those of the operators one by one: nothing is rewritten.

    Returns
    -------
    Prepared or None
        None if there is nothing to gain, or a rewritten graph would differ.
    """
    if exact or registry.asks_for_exact() or not environment.get_bool("MXNET_USE_FUSION"):
        return None
    try:
        return _rewritten(module, inputs, weights, device)
    except Exception as error:  # after any failure here the graph still runs on torch
        _log.info("graph: not folded for GPUs: %s", error)
        return None


def _rewritten(module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Iterable[int], device: torch.device) -> Prepared | None:
    program = Program(module, inputs)
    if any(mutates_inputs(n) for n in program.graph.nodes):  # a weight could change in the middle of a run
        return None
    registry.arrange(program.module, device)
    program.infer()
    known = {program.placeholders[i] for i in weights}
    casts = fused_convolutions.casts(program, known)
    folding.drop_idle(program)
    program.report, nodes = fused_convolutions.apply(program, known | casts, device)
    if not nodes:
        return None
    if casts:
        program.report.append(f"cuda: {len(casts)} x weight cast when it changes")
    program.report += fusion.rectify_in_place(program.module) + attention.apply(program.module)
    return Prepared(program, nodes | casts)


def _part(program: Program, nodes: set[FxNode]) -> fx.GraphModule:
    """Return the nodes that derive weights as a separate graph."""
    graph = fx.Graph()
    copies: dict[FxNode, FxNode] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder" or node in nodes:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[n] for n in _read(program, nodes)))
    return GraphModule(torch.nn.Module(), graph)


def _read(program: Program, nodes: set[FxNode]) -> list[FxNode]:
    """Return the nodes, among these, that the rest of the graph reads, in order."""
    return [n for n in program.graph.nodes if n in nodes and any(user not in nodes for user in n.users)]


def _read_from_inputs(program: Program, nodes: set[FxNode]) -> None:
    """Replace these nodes in the graph by additional inputs behind all others."""
    graph, last = program.graph, program.placeholders[0]
    first = next(iter(graph.nodes))
    if first is not last:
        first.prepend(last)
    for node in program.placeholders[1:]:  # before all nodes that may read the new inputs
        last.append(node)
        last = node
    for number, node in enumerate(_read(program, nodes)):
        with graph.inserting_after(last):
            last = graph.placeholder(f"prepared_{number}")
        program.values[last] = program.values.get(node)
        node.replace_all_uses_with(last)
    for node in reversed(list(graph.nodes)):
        if node in nodes:
            graph.erase_node(node)
