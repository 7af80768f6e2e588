"""Sentences as numbers, and batches of sentences of about the same length."""
from __future__ import annotations

import bisect
import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .. import ndarray
from ..base import MXNetError
from ..io import DataBatch, DataDesc, DataIter

__all__ = ["BucketSentenceIter", "encode_sentences"]


def encode_sentences(sentences: Iterable[Sequence[Any]], vocab: dict[Any, int] | None = None, invalid_label: int = -1, invalid_key: str = "\n",
                     start_label: int = 0, unknown_token: Any = None) -> tuple[list[list[int]], dict[Any, int]]:
    """Encode words as numbers.

    Parameters
    ----------
    sentences : list of list of str
    vocab : dict of str to int, optional
        Known words; without it all words are new and get numbers.
    invalid_label : int
        The padding number, which no word has.
    invalid_key : str
        The word for the padding number.
    start_label : int
        The number of the first new word.
    unknown_token : str, optional
        Replaces words that are not in `vocab`.

    Returns
    -------
    sentences : list of list of int
    vocab : dict of str to int

    Raises
    ------
    MXNetError
        For a word that is not in a given `vocab`, without `unknown_token`.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.rnn.encode_sentences([['to', 'be'], ['be']], start_label=1)
    ([[1, 2], [2]], {'\\n': -1, 'to': 1, 'be': 2})
    """
    growing = vocab is None
    words = {invalid_key: invalid_label} if vocab is None else vocab
    number = start_label
    coded = []
    for sentence in sentences:
        numbers = []
        for word in sentence:
            if word not in words:
                if not growing and not unknown_token:
                    raise MXNetError(f"encode_sentences: Unknown token {word}; it is not in the given vocab. Give an unknown_token")
                if unknown_token:
                    word = unknown_token
                if word not in words:
                    number += number == invalid_label
                    words[word] = number
                    number += 1
            numbers.append(words[word])
        coded.append(numbers)
    return coded, words


class BucketSentenceIter(DataIter):
    """Iterates over batches of sentences for language models: the label of each word is the next word.

    Parameters
    ----------
    sentences : list of list of int
    batch_size : int
    buckets : list of int, optional
        Lengths to pad sentences to; default: every length that at least `batch_size` sentences have. Longer sentences are dropped.
    invalid_label : int
        The padding value of data and labels.
    data_name, label_name : str
    dtype : str
    layout : str
        ``'NT'`` (batch first) or ``'TN'`` (time first).
    """

    def __init__(self, sentences: Sequence[Sequence[int]], batch_size: int, buckets: Sequence[int] | None = None, invalid_label: int = -1,
                 data_name: str = "data", label_name: str = "softmax_label", dtype: str = "float32", layout: str = "NT"):
        super().__init__(batch_size)
        if layout not in ("NT", "TN"):
            raise ValueError(f"Invalid layout {layout}: must be NT (batch major) or TN (time major)")
        if not buckets:
            buckets = [length for length, count in enumerate(np.bincount([len(s) for s in sentences])) if count >= batch_size]
        if not buckets:
            raise MXNetError(f"BucketSentenceIter: no length is shared by {batch_size} sentences; give buckets, or a smaller batch_size")
        buckets = sorted(buckets)
        grouped: list[list[Any]] = [[] for _ in buckets]
        dropped = 0
        for sentence in sentences:
            i = bisect.bisect_left(buckets, len(sentence))
            if i == len(buckets):
                dropped += 1
                continue
            row = np.full((buckets[i],), invalid_label, dtype=dtype)
            row[:len(sentence)] = sentence
            grouped[i].append(row)
        print(f"WARNING: discarded {dropped} sentences longer than the largest bucket.")
        filled = [(length, np.asarray(rows, dtype=dtype)) for length, rows in zip(buckets, grouped) if rows]
        self.buckets = [length for length, _ in filled]
        self.data = [rows for _, rows in filled]
        self.data_name = data_name
        self.label_name = label_name
        self.dtype = dtype
        self.invalid_label = invalid_label
        self.layout = layout
        self.major_axis = layout.find("N")
        self.default_bucket_key = max(self.buckets)
        shape = (batch_size, self.default_bucket_key)
        self.provide_data = [self._describe(data_name, shape)]
        self.provide_label = [self._describe(label_name, shape)]
        self.idx = [(i, j) for i, rows in enumerate(self.data) for j in range(0, len(rows) - batch_size + 1, batch_size)]
        self.reset()

    def _describe(self, name: str, shape: tuple[int, int]) -> DataDesc:
        return DataDesc(name=name, shape=shape if self.major_axis == 0 else shape[::-1], layout=self.layout)

    def reset(self) -> None:
        """Start again, with the sentences in another order."""
        self.curr_idx = 0
        random.shuffle(self.idx)
        self.nddata, self.ndlabel = [], []
        for rows in self.data:
            np.random.shuffle(rows)
            label = np.full_like(rows, self.invalid_label)
            label[:, :-1] = rows[:, 1:]
            self.nddata.append(ndarray.array(rows, dtype=self.dtype))
            self.ndlabel.append(ndarray.array(label, dtype=self.dtype))

    def next(self) -> DataBatch:
        """Return the next batch; its ``bucket_key`` is the length of its sentences."""
        if self.curr_idx >= len(self.idx):
            raise StopIteration
        i, start = self.idx[self.curr_idx]
        self.curr_idx += 1
        rows = slice(start, start + self.batch_size)
        data, label = self.nddata[i][rows], self.ndlabel[i][rows]
        if self.major_axis:
            data, label = data.T, label.T
        shape = (self.batch_size, self.buckets[i])
        return DataBatch([data], [label], pad=0, bucket_key=self.buckets[i], provide_data=[self._describe(self.data_name, shape)],
                         provide_label=[self._describe(self.label_name, shape)])
