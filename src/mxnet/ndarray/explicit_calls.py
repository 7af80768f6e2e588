"""Recorded calls that compute their gradients by functions of their own.

Torch records nothing inside of such a call: its results are leaves of torch's graph. Each input with a gradient is a variable, or a result of
another such call. A backward pass runs torch's engine once, from the heads to these leaves, and then the calls in the reverse of their order. If
torch recorded an input, its engine would run there again for each such call, with a part of the gradient: functions whose gradients are not linear
in it, such as those of users, would return something else. Where a result itself must be in torch's graph, the call runs again, recorded by torch.
"""
from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import torch

from ..ops import differentiation
from ..ops.grad_mode import GradMode, no_grad
from . import memory_format
from .dispatch import Marked, TapeNode

_numbers = itertools.count()


class ExplicitCall(Protocol):
    """A call of a graph.

    Attributes
    ----------
    results : list of torch.Tensor and None
        Leaves that require gradients; None for each result without one.
    inputs : list of (int, torch.Tensor)
        The inputs with gradients, and their places.
    light : bool
        True if one thread computes it.
    """

    results: Sequence[torch.Tensor | None]
    inputs: Sequence[tuple[int, torch.Tensor]]
    light: bool

    def backward(self, gradients: Sequence[torch.Tensor | None], receive: Callable[[int, torch.Tensor], object],
                 lend: Callable[[int], torch.Tensor | None], keep: bool) -> None:
        """Compute the gradients of `inputs`, given those of the results; with `keep` it can be called again.

        ``receive(place, gradient)`` gets each as soon as it is complete. ``lend(place)`` returns memory in which it may be written, or None.
        """

    def reads(self) -> Sequence[torch.Tensor]:
        """Return all tensors that the call has read."""

    def again(self) -> Sequence[torch.Tensor]:
        """Return the results of another run, recorded by torch."""

    def free(self) -> None:
        """Release what `backward` and `again` need: from now on they raise a RuntimeError."""


class ExplicitNode(TapeNode):
    """A recorded `ExplicitCall`."""

    __slots__ = ("call", "light", "number")

    def __init__(self, op: Any, attrs: dict[str, Any], inputs: list, call: ExplicitCall) -> None:
        super().__init__(op, attrs, inputs)
        self.call, self.light, self.number = call, call.light, next(_numbers)


def accepts(info: Any, tensor: torch.Tensor) -> bool:
    """Return True if an array with this mark and tensor may be an input with a gradient: a variable, or a result of another explicit call."""
    return type(info) is Marked or info is not None and type(info.node) is ExplicitNode and info.node.call.results[info.index] is tensor


def backward(nodes: Iterable[ExplicitNode], heads: Sequence[torch.Tensor], seeds: Sequence[torch.Tensor], variables: Iterable[Marked],
             keep: bool) -> None:
    """Give `variables` the gradients of `heads`, which have the gradients `seeds`; `nodes` are all explicit calls on the way.

    With `keep` they can be differentiated again.

    Raises
    ------
    RuntimeError
        If a part of the computation was freed.
    """
    order = sorted(nodes, key=_number, reverse=True)
    sums: dict[int, torch.Tensor] = {}  # by the identity of results
    own = {id(result) for node in order for result in node.call.results}
    reads = [node.call.reads() for node in order]
    read: set[int] = set()  # of the identities of what the calls read, made when it is needed
    by_torch = [(head, seed) for head, seed in zip(heads, seeds) if id(head) not in own]
    try:
        for variable in variables:
            variable.partial = True
        waits = any([variable.finished is not None for variable in variables])
        awaited = {node: places for node in order if (places := _awaited(node))} if waits else {}
        for node, places in awaited.items():
            for place in places:
                node.inputs[place].expected += 1
        for head, seed in zip(heads, seeds):
            if id(head) in own:
                _add(sums, head, seed)
        if by_torch:
            differentiation.backward([head for head, _ in by_torch], [seed for _, seed in by_torch], True)

        def lend(info: Any) -> torch.Tensor | None:
            if not read:
                read.update(id(tensor) for tensors in reads for tensor in tensors)
            return _lendable(info, read)

        for node in order:
            gradients: list[torch.Tensor | None] = []
            for result in node.call.results:
                if result is not None and result.grad is not None:  # from torch
                    _add(sums, result, result.grad)
                    result.grad = None
                gradients.append(sums.pop(id(result), None))
            if any(gradient is not None for gradient in gradients):
                _backward_one(node, gradients, sums, lend, keep, awaited.get(node))
            for place in awaited.get(node, ()):  # `_backward_one` has removed those to which a gradient has come
                node.inputs[place].passed()
    finally:
        for variable in variables:
            variable.partial, variable.expected = False, 0
        for node in order:
            for result in node.call.results:
                if result is not None:
                    result.grad = None


