"""Who runs a graph for inference on one device, with data of one set of shapes: a class for each state.

`GraphRunner._next` leads from one state to another. `graph_capture.Captured`, the state that only GPUs know, lies beside its mechanism, and
`comparison.Comparing` has a file of its own.
"""
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import torch

from ... import processor
from ...ndarray import dispatch
from ..backends.cpu.algorithms import algorithms
from ..instrumentation import instrumented
from ..program import Function, Program
from ..weight_guard import WeightGuard

FASTEST = "which proved the fastest"  # said where there was a contest


def run(function: Function, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """A graph's results, observed if somebody observes."""
    return (function if dispatch.graph_observer is None else instrumented(function))(*inputs)


class State(Protocol):
    """What all states have."""

    @property
    def function(self) -> Function:
        """What runs the graph."""

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Whether `function` may still run the graph on these inputs; if not, another state has to follow."""

    def explain(self) -> list[str]:
        """Lines of text for the user."""


class Native:
    """`native` runs the graph, for good."""

    def __init__(self, native: Function, why: str = ""):
        self.function, self._why = native, why

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        return True

    def explain(self) -> list[str]:
        return [f"native, {self._why}" if self._why else "native"]


class Warmup:
    """`native` runs the graph until that has taken as long as compiling would.

    Attributes
    ----------
    budget, spent, fastest : float
        Seconds: until it is compiled, in all calls so far, and in the fastest one. Threads that run the graph at once may lose each other's; that
        only makes it wait a little longer.
    """

    self_instrumented = True  # `function` reports to the observer itself

    def __init__(self, native: Function, budget: float):
        self._native, self.budget, self.spent, self.fastest = native, budget, 0.0, float("inf")

    def function(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        start = time.perf_counter()
        results = run(self._native, inputs)
        seconds = time.perf_counter() - start
        self.spent += seconds
        self.fastest = min(self.fastest, seconds)
        return results

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        return self.spent < self.budget

    def explain(self) -> list[str]:
        return [f"native, until it has taken {self.budget:.2f} s ({self.spent:.2f} s so far)"]


class Validating:
    """A compiled graph that has to prove itself in the program's own calls: in the first beside `native`, whose results count, in the others alone.

    Attributes
    ----------
    over : bool
        Whether it has been judged. If it does not hold although it is not over, a weight has changed.
    agrees : bool or None
        Whether it gave the results of `native`, once that is known.
    wins : bool
        Whether it gave these results, and was faster.
    waited : float
        For how many of the `seconds` that the calls took which count threads waited for a processor.

    Parameters
    ----------
    frozen : Compiled
    name : str
        The backend's.
    native : callable
    native_seconds : float
        What the fastest call took there so far.
    compare : callable
        ``compare(name, function, inputs, expected)`` tells whether a function gives these results.
    measured : callable
        ``measured(seconds)`` tells whether a list of times is long enough to judge by.
    """

    self_instrumented = True  # `function` reports to the observer itself

    def __init__(self, frozen: "Compiled", name: str, native: Function, native_seconds: float, compare: Callable, measured: Callable):
        self.frozen, self._name, self._native, self._native_seconds = frozen, name, native, native_seconds
        self._compare, self._measured = compare, measured
        self.agrees: bool | None = None
        self.waited = 0.0
        self._seconds: list[float] = []

    def function(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        if self.agrees:
            waited, start = processor.waited(), time.perf_counter()
            results = run(self.frozen.function, inputs)
            self._seconds.append(time.perf_counter() - start)
            self.waited += max(processor.waited() - waited, 0.0)
            return results
        start = time.perf_counter()
        results = run(self._native, inputs)
        self._native_seconds = min(self._native_seconds, time.perf_counter() - start)
        if self.agrees is None:
            self.agrees = self._compare(self._name, self.frozen.function, inputs, results)
        return results

    @property
    def seconds(self) -> float:
        return sum(self._seconds)

    @property
    def is_decided(self) -> bool:
        return self.agrees is False or bool(self.agrees) and self._measured(self._seconds)

    @property
    def native_reason(self) -> str:
        """Why `native` stays, where it does."""
        return FASTEST if self.agrees else f"since {self._name} gives other results"

    @property
    def is_faster(self) -> bool:
        return bool(self.agrees) and min(self._seconds) < self._native_seconds

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        return not self.is_decided and self.frozen.holds(inputs)

    def explain(self) -> list[str]:
        return [f"{self._name}, on trial: {len(self._seconds)} calls", *self.frozen.explain()]


class Compiled:
    """A compiled graph with its weights built in, until one of them changes.

    Parameters
    ----------
    function : callable
    inputs : list of torch.Tensor
        Those that it was compiled with.
    weights : iterable of int
        The positions of those that are built in.
    program : Program
        What was compiled.
    name : str
        The backend's.
    """

    def __init__(self, function: Function, inputs: Sequence[torch.Tensor], weights: Iterable[int], program: Program, name: str = ""):
        self.function, self.program, self.name = function, program, name
        self.positions = list(weights)
        self.weights = WeightGuard([inputs[i] for i in self.positions])

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Whether these inputs hold the weights that it was compiled with, unchanged."""
        return self.weights.holds(list(map(inputs.__getitem__, self.positions)))

    def explain(self) -> list[str]:
        return [*self.program.report, *algorithms(self.program.module), *(["out of date: a weight was written to"] if self.weights.stale else [])]
