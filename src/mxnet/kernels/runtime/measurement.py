"""The one place that measures and decides: benchmarks of equivalent functions, and the named thresholds of all choices by time.

Layers on CPUs (`tuning.Autotuner`) and GPUs (`graph.backends.cuda.scoring_layers`) and whole graphs (`graph.tuning`) choose by these policies, which
differ in what a wrong choice costs, how long a run takes, and how much its time varies. The statistic is the least time, since disturbances only
add to it; `graph.tuning.comparison`, which measures the program's own calls for seconds, takes medians.
"""
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import torch

from ... import processor

cuda: Any = torch.cuda  # replaced in tests
_RUNS = 4  # runs in one measurement on a GPU
_AHEAD = 500_000  # cycles (a quarter of a millisecond) that the GPU waits first, so that launching is not measured
_QUIET = 0.1  # of the measured time: if threads waited longer than this for a processor, other programs distorted the benchmark (OpenVINO's and
# torch's threads make each other wait for a twentieth of the time where they take turns)
Run = TypeVar("Run")


class Policy(NamedTuple):
    """The rules of a choice by time.

    Attributes
    ----------
    least, most : int
        The number of measurements of a candidate: at least `least`, unless they take `plenty`; at most `most`.
    enough, plenty : float
        Seconds, the sum of one candidate's measurements: after `enough` no more than `least` are made, after `plenty` no further one.
    lead : float
        Times the first candidate's time: another one is chosen below this product only. The first one needs less memory or no compilation.
    hopeless : float
        Times the least time: a candidate that takes longer is not measured again.
    far, behind : float
        Times the first candidate's time: another one's time up to the first product, or above the second, decides without further measurements,
        and the load of other programs cannot explain it.
    """

    least: int
    most: int
    enough: float = math.inf
    plenty: float = math.inf
    lead: float = 1.0
    hopeless: float = math.inf
    far: float = 0.0
    behind: float = math.inf

    def suffices(self, seconds: Sequence[float]) -> bool:
        """Return True if these measurements of a candidate are enough for a decision."""
        count, total = len(seconds), sum(seconds)
        return count >= self.most or total >= self.plenty or count >= self.least and total >= self.enough

    def fastest(self, times: Mapping[str, float]) -> str:
        """Return the name of the least time, or the first name if no other is far enough ahead.

        Example
        -------
        >>> LAYER.fastest({"direct": 1.0, "winograd": 0.95}), LAYER.fastest({"direct": 1.0, "winograd": 0.9})
        ('direct', 'winograd')
        """
        first, least = next(iter(times)), min(times, key=times.__getitem__)
        return least if times[least] < self.lead * times[first] else first

    def is_sure(self, name: str, times: Mapping[str, float]) -> bool:
        """Return True if `name` is so far ahead of all others that the load of other programs cannot explain it."""
        return all(times[name] < self.far * seconds for other, seconds in times.items() if other != name)


# A layer on the CPU, by the time of its thread: a smaller lead may be noise, and the program waits for all layers.
LAYER = Policy(least=1, most=3, enough=0.03, lead=0.93, hopeless=1.5, far=0.83)
# A layer on a GPU, by the GPU's clock, which other programs hardly disturb.
GPU_LAYER = Policy(least=2, most=2, lead=0.97)
# A call of a graph: short ones vary more than long ones, of which a single one suffices.
GRAPH = Policy(least=3, most=50, enough=0.005, plenty=0.3)
# A call of a graph among the program's own calls. At equal speed the candidate is preferred, which saves a copy of the weights.
CALL = Policy(least=1, most=3, far=0.85, behind=1.1)
# The same where other programs ran, so that the difference is not chance.
CALL_BESIDE_OTHERS = CALL._replace(lead=0.96)
# A training step of a graph, which is compiled for much longer than it runs.
STEP = Policy(least=3, most=3)


def is_quiet(seconds: float, waited: float) -> bool:
    """Return True if a measurement was not distorted by other programs.

    Parameters
    ----------
    seconds, waited : float
        The duration of the measurement, and the time that threads of this process waited for a processor during it.
    """
    return waited <= _QUIET * seconds


def timed(function: Callable[..., Run], inputs: Sequence = ()) -> tuple[float, Run]:
    """Return the seconds that a call takes, and its result."""
    start = time.perf_counter()
    result = function(*inputs)
    return time.perf_counter() - start, result


def thread_seconds(run: Callable[[], object]) -> float:
    """Return the seconds that this thread computes in a call, which other programs on the processor do not lengthen."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


def gpu_milliseconds(run: Callable[[], object]) -> float:
    """Return a GPU's time for some runs, in milliseconds by its own clock."""
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    cuda._sleep(_AHEAD)
    start.record()
    for _ in range(_RUNS):
        run()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end))


class Outcome(NamedTuple):
    """The result of a benchmark.

    Attributes
    ----------
    times : dict of str to float
        The least time of each candidate, in the clock's unit.
    seconds, waited : float
        The duration of the benchmark, and the time in it that threads of this process waited for a processor.
    """

    times: dict[str, float]
    seconds: float
    waited: float

    @property
    def is_quiet(self) -> bool:
        return is_quiet(self.seconds, self.waited)


def benchmark(runs: Mapping[str, Any], clock: Callable[[Any], Sequence[float]], policy: Policy) -> Outcome:
    """Measure candidates in turns.

    Parameters
    ----------
    runs : mapping of str to callable
        The candidates by name, the preferred one first. They have run before, so that no measurement includes preparations.
    clock : callable
        ``clock(run)`` runs a candidate once or more, and returns the time of each run, in any unit.
    policy : Policy
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    best = dict.fromkeys(runs, math.inf)
    waited, begin = processor.waited(), time.perf_counter()
    while not policy.suffices(times[min(best, key=best.__getitem__)]):
        limit = policy.hopeless * (min(best.values()) or math.inf)  # a clock may be too coarse for a run
        for name in [n for n in runs if best[n] <= limit]:
            times[name] += clock(runs[name])
            best[name] = min(times[name])
    return Outcome(best, time.perf_counter() - begin, max(processor.waited() - waited, 0.0))  # some threads, and what they waited, may be gone