def _awaited(node: ExplicitNode) -> set[int]:
    """Return the places of variables for whose gradients something waits."""
    infos = node.inputs
    return {place for place, _ in node.call.inputs if type(infos[place]) is Marked and infos[place].finished is not None}


def _backward_one(node: ExplicitNode, gradients: Sequence[torch.Tensor | None], sums: dict[int, torch.Tensor],
                  lend: Callable[[Any], torch.Tensor | None], keep: bool, awaited: set[int] | None) -> None:
    """Give the inputs of a call their gradients, and remove the places of those that have got them from `awaited`."""
    call, infos = node.call, node.inputs
    uses: collections.Counter[int] = collections.Counter()

    def receive(place: int, own: torch.Tensor) -> None:
        info = infos[place]
        if type(info) is not Marked:
            _add(sums, next(tensor for number, tensor in call.inputs if number == place), own)
        else:
            if awaited is not None:
                awaited.discard(place)
            info.receive(own)

    def lend_once(place: int) -> torch.Tensor | None:
        if not uses:
            uses.update(id(infos[place]) for place, _ in call.inputs)
        return lend(infos[place]) if uses[id(infos[place])] == 1 else None

    with no_grad():
        call.backward(gradients, receive, lend_once, keep)


def _add(sums: dict[int, torch.Tensor], result: torch.Tensor, gradient: torch.Tensor) -> None:
    before = sums.get(id(result))
    sums[id(result)] = gradient if before is None else before + gradient


def _number(node: ExplicitNode) -> int:
    return node.number


def _lendable(info: Any, read: set[int]) -> torch.Tensor | None:
    """Return the memory of a variable's last gradient if the next one may be computed there.

    `read` has the identities of what the calls of the same backward pass read, which may be a gradient.
    """
    if type(info) is not Marked or info.reached or info.lent or info.grad_req != "write" or id(info.grad._data) in read:
        return None
    return memory_format.reusable(info.grad)


def gradients(nodes: Iterable[ExplicitNode], heads: Sequence[torch.Tensor], variables: Sequence[torch.Tensor], seeds: Sequence[torch.Tensor],
              create_graph: bool) -> list[torch.Tensor | None]:
    """Return the gradients of `heads` for `variables`, None for those that they do not depend on; `nodes` are all explicit calls on the way.

    Raises
    ------
    RuntimeError
        As `backward`.
    """
    order = sorted(nodes, key=_number, reverse=True)
    wanted = [*variables, *[result for node in order for result in node.call.results if result is not None]]
    totals: list[torch.Tensor | None] = [None] * len(wanted)

    def add(outputs: Sequence[torch.Tensor], output_gradients: Sequence[torch.Tensor]) -> None:
        for i, gradient in enumerate(differentiation.gradients(outputs, wanted, output_gradients, True, create_graph)):
            if gradient is not None:
                total = totals[i]
                with GradMode(create_graph):
                    totals[i] = gradient if total is None else total + gradient

    add(heads, seeds)
    number = len(variables)
    for node in order:
        own: list[torch.Tensor | None] = []
        for result in node.call.results:
            own.append(None if result is None else totals[number])
            number += result is not None
        reached = [(i, total) for i, total in enumerate(own) if total is not None]
        if not reached:
            continue
        if create_graph:
            results = node.call.again()
            add([results[i] for i, _ in reached], [total for _, total in reached])
            continue
        tensors = dict(node.call.inputs)

        def receive(place: int, gradient: torch.Tensor, tensors: Mapping[int, torch.Tensor] = tensors) -> None:
            for i, tensor in enumerate(wanted):
                if tensor is tensors[place]:
                    before = totals[i]
                    totals[i] = gradient if before is None else before + gradient

        with no_grad():
            node.call.backward(own, receive, lambda place: None, True)
    return totals[:len(variables)]


def record_by_torch(array: Any) -> None:
    """Put an array that is a result of an explicit call into torch's graph, for functions of torch that differentiate it."""
    info = array._autograd
    if info is not None and isinstance(info.node, ExplicitNode) and info.node.call.results[info.index] is array._data:
        array._rebind(info.node.call.again()[info.index])
