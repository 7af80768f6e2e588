"""Comparison of a compiled graph with a candidate that may be faster, in the program's own calls.

It is not known beforehand whether OpenVINO or the backend `kernels`, which needs fewer multiplications, is faster: that depends on layers,
batch, processor and threads. The incumbent, which was compiled first, runs until it has taken as long as compiling the candidate would. Then
the candidate is compiled, and its layers run one after another beside several calls, each of which takes about twice as long: in this first run
each layer selects its fastest algorithm, and weights are transformed. If the results agree, both run in alternating turns of some calls, the
candidate first, and the medians are compared. The slower one is released, with its copy of the weights.
"""
import logging
import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import fx

from ... import memory, processor
from ...kernels.conv.prepacked_conv import PrepackedConv
from ...kernels.gemm.prepacked_skinny import Dense
from ...kernels.runtime.measurement import CALL, CALL_BESIDE_OTHERS, is_quiet
from ...ndarray import dispatch
from ...ops.grad_mode import no_grad
from ..backends.cpu.batch_tiling import targets
from .inference_states import Compiled, run

_log = logging.getLogger(__name__)
_TURN = 4  # least calls of a turn; the first is not timed: OpenVINO ends torch's threads, and the caches hold the other backend's weights
_SECONDS, _MOST = 0.1, 50  # duration of a turn, since disturbances by other machines of the host outlast calls of 4 ms; most calls of a turn
LONG, _TURN_OF_LONG = 0.25, 2  # calls of so many seconds vary less, and their first one may be timed; calls of such a turn


