"""The size of batches, chosen from what batches of each size were measured to take."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from .settings import Batching

_PADDED = 1.05  # padding has to save more than what measurements vary by
_WORTH = 0.98  # a smaller batch is chosen if it reaches so much of the best throughput


class Curve:
    """Seconds that batches of some sizes take, and what follows from them.

    Parameters
    ----------
    seconds : dict of int to float
        By number of rows; 1 is among them.

    Attributes
    ----------
    largest : int
        The most rows that run at once.

    Example
    -------
    >>> from mxnet.serve.curve import Curve
    >>> Curve({1: 10.0, 2: 11.0, 4: 12.0}).size(3)      # four rows take less time than two and one
    4
    >>> Curve({1: 10.0, 2: 19.0, 4: 38.0}).size(3)      # they take more: two now, the third with what has come meanwhile
    2
    """

    def __init__(self, seconds: Mapping[int, float]) -> None:
        self.seconds = dict(sorted(seconds.items()))
        self.largest = max(self.seconds)
        self._first, total = [0], [0.0]
        for rows in range(1, self.largest + 1):
            costs = {size: took * (_PADDED if size > rows else 1) + total[max(0, rows - size)] for size, took in self.seconds.items()}
            best = min(costs, key=lambda size: (costs[size], abs(rows - size)))
            self._first.append(best)
            total.append(costs[best])

    def size(self, rows: int) -> int:
        """Return the size of the first of the batches that run so many rows in the least time; it may exceed `rows`, and then is to be padded."""
        return self._first[min(rows, self.largest)]

    def throughput(self) -> float:
        """Return rows per second of the largest batch."""
        return self.largest / self.seconds[self.largest]


def measured(time_of: Callable[[int], float], batching: Batching) -> Curve:
    """Return the curve of sizes that are worth running.

    Sizes double for as long as two batches fit into the bound and throughput still rises.

    Parameters
    ----------
    time_of : callable
        Seconds that a batch of a size takes.
    batching : Batching

    Example
    -------
    >>> from mxnet.serve.curve import measured
    >>> from mxnet.serve.settings import Batching
    >>> list(measured(lambda size: 0.004 + 0.003 * size, Batching(bound=0.1, largest=64)).seconds)
    [1, 2, 4, 8]
    """
    seconds, size = {1: time_of(1)}, 1
    while size < batching.largest:
        size = min(2 * size, batching.largest)
        took = time_of(size)
        if 2 * took > batching.bound:
            break
        seconds[size] = took
        if len(seconds) > 2 and max(_rates(seconds)[-2:]) < 1.02 * _rates(seconds)[-3]:
            break
    rates = dict(zip(seconds, _rates(seconds)))
    largest = min(size for size, rate in rates.items() if rate >= _WORTH * max(rates.values()))
    return Curve({size: took for size, took in seconds.items() if size <= largest})


def _rates(seconds: Mapping[int, float]) -> list[float]:
    return [size / took for size, took in seconds.items()]
