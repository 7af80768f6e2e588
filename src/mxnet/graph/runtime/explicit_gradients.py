"""Training steps of graphs whose gradients are functions of their own, without torch's autograd.

In a small network torch takes as long as the kernels: it makes a node for each call and each variable, and its engine visits them. Where every
node on the way to a gradient is a chain of fully connected layers, or an operator with MXNet's own gradient, such as an output layer, these are
called one after another: a step of `Module` with Adam on an MLP of three layers of 128 takes 1.04 instead of 1.40 ms (batch 64, Intel Xeon, 2 cores).
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from ...ops.nn.training_layers import ExplicitLayer
from ..program import FxNode, is_stochastic, mutates_inputs, operator_of

_MOST_SHAPES = 256  # programs whose shapes never repeat must not fill the memory


class _Step(NamedTuple):
    """A call of a function, on values and, for `ExplicitLayer`, tuples of values: their places, or None."""

    function: Callable
    gradient: Callable | None  # None where none is wanted
    places: tuple[Any, ...]
    attributes: dict[str, Any]
    out: int
    flat: list[Any]  # `places` without their structure
    wanted: list[bool]  # for each of these, True if a gradient goes through it


class Recorded(NamedTuple):
    """The values of a run, by their places, and what the steps have saved."""

    values: list[Any]
    saved: list[Any]


class ExplicitGraph:
    """A graph that computes gradients of some of its inputs, in float32 on a CPU.

    Parameters
    ----------
    steps : list of _Step
    inputs : int
        The number of inputs, which have the first places.
    outputs : list of int
        The places of the results.
    differentiable : set of int
        The places of values that depend on an input whose gradient is wanted.
    """

    def __init__(self, steps: list[_Step], inputs: int, outputs: list[int], differentiable: set[int]):
        self._steps, self.inputs, self._outputs, self._differentiable = steps, inputs, outputs, differentiable
        self._refused: set[tuple[torch.Size, ...]] = set()  # shapes of inputs that a kernel did not take: what came before it was in vain
        self.recorded = [place in differentiable for place in outputs]  # for each result, True if a gradient goes through it
        self.has_one_result = self.recorded == [True] and outputs[0] >= inputs  # of its own, through which a gradient goes

    @classmethod
    def of(cls, module: fx.GraphModule, wanted: Sequence[int]) -> ExplicitGraph | None:
        """Return the graph of a module with gradients for the inputs in these places; None if others than explicit gradients are needed."""
        places: dict[FxNode, int] = {node: i for i, node in enumerate(n for n in module.graph.nodes if n.op == "placeholder")}
        steps: list[_Step] = []
        differentiable, inputs = set(wanted), len(places)
        for node in module.graph.nodes:
            if node.op == "output":
                results = (node.args[0],) if isinstance(node.args[0], fx.Node) else tuple(node.args[0])
                return cls(steps, inputs, [places[r] for r in results], differentiable) if all(r in places for r in results) else None
            if node.op != "placeholder":
                step = _step(node, places, differentiable)
                if step is None:
                    return None
                steps.append(step)
                places[node] = len(places)
        return None

    def forward(self, inputs: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], Recorded] | None:
        """Return the results and what `backward` needs; None if a kernel does not take these inputs."""
        values, saved = list(inputs), list[Any]()
        if self._refused and tuple([t.shape for t in inputs]) in self._refused:
            return None
        for step in self._steps:
            arguments = [_at(values, place) for place in step.places]
            if isinstance(step.function, ExplicitLayer) and step.gradient is not None:
                call = step.function.saving(*arguments)
                if call is None:
                    self._refused = {*(self._refused if len(self._refused) < _MOST_SHAPES else ()), tuple([t.shape for t in inputs])}
                    return None
                result, for_gradients = call
                saved.append(for_gradients)
            else:
                result = step.function(*arguments, **step.attributes)
                saved.append(None)
            if not isinstance(result, torch.Tensor):
                return None
            values.append(result)
        return [values[place] for place in self._outputs], Recorded(values, saved)

    def backward(self, recorded: Recorded, seeds: Sequence[torch.Tensor | None],
                 wanted: Mapping[int, torch.Tensor | None]) -> list[torch.Tensor | None]:
        """Return the gradients of the inputs in these places, given those of the results; None for an input that none reaches.

        Each place comes with memory in which its gradient may be written, or None.
        """
        gradients: dict[int, torch.Tensor] = {}
        memory = dict(wanted)
        for place, seed in zip(self._outputs, seeds):
            if seed is not None and place in self._differentiable:
                _add(gradients, place, seed)
        for step, saved in zip(reversed(self._steps), reversed(recorded.saved)):
            dout = gradients.pop(step.out, None)
            if dout is None or step.gradient is None:
                continue
            own = isinstance(step.function, ExplicitLayer)
            if own:
                # The memory is not for a second gradient of the same input, which is added.
                results = step.function.gradients(saved, dout, step.wanted, [memory.pop(place, None) for place in step.flat])
            else:
                values = recorded.values
                results = step.gradient((dout,), tuple([values[place] for place in step.flat]), (values[step.out],), **step.attributes)
            for place, want, gradient in zip(step.flat, step.wanted, results if isinstance(results, (tuple, list)) else (results,)):
                if gradient is not None and want:
                    # An operator may hand on what it got, which is not the variable's own.
                    _add(gradients, place, gradient if own or place >= self.inputs else gradient.clone())
        return list(map(gradients.get, wanted))


class ExplicitCall:
    """A call of an `ExplicitGraph` with one result, for `ndarray.explicit_calls`.

    Parameters
    ----------
    graph : ExplicitGraph
    result : torch.Tensor
    recorded : Recorded
    wanted : list of int
        The places of the inputs with gradients.
    light : bool
        True if one thread computes it.
    run : callable
        Runs the graph on the inputs, recorded by torch, and returns the results.
    """

    __slots__ = ("graph", "result", "inputs", "light", "_recorded", "_run")

    def __init__(self, graph: ExplicitGraph, result: torch.Tensor, recorded: Recorded, wanted: Sequence[int], light: bool,
                 run: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]) -> None:
        self.graph, self.result, self.light, self._run = graph, result, light, run
        self.inputs: Sequence[tuple[int, torch.Tensor]] = [(place, recorded.values[place]) for place in wanted]
        self._recorded: Recorded | None = recorded

    def backward(self, gradient: torch.Tensor, memory: Mapping[int, torch.Tensor | None]) -> list[torch.Tensor | None]:
        """Return the gradients of the inputs, given that of the result; each place comes with memory for its gradient, or None."""
        return self.graph.backward(self._needed(), [gradient], memory)

    def reads(self) -> Sequence[torch.Tensor]:
        """Return all tensors that the call has read."""
        return self._needed().values[:self.graph.inputs]

    def again(self) -> torch.Tensor:
        """Return the result of another run, recorded by torch."""
        return self._run(self.reads())[0]

    def free(self) -> None:
        """Release what `backward` and `again` need."""
        self._recorded = None
        self.inputs = []

    def _needed(self) -> Recorded:
        if self._recorded is None:
            raise RuntimeError("a part of this computation is differentiated a second time, and was freed")
        return self._recorded


def _at(values: Sequence[Any], place: Any) -> Any:
    return tuple([None if p is None else values[p] for p in place]) if isinstance(place, tuple) else values[place]


def _add(gradients: dict[int, torch.Tensor], place: int, gradient: torch.Tensor) -> None:
    before = gradients.get(place)
    gradients[place] = gradient if before is None else before + gradient


def _step(node: FxNode, places: dict[FxNode, int], differentiable: set[int]) -> _Step | None:
    """Return the step of a node, and add its place to `differentiable` if a gradient goes through it; None if it needs torch's autograd."""
    if node.op != "call_function" or is_stochastic(node) or mutates_inputs(node):
        return None
    try:
        arguments = tuple([tuple([None if n is None else places[n] for n in a]) if isinstance(a, tuple) else places[a] for a in node.args])
    except (KeyError, TypeError):  # a constant
        return None
    flat = [place for entry in arguments for place in (entry if isinstance(entry, tuple) else (entry,))]
    out, wanted = len(places), [place in differentiable for place in flat]
    op = operator_of(node)
    if not any(wanted):
        return _Step(node.target, None, arguments, dict(node.kwargs), out, flat, wanted)
    if isinstance(node.target, ExplicitLayer):
        step = _Step(node.target, node.target.gradients, arguments, {}, out, flat, wanted)
    elif op is not None and op.own_gradient is not None and node.target is op.fn and op.num_outputs == 1:
        step = _Step(op.raw, op.own_gradient, arguments, dict(node.kwargs), out, flat, wanted)
    else:
        return None
    differentiable.add(len(places))
    return step
