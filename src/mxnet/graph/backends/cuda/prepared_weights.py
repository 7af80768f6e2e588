"""Graphs for GPUs that read weights which were prepared: folded, cast, brought into the order that is read fastest.

A graph is divided into what depends on weights alone, which runs when one has changed, and the rest, which reads what that has made. So a weight
may be written to between two runs, as in validation between steps of training, and costs no new compilation.
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
    """Weights, until one of them is written to or moves. It holds no memory.

    Attributes
    ----------
    stale : bool
        True once one was written to.
    compares : bool
        Whether torch's version counters have to be looked at: somebody holds one as a torch tensor.
    """

    def __init__(self, weights: Sequence[torch.Tensor]):
        self.compares = False
        self.stale = not all(map(writes.may_watch, weights))
        self._versions = [] if self.stale else list(map(_version, weights))
        self._places, self._addresses = list(map(place, weights)), list(map(_address, weights))
        self._tensors = list(map(weakref.ref, weights))
        self._storages = [StorageWeakRef(t.untyped_storage()) for t in weights]  # memory that was given back may hold another weight
        self._numbers = [ref.cdata for ref in self._storages]
        if not self.stale:
            writes.watch(weights, self)

    def holds(self, current: Sequence[torch.Tensor]) -> bool:
        """Return whether these are the same, unchanged."""
        # Networks have hundreds of weights: what is asked of each is asked for all at once.
        if self.stale or list(map(_address, current)) != self._addresses or any(map(torch.UntypedStorage._expired, self._numbers)):
            return False
        if self.compares and list(map(_version, current)) != self._versions:
            return False
        return all(map(operator.is_, current, [ref() for ref in self._tensors])) or list(map(place, current)) == self._places


class Prepared:
    """A graph in two parts.

    Attributes
    ----------
    prepare : callable
        From the graph's inputs to a tuple of prepared weights, in memory of their own. It reads none of the inputs that are data.
    run : callable
        From the graph's inputs, followed by the prepared weights, to the tuple of outputs.
    positions, direct : list of int
        The inputs that `prepare` reads, and those that `run` does.
    reordered : list of int
        The inputs of which `run` reads only a copy with the channels last.

    Parameters
    ----------
    program : Program
        The graph, rewritten.
    nodes : set of fx.Node
        Those that are computed from weights alone.
    """

    def __init__(self, program: Program, nodes: set[FxNode]):
        self._report = program.report
        preparation = _part(program, nodes)
        places = preparation.graph.find_nodes(op="placeholder")
        self.positions = [i for i, n in enumerate(places) if n.users]
        self.prepare: Function = preparation.forward
        _read_from_inputs(program, nodes)
        output_ownership.apply(program.module)  # dropout that is taken out was a copy
        program.finish()
        self.run: Function = program.module.forward
        self.direct = [i for i, n in enumerate(program.placeholders) if n.users]
        self.reordered = [i for i in self.direct if all(user.target is registry.channels_last_for_tensor_cores
                                                        for user in program.placeholders[i].users)]
        self._layers = [n.target for n in program.graph.nodes if isinstance(n.target, Layer)]
        self._lock = threading.Lock()
        self._made: tuple[Sequence[torch.Tensor], Unchanged] | None = None

    def function(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        """The outputs, a tuple of tensors: by weights that are prepared when they have changed."""
        weights = self.weights(inputs)
        with self._lock:
            if self._made is None or not self._made[1].holds(weights):
                unchanged = Unchanged(weights)  # before they are read, so that no write is missed
                with no_grad():
                    self._made = self.prepare(*inputs), unchanged
            prepared = self._made[0]
        return self.run(*inputs, *prepared)

    def weights(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The inputs that `prepare` reads."""
        return list(map(inputs.__getitem__, self.positions))

    def explain(self) -> list[str]:
        """Return what was folded, and how it is computed."""
        ways = Counter(layer.way for layer in self._layers if layer.way)
        return [*self._report, *(f"cuda: {count} x {way}" for way, count in sorted(ways.items()))]


def place(tensor: torch.Tensor) -> tuple:
    """Where a tensor lies, and as what."""
    return tensor.data_ptr(), tensor.stride(), tensor.shape, tensor.dtype


def prepared(module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Iterable[int], device: torch.device,
             exact: bool = False) -> Prepared | None:
    """Rewrite a graph for inference on a GPU.

    Parameters
    ----------
    module : torch.fx.GraphModule
        As it was lowered; it stays as it is.
    inputs : list of torch.Tensor
        With the shapes and types of all inputs that will come.
    weights : iterable of int
        Positions of the inputs that rarely change.
    device : torch.device
    exact : bool
        Whether the results must be those of the operators one by one: then nothing is rewritten.

    Returns
    -------
    Prepared or None
        None where there is nothing to gain, or a rewritten graph would not be the same.
    """
    if exact or registry.asks_for_exact() or not environment.get_bool("MXNET_USE_FUSION"):
        return None
    try:
        return _rewritten(module, inputs, weights, device)
    except Exception as error:  # whatever goes wrong in here, the graph still runs on torch
        _log.info("graph: not folded for GPUs: %s", error)
        return None


def _rewritten(module: fx.GraphModule, inputs: Sequence[torch.Tensor], weights: Iterable[int], device: torch.device) -> Prepared | None:
    program = Program(module, inputs)
    if any(mutates_inputs(n) for n in program.graph.nodes):  # a weight might change in the middle of a run
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
    """The nodes that prepare weights, as a graph of its own."""
    graph = fx.Graph()
    copies: dict[FxNode, FxNode] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder" or node in nodes:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[n] for n in _read(program, nodes)))
    return GraphModule(torch.nn.Module(), graph)


def _read(program: Program, nodes: set[FxNode]) -> list[FxNode]:
    """Those of the nodes that the rest of the graph reads, in order."""
    return [n for n in program.graph.nodes if n in nodes and any(user not in nodes for user in n.users)]


def _read_from_inputs(program: Program, nodes: set[FxNode]) -> None:
    """Let the graph read what the nodes compute from inputs behind all others."""
    graph, last = program.graph, program.placeholders[0]
    first = next(iter(graph.nodes))
    if first is not last:
        first.prepend(last)
    for node in program.placeholders[1:]:  # in front of all that may read the new ones
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
