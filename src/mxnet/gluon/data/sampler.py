"""Samplers: the order of a dataset's elements, and their grouping into batches."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...suggestions import shortened

__all__ = ["Sampler", "SequentialSampler", "RandomSampler", "FilterSampler", "BatchSampler"]

LAST_BATCH = ("keep", "discard", "rollover")


class Sampler:
    """The base of samplers. A subclass has ``__iter__``, which gives indices, and ``__len__``."""

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


class _FixedSampler(Sampler):
    """The same indices in every epoch."""

    _indices: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self._indices)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._indices)


class SequentialSampler(_FixedSampler):
    """start, start + 1, ... start + length - 1.

    Parameters
    ----------
    length : int
    start : int
    """

    def __init__(self, length: int, start: int = 0) -> None:
        self._indices = range(start, start + length)


class RandomSampler(_FixedSampler):
    """0 ... length - 1 in a random order, another one in each epoch. ``np.random.seed`` makes it repeatable.

    Parameters
    ----------
    length : int
    """

    def __init__(self, length: int) -> None:
        self._length, self._indices = length, range(length)

    def __iter__(self) -> Iterator[Any]:
        # Shuffled in place rather than by np.random.permutation: programs expect the order that MXNet draws from a seed.
        order = np.arange(len(self))
        np.random.shuffle(order)
        return iter(order)


class FilterSampler(_FixedSampler):
    """The indices of the elements for which a function is true. All elements are looked at once, when it is made.

    Parameters
    ----------
    fn : callable
        Receives an element.
    dataset : Dataset
    """

    def __init__(self, fn: Callable[..., Any], dataset: Any) -> None:
        self._indices = [i for i, sample in enumerate(dataset) if fn(sample)]


class BatchSampler(Sampler):
    """Lists of the indices that another sampler gives.

    Parameters
    ----------
    sampler : Sampler
    batch_size : int
    last_batch : str
        The treatment of indices that don't fill a batch: ``'keep'`` gives a smaller batch, ``'discard'`` drops them, ``'rollover'``
        puts them before those of the next epoch.

    Raises
    ------
    ValueError
        For another `last_batch`.

    Example
    -------
    >>> from mxnet.gluon.data import BatchSampler, SequentialSampler
    >>> list(BatchSampler(SequentialSampler(5), 2))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler, batch_size: int, last_batch: str = "keep") -> None:
        if last_batch not in LAST_BATCH:
            raise ValueError(f"last_batch must be 'keep', 'discard' or 'rollover', received {shortened(last_batch)}")
        self._sampler, self._batch_size, self._last_batch = sampler, batch_size, last_batch
        self._prev: list[int] = []  # indices left over from the epoch before

    def __iter__(self) -> Iterator[Any]:
        indices, self._prev = itertools.chain(self._prev, self._sampler), []
        while batch := list(itertools.islice(indices, self._batch_size)):
            if len(batch) == self._batch_size or self._last_batch == "keep":
                yield batch
            elif self._last_batch == "rollover":
                self._prev = batch

    def __len__(self) -> int:
        batches, rest = divmod(len(self._sampler) + len(self._prev), self._batch_size)
        return batches + (1 if rest and self._last_batch == "keep" else 0)
