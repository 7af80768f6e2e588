"""The states of inference on one device with data of one set of shapes: each state has the function that runs the graph.

`GraphRunner._next` has all transitions. `graph_capture.Captured`, the state of graphs on GPUs, lies beside its mechanism, and
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

FASTEST = "which proved the fastest"  # the reason after a comparison


def run(function: Function, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """Return a graph's results; the calls are reported if an observer is set."""
    return (function if dispatch.graph_observer is None else instrumented(function))(*inputs)


class State(Protocol):
    """The interface of all states."""

    @property
    def function(self) -> Function:
        """The function that runs the graph."""

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Return True if `function` may run the graph on these inputs; if not, another state has to follow."""

    def explain(self) -> list[str]:
        """Return a description of the state, as lines of text for the user."""


class Native:
    """The final state of graphs that run on `native`."""

    def __init__(self, native: Function, why: str = ""):
        self.function, self._why = native, why

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        return True

    def explain(self) -> list[str]:
        return [f"native, {self._why}" if self._why else "native"]


class Warmup:
    """The state in which `native` runs the graph until it has taken as long as compilation would.

    Attributes
    ----------
    budget, spent, fastest : float
        Seconds: the limit, the sum of all calls so far, and the fastest call. Concurrent threads may lose each other's updates; that
        only prolongs the warm-up a little.
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
    """The state in which a compiled graph is validated: its first call is compared with `native`, whose results are returned; the next are timed.

    Attributes
    ----------
    is_decided : bool
        True once the results are known to differ, or enough calls are timed. If `holds` is False before that, a weight has changed.
    agrees : bool or None
        True if the results were those of `native`; None before the first call.
    is_faster : bool
        True if the results agree, and the fastest call was faster than that of `native`.
    waited : float
        The part of `seconds`, the time of the timed calls, that threads waited for a processor.

    Parameters
    ----------
    frozen : Compiled
    name : str
        The backend's.
    native : callable
    native_seconds : float
        The time of the fastest call of `native` so far.
    compare : callable
        ``compare(name, function, inputs, expected)`` returns True if the function gives the expected results.
    measured : callable
        ``measured(seconds)`` returns True if a list of times is long enough for a decision.
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
        """The reason why `native` runs the graph, if it does."""
        return FASTEST if self.agrees else f"since {self._name} gives other results"

    @property
    def is_faster(self) -> bool:
        return bool(self.agrees) and min(self._seconds) < self._native_seconds

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        return not self.is_decided and self.frozen.holds(inputs)

    def explain(self) -> list[str]:
        return [f"{self._name}, on trial: {len(self._seconds)} calls", *self.frozen.explain()]


class Compiled:
    """The state of a compiled graph with constant weights; it holds until a weight changes.

    Parameters
    ----------
    function : callable
    inputs : list of torch.Tensor
        The inputs of the compilation.
    weights : iterable of int
        The positions of the inputs that are compiled in.
    program : Program
        The compiled program.
    name : str
        The backend's.
    """

    def __init__(self, function: Function, inputs: Sequence[torch.Tensor], weights: Iterable[int], program: Program, name: str = ""):
        self.function, self.program, self.name = function, program, name
        self.positions = list(weights)
        self.weights = WeightGuard([inputs[i] for i in self.positions])

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Return True if these inputs hold the weights of the compilation, unchanged."""
        return self.weights.holds(list(map(inputs.__getitem__, self.positions)))

    def explain(self) -> list[str]:
        return [*self.program.report, *algorithms(self.program.module), *(["out of date: a weight was written to"] if self.weights.stale else [])]
