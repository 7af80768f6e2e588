"""Training steps of graphs whose gradients are functions of their own, without torch's autograd.

In a small network torch takes as long as the kernels: it makes a node for each call and each variable, and its engine visits them. Where most
nodes on the way to a gradient are layers with functions for it (fully connected ones, convolutions, batch norms), or operators with MXNet's own
gradient, such as an output layer, these are called one after another: a step of `Module` with Adam on an MLP of three layers of 128 takes 1.04
instead of 1.40 ms (batch 64, Intel Xeon, 2 cores). Torch records the others one by one.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import fx

from ...ndarray import memory_format
from ...ops import differentiation, sparse_input_linear
from ...ops.grad_mode import GradMode
from ...ops.nn.training_layers import ExplicitLayer
from ..passes import layout
from ..program import FxNode, attributes_of, is_stochastic, mutates_inputs, operator_of

_MOST_SHAPES = 256  # programs whose shapes never repeat must not fill the memory
_IN_OTHER_ORDER = (layout.channels_last, layout.standard)


class _Step(NamedTuple):
    """A call of a function, on values and, for `ExplicitLayer`, tuples of values: their places, or None."""

    function: Callable
    gradient: Callable | None  # an operator's own, or None
    places: tuple[Any, ...]
    attributes: dict[str, Any]
    out: int
    flat: list[Any]  # `places` without their structure
    wanted: list[bool]  # for each of these, True if a gradient goes through it
    by_torch: bool = False  # True if torch records the call
    unread: tuple[int, ...] = ()  # places of values that nothing needs after it
    first_of: tuple[int, ...] = ()  # places of inputs that no step before it reads: its gradients complete theirs


class RecordedByTorch(NamedTuple):
    """A single call that torch has recorded."""

    out: torch.Tensor
    leaves: list[Any]  # the inputs, in the order of `_Step.flat`; None for those without a gradient

    @classmethod
    def of(cls, step: _Step, arguments: Sequence[Any]) -> RecordedByTorch:
        leaves = [t.detach().requires_grad_() if want else None for t, want in zip(arguments, step.wanted)]
        with GradMode(True):
            out = step.function(*[t if leaf is None else leaf for t, leaf in zip(arguments, leaves)], **step.attributes)
        return cls(out, leaves)

    def gradients(self, dout: torch.Tensor, keep: bool) -> list[torch.Tensor | None]:
        inputs = [leaf for leaf in self.leaves if leaf is not None]
        computed = iter(differentiation.gradients([self.out], inputs, [dout], keep))
        return [None if leaf is None else next(computed) for leaf in self.leaves]


class Recorded(NamedTuple):
    """The values of a run, by their places, and what the steps have saved."""

    values: list[Any]
    saved: list[Any]


class TrainingGraph(Protocol):
    """A graph with methods for its outputs and gradients: an `ExplicitGraph`, or on a GPU a captured one.

    Attributes
    ----------
    inputs : int
        The number of inputs.
    recorded : list of bool
        For each result, True if a gradient goes through it.
    """

    inputs: int
    recorded: list[bool]

    @property
    def ready(self) -> bool:
        """True if `forward` may be called now."""

    @property
    def has_own_results(self) -> bool:
        """True if no result is an input, and a gradient goes through one."""

    def forward(self, inputs: Sequence[torch.Tensor], dtype: torch.dtype | None = None) -> tuple[list[torch.Tensor], Any] | None:
        """Return the results and what `backward` needs, whose `values` begin with the inputs; None if these inputs need torch's autograd."""

    def backward(self, recorded: Any, seeds: Sequence[torch.Tensor | None], receive: Callable[[int, torch.Tensor], object],
                 lend: Callable[[int], torch.Tensor | None] = lambda place: None, keep: bool = False) -> None:
        """Compute the gradients of the inputs, given those of the results; see `ExplicitGraph.backward`."""

    def again(self, recorded: Any, run: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]) -> Sequence[torch.Tensor]:
        """Return the results of ``run(inputs)``, which torch records; the values to which it writes are restored."""


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

    Attributes
    ----------
    written : list of int
        The places of inputs to which a run writes, such as moving averages.
    """

    def __init__(self, steps: list[_Step], inputs: int, outputs: list[int], differentiable: set[int]):
        self._steps, self.inputs, self._outputs, self._differentiable = _with_uses(steps, inputs, outputs), inputs, outputs, differentiable
        self._refused: set[tuple[torch.Size, ...]] = set()  # shapes of inputs that a kernel did not take: what came before it was in vain
        self._most_by_torch = _most_by_torch(steps)
        self._ran_slowly = False  # as the first run may, before which weights are not in the order of the kernels yet
        self.recorded = [place in differentiable for place in outputs]  # for each result, True if a gradient goes through it
        self.has_own_results = any(self.recorded) and min(outputs) >= inputs
        self.ready = True
        self.written = [step.flat[i] for step in steps if isinstance(step.function, ExplicitLayer) for i in step.function.writes]

    @classmethod
    def of(cls, module: fx.GraphModule, wanted: Sequence[int]) -> ExplicitGraph | None:
        """Return the graph of a module with gradients for the inputs in these places; None if torch's autograd is needed, or as fast."""
        places: dict[FxNode, int] = {node: i for i, node in enumerate(n for n in module.graph.nodes if n.op == "placeholder")}
        steps: list[_Step] = []
        differentiable, inputs = set(wanted), len(places)
        for node in module.graph.nodes:
            if node.op == "output":
                results = (node.args[0],) if isinstance(node.args[0], fx.Node) else tuple(node.args[0])
                if any(r not in places for r in results) or sum(step.by_torch for step in steps) > _most_by_torch(steps):
                    return None
                graph = cls(steps, inputs, [places[r] for r in results], differentiable)
                return graph if all(place < inputs for place in graph.written) else None
            if node.op != "placeholder":
                step = _step(node, places, differentiable)
                if step is None:
                    return None
                steps.append(step)
                places[node] = len(places)
        return None

    def forward(self, inputs: Sequence[torch.Tensor], dtype: torch.dtype | None = None) -> tuple[list[torch.Tensor], Recorded] | None:
        """Return the results and what `backward` needs; None if a kernel does not take these inputs, or a result has another type than `dtype`."""
        if self._refused and tuple([t.shape for t in inputs]) in self._refused:
            return None
        written = self.values_written(inputs)
        try:
            run = self._forward(inputs)
            if run is not None and dtype is not None and any(result.dtype is not dtype for result in run[0]):
                self._refuse(inputs)
                run = None
        except BaseException:
            self.restore(inputs, written)
            raise
        if run is None:
            self.restore(inputs, written)
        return run

    def again(self, recorded: Recorded, run: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]) -> Sequence[torch.Tensor]:
        """Return the results of ``run(inputs)``, which torch records; the values to which it writes are restored."""
        inputs = recorded.values[:self.inputs]
        written = self.values_written(inputs)
        try:
            return run(inputs)
        finally:
            self.restore(inputs, written)

    def values_written(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return copies of the inputs to which a run writes."""
        return [inputs[place].clone() for place in self.written]

    def restore(self, inputs: Sequence[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
        """Give the inputs to which a run has written these values again."""
        for place, value in zip(self.written, values):
            inputs[place].data.copy_(value)  # torch need not know: another run writes to them

    def _forward(self, inputs: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], Recorded] | None:
        values, saved, by_torch = list[Any](inputs), list[Any](), 0
        for step in self._steps:
            arguments = [_at(values, place) for place in step.places]
            for_gradients: Any = None
            layer = step.function if isinstance(step.function, ExplicitLayer) and any(step.wanted) else None
            call = None if layer is None else layer.saving(*arguments, **step.attributes)
            if call is not None:
                result, for_gradients = call
            elif layer is not None and not layer.recorded_where_unfit or step.by_torch and self._lends(step, arguments):
                result = None
            elif layer is not None or step.by_torch:
                by_torch += 1
                for_gradients = RecordedByTorch.of(step, arguments)
                # Which results have a gradient is known before: a number of a class, for example, ends the path.
                recorded = isinstance(for_gradients.out, torch.Tensor) and for_gradients.out.requires_grad
                result = for_gradients.out.detach() if recorded else None
            else:
                result = step.function(*arguments, **step.attributes)
            if not isinstance(result, torch.Tensor):
                self._refuse(inputs)
                return None
            saved.append(for_gradients)
            values.append(result)
            for place in step.unread:
                values[place] = None
        if by_torch > self._most_by_torch:
            if self._ran_slowly:
                self._refuse(inputs)  # from the next run on
            self._ran_slowly = True
        return [values[place] for place in self._outputs], Recorded(values, saved)

    def _lends(self, step: _Step, arguments: Sequence[Any]) -> bool:
        """Return True for a weight so large that its gradient is computed in the array for it, where the whole graph is recorded."""
        return any(want and place < self.inputs and t.numel() >= sparse_input_linear.LARGE
                   for t, place, want in zip(arguments, step.flat, step.wanted))

    def _refuse(self, inputs: Sequence[torch.Tensor]) -> None:
        self._refused = {*(self._refused if len(self._refused) < _MOST_SHAPES else ()), tuple([t.shape for t in inputs])}

    def backward(self, recorded: Recorded, seeds: Sequence[torch.Tensor | None], receive: Callable[[int, torch.Tensor], object],
                 lend: Callable[[int], torch.Tensor | None] = lambda place: None, keep: bool = False) -> None:
        """Compute the gradients of the inputs, given those of the results; with `keep` this can be called again.

        ``receive(place, gradient)`` gets each as soon as it is complete. ``lend(place)`` is called at most once for each, before, and returns memory
        in which it may be written, or None.
        """
        gradients, lent = Gradients(), set[int]()
        for place, seed in zip(self._outputs, seeds):
            if seed is not None and place in self._differentiable:
                gradients.add(place, seed if place >= self.inputs else seed.clone(), False)
        for number in reversed(range(len(self._steps))):
            step, saved = self._steps[number], recorded.saved[number]
            if not keep:
                recorded.saved[number] = None  # its memory is free as soon as it is used
            dout = gradients.pop(step.out, None)
            if dout is not None and any(step.wanted):
                memory: list[torch.Tensor | None] = [None] * len(step.flat)
                if isinstance(step.function, ExplicitLayer):
                    for i, (place, want) in enumerate(zip(step.flat, step.wanted)):
                        if want and place < self.inputs and place not in lent:  # a second gradient of the same input is added
                            memory[i] = lend(place)
                            lent.add(place)
                self._backward_one(step, saved, recorded.values, dout, memory, gradients, keep)
            for place in step.first_of:
                if place in gradients:
                    receive(place, gradients.pop(place))
        for place in [place for place in gradients if place < self.inputs]:  # of inputs that are handed on
            receive(place, gradients.pop(place))

    def _backward_one(self, step: _Step, saved: Any, values: Sequence[torch.Tensor], dout: torch.Tensor, memory: Sequence[torch.Tensor | None],
                      gradients: Gradients, keep: bool) -> None:
        own = False  # True if no gradient shares its memory with another tensor
        results: Any
        if isinstance(saved, RecordedByTorch):
            results = saved.gradients(dout, keep)
        elif isinstance(step.function, ExplicitLayer) and saved is not None:
            own, results = True, step.function.gradients(saved, dout, step.wanted, memory)
            if results is None:
                raise RuntimeError(f"no kernel of {step.function} takes a gradient of type {dout.dtype} and shape {tuple(dout.shape)}")
        elif step.gradient is not None:
            results = step.gradient((dout,), tuple([values[place] for place in step.flat]), (values[step.out],), **step.attributes)
        else:
            raise RuntimeError("a part of this computation is differentiated a second time, and was freed")
        results = results if isinstance(results, (tuple, list)) else (results,)
        for place, want, gradient in zip(step.flat, step.wanted, results):
            if gradient is not None and want:
                if not own and place < self.inputs and not _is_alone(gradient, (dout, *results)):
                    gradient = gradient.clone()  # an operator may hand on what it got, which is not the variable's own
                gradients.add(place, gradient, own)


class ExplicitCall:
    """A call of a `TrainingGraph`, for `ndarray.explicit_calls`.

    Parameters
    ----------
    graph : TrainingGraph
    results : list of torch.Tensor and None
        The results that require gradients, None for the others.
    recorded
        What the graph's `backward` needs.
    wanted : list of int
        The places of the inputs with gradients.
    light : bool
        True if one thread computes it.
    run : callable
        Runs the graph on the inputs, recorded by torch, and returns the results.
    """

    __slots__ = ("graph", "results", "inputs", "light", "_recorded", "_run")

    def __init__(self, graph: TrainingGraph, results: Sequence[torch.Tensor | None], recorded: Any, wanted: Sequence[int], light: bool,
                 run: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]) -> None:
        self.graph, self.results, self.light, self._run = graph, results, light, run
        self.inputs: Sequence[tuple[int, torch.Tensor]] = [(place, recorded.values[place]) for place in wanted]
        self._recorded: Any = recorded

    def backward(self, gradients: Sequence[torch.Tensor | None], receive: Callable[[int, torch.Tensor], object],
                 lend: Callable[[int], torch.Tensor | None], keep: bool) -> None:
        """Compute the gradients of the inputs, given those of the results; see `ExplicitGraph.backward`."""
        self.graph.backward(self._needed(), gradients, receive, lend, keep)

    def reads(self) -> Sequence[torch.Tensor]:
        """Return all tensors that the call has read."""
        return self._needed().values[:self.graph.inputs]

    def again(self) -> Sequence[torch.Tensor]:
        """Return the results of another run, recorded by torch."""
        return self.graph.again(self._needed(), self._run)

    def free(self) -> None:
        """Release what `backward` and `again` need."""
        self._recorded = None
        self.inputs = []

    def _needed(self) -> Any:
        if self._recorded is None:
            raise RuntimeError("a part of this computation is differentiated a second time, and was freed")
        return self._recorded


def _at(values: Sequence[Any], place: Any) -> Any:
    return tuple([None if p is None else values[p] for p in place]) if isinstance(place, tuple) else values[place]


class Gradients(dict[int, torch.Tensor]):
    """Gradients of values, by their places."""

    def __init__(self) -> None:
        self._own: set[int] = set()  # places whose gradient shares its memory with no other tensor

    def add(self, place: int, gradient: torch.Tensor, own: bool) -> None:
        """Add a gradient to that of a value; `own` if it shares its memory with no other tensor."""
        before = self.get(place)
        if before is None:
            self[place] = gradient
            if own:
                self._own.add(place)
        elif place in self._own and before.dtype is gradient.dtype:
            before.add_(gradient)
        elif own and before.dtype is gradient.dtype:
            self[place] = gradient.add_(before)
            self._own.add(place)
        else:
            self[place] = before + gradient
            self._own.add(place)


def _is_alone(gradient: torch.Tensor, others: Sequence[Any]) -> bool:
    """Return True if no other tensor, such as one of `others` (among which it is itself), has the memory of a gradient."""
    return sum(other is gradient for other in others) == 1 and not gradient.is_sparse and memory_format.owned(gradient)


def _most_by_torch(steps: Sequence[_Step]) -> int:
    """Return the number of calls that torch may record one by one; with more of them it is faster with all."""
    return sum(any(step.wanted) for step in steps) // 3


def _with_uses(steps: list[_Step], inputs: int, outputs: list[int]) -> list[_Step]:
    """Return the steps with what nothing needs after each, no later step, no gradient and not the caller; and with what none before it reads."""
    needed = {*outputs, *(place for step in steps if step.gradient is not None for place in (*step.flat, step.out))}
    read: set[int] = set()
    for i, step in enumerate(steps):
        first = {place for place, want in zip(step.flat, step.wanted) if want and place < inputs} - read
        read |= first
        steps[i] = step._replace(first_of=tuple(sorted(first)))
    for i, step in reversed(list(enumerate(steps))):
        unread = {place for place in (*step.flat, step.out) if place is not None and place >= inputs} - needed
        needed |= unread
        steps[i] = step._replace(unread=tuple(unread))
    return steps


def _step(node: FxNode, places: dict[FxNode, int], differentiable: set[int]) -> _Step | None:
    """Return the step of a node, and add its place to `differentiable` if a gradient goes through it; None if it needs torch's autograd."""
    if node.op != "call_function" or is_stochastic(node) or mutates_inputs(node) or any(isinstance(v, fx.Node) for v in node.kwargs.values()):
        return None
    try:
        arguments = tuple([tuple([None if n is None else places[n] for n in a]) if isinstance(a, tuple) else places[a] for a in node.args])
    except (KeyError, TypeError):  # a constant
        return None
    flat = [place for entry in arguments for place in (entry if isinstance(entry, tuple) else (entry,))]
    function, gradient, by_torch, op = node.target, None, False, operator_of(node)
    wanted = [place in differentiable for place in flat]
    if op is not None and (op.no_gradient or op.stops_gradient):
        wanted = [False] * len(flat)
    if not any(wanted) or isinstance(function, ExplicitLayer):
        pass
    elif op is not None and op.own_gradient is not None and function is op.fn and op.num_outputs == 1:
        function, gradient = op.raw, op.own_gradient
    elif op is not None and op.gradient_storage is not None and any(
            op.gradient_storage(i, ("default",) * len(flat), attributes_of(node)) == "row_sparse" for i, want in enumerate(wanted) if want):
        return None  # torch hands on the rows
    elif function in _IN_OTHER_ORDER or op is not None and function is op.fn and op.num_outputs == 1 and len(flat) == len(arguments):
        by_torch = True
    else:
        return None
    if any(wanted):
        differentiable.add(len(places))
    return _Step(function, gradient, arguments, dict(node.kwargs), len(places), flat, wanted, by_torch)
