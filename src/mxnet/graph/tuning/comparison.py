"""A compiled graph and a rival that may be faster, in the program's own calls.

Nobody can tell beforehand whether OpenVINO or the backend `kernels`, which multiplies less, is faster: that depends on layers, batch, processor and
threads. The one that won first, the holder, runs until it has taken as long as compiling the rival. Then the rival is compiled, and its layers
run one after another beside several calls, of which each takes about twice as long: each layer looks for its fastest algorithm then, and weights are
transformed. If the results agree, both take turns of some calls, the rival first, which count by their medians. The loser goes, with its copy of the
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
from ...kernels.conv.prepacked_conv import PrepackedConv
from ...kernels.gemm.prepacked_skinny import Dense
from ...kernels.runtime.tuning import quiet
from ...ndarray import dispatch
from ...ops.grad_mode import no_grad
from ..backends.cpu.batch_tiling import targets
from .inference_states import Frozen, run

_log = logging.getLogger(__name__)
_TURN = 4  # calls, at least, of which the first does not count: OpenVINO ends torch's threads, and the caches hold the other one's weights
_SECONDS, _MOST = 0.1, 50  # of a turn: what other machines of the host do to a call of 4 ms, they do to the next four, too; calls, at most
LONG, _TURN_OF_LONG = 0.25, 2  # calls of so many seconds vary less, and how they begin does not matter
_PAIRS = 3  # turns of each, unless one is clearly behind after the first ones
_FAR, _BEHIND = 0.85, 1.1  # times the holder's time: a rival that takes no more has won before, and one that takes more has lost
_CLEARLY = 0.96  # of the other's time: who is less ahead where other programs ran may be so by chance


class Rivalry:
    """The state of a compiled graph whose rival has not been judged yet.

    Attributes
    ----------
    winner : Frozen or None
        Who runs the graph from now on, once that is decided.

    Parameters
    ----------
    holder : Frozen
    name : str
        The rival's.
    budget : float
        For how many seconds the holder runs before the rival is compiled.
    compile : callable
        ``compile(inputs)`` is the rival, a `Frozen`.
    agree : callable
        ``agree(found, expected)`` tells whether these are the same results.
    keep : callable, optional
        ``keep(name, seconds, waited, sure)`` keeps who won for other processes, and says what became of it; see `winners.Record.keep`.

    Several threads may run it: one of them at a time races, the others run the holder.
    """

    tells = True  # `function` tells the observer itself

    def __init__(self, holder: Frozen, name: str, budget: float, compile: Callable, agree: Callable, keep: Callable | None = None):
        self.holder, self.name, self.budget, self.spent = holder, name, budget, 0.0
        self.winner: Frozen | None = None
        self._compile, self._agree, self._keep = compile, agree, keep
        self._rival: Frozen | None = None
        self._pieces: Iterator | None = None  # the rival's first run, on copies of the data of one call
        self._expected: list[torch.Tensor] = []  # what the holder made of these
        self._turn, self._calls = _TURN, 0  # calls of a turn, and in turns so far
        self._seconds: tuple[list[float], list[float]] = [], []  # of the rival and the holder, in the calls that count
        self._alone = math.inf  # the holder's fastest call before the turns
        self._waited = 0.0  # of these, threads for a processor
        self._lock = threading.Lock()

    def function(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        # What is observed takes longer than usual.
        if self.winner is not None or dispatch.graph_observer is not None or self._lock.locked():
            return run(self.holder.function, inputs)
        with self._lock:  # a thread that came at the same moment waits here for one call, once
            if self.winner is not None:
                return self.holder.function(*inputs)
            return self._beside(inputs) if self._rival is None or self._pieces is not None else self._in_turn(inputs, self._rival)

    def _beside(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """A call of the holder, and after it a part of what the rival needs before it can race."""
        start = time.perf_counter()
        found = self.holder.function(*inputs)
        end = time.perf_counter()
        self.spent += end - start
        self._alone = min(self._alone, end - start)
        if self.spent < self.budget:
            return found
        try:
            with no_grad():
                if self._rival is None:
                    rival = self._compile(inputs)
                    fixed = set(self.holder.positions)
                    self._turn = _TURN_OF_LONG if end - start > LONG else min(max(math.ceil(_SECONDS / max(end - start, 1e-6)), _TURN), _MOST)
                    self._expected = [t.clone() for t in found]
                    self._pieces = _pieces(rival.program.module, [t if i in fixed else t.clone() for i, t in enumerate(inputs)])
                    self._rival = rival
                else:
                    self._go_on(2 * end - start)
        except Exception as error:  # whatever goes wrong with the rival, the graph still runs
            self._fails(error)
        return found

    def _go_on(self, until: float) -> None:
        """The next layers of the rival's first run, until that time."""
        for results in self._pieces or ():
            if results is not None:
                if not self._agree(results, self._expected):
                    self._decide(self.holder, "gives other results")
                self._pieces, self._expected = None, []
                return
            if time.perf_counter() >= until:
                return
        # A Ctrl-C in the call before has ended the run.
        self._rival, self._pieces, self._expected = None, None, []

    def _in_turn(self, inputs: Sequence[torch.Tensor], rival: Frozen) -> Sequence[torch.Tensor]:
        """A call of whoever's turn it is."""
        turn, number = divmod(self._calls, self._turn)
        self._calls += 1
        seconds = self._seconds[turn % 2]
        waited, start = processor.waited(), time.perf_counter()
        if turn % 2:
            found = self.holder.function(*inputs)
        else:
            try:
                found = rival.function(*inputs)
            except Exception as error:
                self._fails(error)
                return self.holder.function(*inputs)
        if number:
            seconds.append(time.perf_counter() - start)
            self._waited += max(processor.waited() - waited, 0.0)  # some threads, and what they have waited, may be gone
        if self._calls % self._turn == 0 and self._seconds[0]:
            self._judge(rival)
        return found

    def _judge(self, rival: Frozen) -> None:
        """Decide after a turn, if that is possible by now: after the rival's first one, if that was far ahead of all calls before."""
        challenged = statistics.median(self._seconds[0])
        held = statistics.median(self._seconds[1]) if self._seconds[1] else self._alone
        first, pair = self._calls == self._turn, self._calls % (2 * self._turn) == 0
        far, behind = challenged <= held * _FAR, challenged > held * _BEHIND
        if not (far and (first or pair) or pair and (behind or self._calls >= 2 * self._turn * _PAIRS)):
            return
        measured = sum(map(sum, self._seconds))
        # Level, the rival is the better choice: it holds a copy of the weights less, and the next process does not import the holder.
        ahead = challenged < (1 if quiet(measured, self._waited) else _CLEARLY) * held
        winner = rival if ahead else self.holder
        self._decide(winner, f"{challenged * 1e3:.3g} ms a call, {self.holder.name} {held * 1e3:.3g} "
                     f"(medians of {len(self._seconds[0])}){'' if ahead or challenged >= held else ', not clearly ahead'}")
        if self._keep is not None:
            winner.program.note(f"{winner.name}: {self._keep(winner.name, measured, self._waited, far or behind)}")

    def _fails(self, error: Exception) -> None:
        _log.info("graph: %s fails: %s", self.name, error)
        self._decide(self.holder, f"fails, {type(error).__name__}: {error}".splitlines()[0])

    def _decide(self, winner: Frozen, why: str) -> None:
        winner.program.note(f"{self.name}: {why}")
        _log.info("graph: %s: %s", self.name, why)
        if self._rival is not None and self._rival is not winner:
            for target in targets(self._rival.program.graph):
                if isinstance(target, (PrepackedConv, Dense)):
                    target.release()  # graphs are cycles, which go when the collector comes
        self._rival, self._pieces, self._expected, self.winner = None, None, [], winner

    def release(self) -> None:
        """Let the loser go, now that the winner stands in this state's place: its memory goes back to the system."""
        self.holder = self.winner or self.holder
        memory.trim()

    def holds(self, inputs: Sequence[torch.Tensor]) -> bool:
        return self.winner is None and self.holder.holds(inputs)

    def explain(self) -> list[str]:
        if self.spent < self.budget:
            waits = f"until it has taken {self.budget:.2f} s ({self.spent:.2f} s so far); then {self.name} races with it"
        else:
            waits = f"racing with {self.name}: {self._calls} calls in turns"
        return [f"{self.holder.name}, {waits}", *self.holder.explain()]


def _pieces(module: fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Iterator:
    """Run a graph node by node: None after each, and its results at the end."""
    run = fx.Interpreter(module)
    run.args_iter = iter(inputs)
    for node in module.graph.nodes:
        run.env[node] = found = run.run_node(node)
        for done in run.user_to_last_uses.get(node, ()):
            del run.env[done]
        yield found if node.op == "output" else None
