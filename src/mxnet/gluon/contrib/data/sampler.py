"""Samplers for sequences."""
from __future__ import annotations

from collections.abc import Iterator

from ...data import Sampler
from ...utils import UsageError

__all__ = ["IntervalSampler"]


class IntervalSampler(Sampler):
    """Every `interval`-th index, such as to read batches of text in parallel.

    Parameters
    ----------
    length : int
    interval : int
        At most `length`.
    rollover : bool
        Start again at the first index that was left out, until none is.

    Example
    -------
    >>> import mxnet as mx
    >>> list(mx.gluon.contrib.data.IntervalSampler(7, interval=3))
    [0, 3, 6, 1, 4, 2, 5]
    >>> list(mx.gluon.contrib.data.IntervalSampler(7, interval=3, rollover=False))
    [0, 3, 6]
    """

    def __init__(self, length: int, interval: int, rollover: bool = True):
        if interval > length:
            raise UsageError(f"IntervalSampler: interval must be at most length={length}, received {interval}")
        self._length, self._interval, self._rollover = length, interval, rollover

    def __iter__(self) -> Iterator[int]:
        for start in range(self._interval if self._rollover else 1):
            yield from range(start, self._length, self._interval)

    def __len__(self) -> int:
        # MXNet counts the indices omitted without rollover, too.
        return self._length
