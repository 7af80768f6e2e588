"""A compiled graph and a candidate that may be faster, in the program's own calls.

Nobody can tell beforehand whether OpenVINO or the backend `kernels`, which multiplies less, is faster: that depends on layers, batch, processor and
threads. The one that won first, the incumbent, runs until it has taken as long as compiling the candidate. Then the candidate is compiled, and its layers
run one after another beside several calls, of which each takes about twice as long: each layer looks for its fastest algorithm then, and weights are
transformed. If the results agree, both take turns of some calls, the candidate first, which count by their medians. The loser goes, with its copy of the
weights.
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
from ...kernels.conv.prepacked_conv import Kept
from ...kernels.gemm.prepacked_skinny import Dense
from ...kernels.runtime.tuning import quiet
from ...ndarray import dispatch
from ...ops.grad_mode import no_grad
from ..backends.cpu.batch_tiling import targets
from .inference_states import Compiled, run

_log = logging.getLogger(__name__)
_TURN = 4  # calls, at least, of which the first does not count: OpenVINO ends torch's threads, and the caches hold the other one's weights
_SECONDS, _MOST = 0.1, 50  # of a turn: what other machines of the host do to a call of 4 ms, they do to the next four, too; calls, at most
LONG, _TURN_OF_LONG = 0.25, 2  # calls of so many seconds vary less, and how they begin does not matter
_PAIRS = 3  # turns of each, unless one is clearly behind after the first ones
_FAR, _BEHIND = 0.85, 1.1  # times the incumbent's time: a candidate that takes no more has won before, and one that takes more has lost
_CLEARLY = 0.96  # of the other's time: who is less ahead where other programs ran may be so by chance


class Comparing:
    """The state of a compiled graph whose candidate has not been judged yet.

    Attributes
    ----------
    choice : Compiled or None
        Who runs the graph from now on, once that is decided.

    Parameters
    ----------
    incumbent : Compiled
    name : str
        The candidate's.
    budget : float
        For how many seconds the incumbent runs before the candidate is compiled.
    compile : callable
        ``compile(inputs)`` is the candidate, a `Compiled`.
    agree : callable
        ``agree(found, expected)`` tells whether these are the same results.
    store : callable, optional
        ``store(name, seconds, waited, sure)`` keeps who won for other processes, and says what became of it; see `winners.CacheEntry.store`.

    Several threads may run it: one of them at a time races, the others run the incumbent.
    """

    self_instrumented = True  # `function` reports to the observer itself

    def __init__(self, incumbent: Compiled, name: str, budget: float, compile: Callable, agree: Callable, store: Callable | None = None):
        self.incumbent, self.name, self.budget, self.spent = incumbent, name, budget, 0.0
        self.choice: Compiled | None = None
        self._compile, self._agree, self._store = compile, agree, store
        self._candidate: Compiled | None = None
        self._first_run: Iterator | None = None  # the candidate's first run, on copies of the data of one call
        self._expected: list[torch.Tensor] = []  # what the incumbent made of these
        self._turn, self._calls = _TURN, 0  # calls of a turn, and in turns so far
        self._seconds: tuple[list[float], list[float]] = [], []  # of the candidate and the incumbent, in the calls that count
        self._incumbent_best = math.inf  # the incumbent's fastest call before the turns
        self._waited = 0.0  # of these, threads for a processor
        self._lock = threading.Lock()

    def function(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        # What is observed takes longer than usual.
        if self.choice is not None or dispatch.graph_observer is not None or self._lock.locked():
            return run(self.incumbent.function, inputs)
        with self._lock:  # a thread that came at the same moment waits here for one call, once
            if self.choice is not None:
                return self.incumbent.function(*inputs)
            return self._prepare_candidate(inputs) if self._candidate is None or self._first_run is not None else self._timed_call(inputs, self._candidate)

    def _prepare_candidate(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """A call of the incumbent, and after it a part of what the candidate needs before it can race."""
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
        except Exception as error:  # whatever goes wrong with the candidate, the graph still runs
            self._reject(error)
        return results

    def _continue_first_run(self, until: float) -> None:
        """The next layers of the candidate's first run, until that time."""
        for results in self._first_run or ():
            if results is not None:
                if not self._agree(results, self._expected):
                    self._decide(self.incumbent, "gives other results")
                self._first_run, self._expected = None, []
                return
            if time.perf_counter() >= until:
                return
        # A Ctrl-C in the call before has ended the run.
        self._candidate, self._first_run, self._expected = None, None, []

    def _timed_call(self, inputs: Sequence[torch.Tensor], candidate: Compiled) -> Sequence[torch.Tensor]:
        """A call of whoever's turn it is."""
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
        """Decide after a turn, if that is possible by now: after the candidate's first one, if that was far ahead of all calls before."""
        candidate_time = statistics.median(self._seconds[0])
        incumbent_time = statistics.median(self._seconds[1]) if self._seconds[1] else self._incumbent_best
        first, pair = self._calls == self._turn, self._calls % (2 * self._turn) == 0
        far, behind = candidate_time <= incumbent_time * _FAR, candidate_time > incumbent_time * _BEHIND
        if not (far and (first or pair) or pair and (behind or self._calls >= 2 * self._turn * _PAIRS)):
            return
        measured = sum(map(sum, self._seconds))
        # Level, the candidate is the better choice: it holds a copy of the weights less, and the next process does not import the incumbent.
        ahead = candidate_time < (1 if quiet(measured, self._waited) else _CLEARLY) * incumbent_time
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
                if isinstance(target, (Kept, Dense)):
                    target.release()  # graphs are cycles, which go when the collector comes
        self._candidate, self._first_run, self._expected, self.choice = None, None, [], choice

    def release(self) -> None:
        """Let the loser go, now that the choice stands in this state's place: its memory goes back to the system."""
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
    """Run a graph node by node: None after each, and its results at the end."""
    run = fx.Interpreter(module)
    run.args_iter = iter(inputs)
    for node in module.graph.nodes:
        run.env[node] = value = run.run_node(node)
        for done in run.user_to_last_uses.get(node, ()):
            del run.env[done]
        yield value if node.op == "output" else None