class Comparing:
    """The state of a compiled graph that is compared with a candidate.

    Attributes
    ----------
    choice : Compiled or None
        The compiled graph for all further calls, once the comparison is decided.

    Parameters
    ----------
    incumbent : Compiled
    name : str
        The candidate's name.
    budget : float
        The seconds that the incumbent runs before the candidate is compiled.
    compile : callable
        ``compile(inputs)`` returns the candidate, a `Compiled`.
    agree : callable
        ``agree(results, expected)`` returns True if these are the same up to rounding.
    store : callable, optional
        ``store(name, seconds, waited, sure)`` caches the choice and returns the outcome as text; see `cache.CacheEntry.store`.

    Several threads may run it: one at a time does the measurements, the others run the incumbent.
    """

    self_instrumented = True  # `function` reports to the observer itself

    def __init__(self, incumbent: Compiled, name: str, budget: float, compile: Callable, agree: Callable, store: Callable | None = None):
        self.incumbent, self.name, self.budget, self.spent = incumbent, name, budget, 0.0
        self.choice: Compiled | None = None
        self._compile, self._agree, self._store = compile, agree, store
        self._candidate: Compiled | None = None
        self._first_run: Iterator | None = None  # the candidate's first run, on copies of the data of one call
        self._expected: list[torch.Tensor] = []  # the incumbent's results of that call
        self._turn, self._calls = _TURN, 0  # calls of a turn, and in turns so far
        self._seconds: tuple[list[float], list[float]] = [], []  # of the candidate and the incumbent, in the calls that count
        self._incumbent_best = math.inf  # the incumbent's fastest call before the turns
        self._waited = 0.0  # the part of these seconds that threads waited for a processor
        self._lock = threading.Lock()

    def function(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        # Instrumented calls take longer than others, and are not timed.
        if self.choice is not None or dispatch.graph_observer is not None or self._lock.locked():
            return run(self.incumbent.function, inputs)
        with self._lock:  # a thread that arrives at the same moment waits for one call, once
            if self.choice is not None:
                return self.incumbent.function(*inputs)
            if self._candidate is None or self._first_run is not None:
                return self._prepare_candidate(inputs)
            return self._timed_call(inputs, self._candidate)

    def _prepare_candidate(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """Run the incumbent, then compile the candidate or continue its first run."""
        start = time.perf_counter()
        results = self.incumbent.function(*inputs)
        end = time.perf_counter()
        self.spent += end - start
        self._incumbent_best = min(self._incumbent_best, end - start)
        if self.spent < self.budget:
            return results
        try:
            with no_grad():
                if self._candidate is None:
                    candidate = self._compile(inputs)
                    fixed = set(self.incumbent.positions)
                    self._turn = _TURN_OF_LONG if end - start > LONG else min(max(math.ceil(_SECONDS / max(end - start, 1e-6)), _TURN), _MOST)
                    self._expected = [t.clone() for t in results]
                    self._first_run = _run_stepwise(candidate.program.module, [t if i in fixed else t.clone() for i, t in enumerate(inputs)])
                    self._candidate = candidate
                else:
                    self._continue_first_run(2 * end - start)
        except Exception as error:  # the candidate's failure must not prevent the run
            self._reject(error)
        return results

    def _continue_first_run(self, until: float) -> None:
        """Run the next layers of the candidate's first run, until that time; compare its results at the end."""
        for results in self._first_run or ():
            if results is not None:
                if not self._agree(results, self._expected):
                    self._decide(self.incumbent, "gives other results")
                self._first_run, self._expected = None, []
                return
            if time.perf_counter() >= until:
                return
        # The first run was interrupted by a Ctrl-C in the call before: it starts again.
        self._candidate, self._first_run, self._expected = None, None, []

    def _timed_call(self, inputs: Sequence[torch.Tensor], candidate: Compiled) -> Sequence[torch.Tensor]:
        """Run and time the backend whose turn it is."""
        turn, number = divmod(self._calls, self._turn)
        self._calls += 1
        seconds = self._seconds[turn % 2]
        waited, start = processor.waited(), time.perf_counter()
        if turn % 2:
            results = self.incumbent.function(*inputs)
        else:
            try:
                results = candidate.function(*inputs)
            except Exception as error:
                self._reject(error)
                return self.incumbent.function(*inputs)
        if number:
            seconds.append(time.perf_counter() - start)
            self._waited += max(processor.waited() - waited, 0.0)  # some threads, and what they have waited, may be gone
        if self._calls % self._turn == 0 and self._seconds[0]:
            self._evaluate(candidate)
        return results

    def _evaluate(self, candidate: Compiled) -> None:
        """Decide at the end of a turn, if the measurements suffice: after the candidate's first turn only if it was far ahead of all calls before."""
        candidate_time = statistics.median(self._seconds[0])
        incumbent_time = statistics.median(self._seconds[1]) if self._seconds[1] else self._incumbent_best
        first, pair = self._calls == self._turn, self._calls % (2 * self._turn) == 0
        far, behind = candidate_time <= incumbent_time * CALL.far, candidate_time > incumbent_time * CALL.behind
        if not (far and (first or pair) or pair and (behind or self._calls >= 2 * self._turn * CALL.most)):
            return
        measured = sum(map(sum, self._seconds))
        policy = CALL if is_quiet(measured, self._waited) else CALL_BESIDE_OTHERS
        ahead = candidate_time < policy.lead * incumbent_time
        choice = candidate if ahead else self.incumbent
        self._decide(choice, f"{candidate_time * 1e3:.3g} ms a call, {self.incumbent.name} {incumbent_time * 1e3:.3g} "
                     f"(medians of {len(self._seconds[0])}){'' if ahead or candidate_time >= incumbent_time else ', not clearly ahead'}")
        if self._store is not None:
            choice.program.note(f"{choice.name}: {self._store(choice.name, measured, self._waited, far or behind)}")

    def _reject(self, error: Exception) -> None:
        _log.info("graph: %s fails: %s", self.name, error)
        self._decide(self.incumbent, f"fails, {type(error).__name__}: {error}".splitlines()[0])

    def _decide(self, choice: Compiled, why: str) -> None:
        choice.program.note(f"{self.name}: {why}")
        _log.info("graph: %s: %s", self.name, why)
        if self._candidate is not None and self._candidate is not choice:
            for target in targets(self._candidate.program.graph):
                if isinstance(target, (PrepackedConv, Dense)):
                    target.release()  # at once: graphs are reference cycles, which wait for the garbage collector
        self._candidate, self._first_run, self._expected, self.choice = None, None, [], choice

    def release(self) -> None:
        """Release the slower graph, after the choice has replaced this state, and return its memory to the system."""
        self.incumbent = self.choice or self.incumbent
        memory.trim()

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        return self.choice is None and self.incumbent.holds(inputs)

    def explain(self) -> list[str]:
        if self.spent < self.budget:
            waits = f"until it has taken {self.budget:.2f} s ({self.spent:.2f} s so far); then {self.name} races with it"
        else:
            waits = f"racing with {self.name}: {self._calls} calls in turns"
        return [f"{self.incumbent.name}, {waits}", *self.incumbent.explain()]


def _run_stepwise(module: fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Iterator:
    """Run a graph node by node: yield None after each node, and the results at the end."""
    run = fx.Interpreter(module)
    run.args_iter = iter(inputs)
    for node in module.graph.nodes:
        run.env[node] = value = run.run_node(node)
        for done in run.user_to_last_uses.get(node, ()):
            del run.env[done]
        yield value if node.op == "output" else None
