"""Counts of n-grams and decision trees: ONNX's operators of classic machine learning that torch can compute."""
import collections

import numpy as np

from .....base import MXNetError
from ..reading import UnsupportedFeature
from ..registry import translates


@translates("TfIdfVectorizer")
def tf_idf_vectorizer(g, data, *, max_gram_length, max_skip_count, min_gram_length, mode, ngram_counts, ngram_indexes, pool_int64s=None,
                      pool_strings=None, weights=None):
    """Counts of given n-grams in each row, with gaps of up to `max_skip_count`; each n-gram may have a weight."""
    if pool_int64s is None:
        raise UnsupportedFeature("TfIdfVectorizer of texts")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise MXNetError(f"`mode` must be TF, IDF or TFIDF, received {mode!r:.40}")
    known = _grams(pool_int64s, ngram_counts)
    if len(ngram_indexes) != len(known) or weights is not None and len(weights) != len(known) or min(ngram_indexes, default=0) < 0:
        raise MXNetError(f"{len(known)} sequences have {len(ngram_indexes)} places and {len(weights or known)} weights")
    width = max(ngram_indexes, default=-1) + 1
    rows = data.constant("X")
    flat = rows.reshape(1, -1) if rows.ndim < 2 else rows
    if flat.ndim > 2 or flat.shape[0] * width > 1 << 24:
        raise MXNetError(f"rows of shape {rows.shape} and {width} counts for each")
    frequencies = np.zeros((len(flat), width), "float32")
    for row, numbers in zip(frequencies, flat.tolist()):
        counts = _counted(numbers, known, max(min_gram_length, 1), max_gram_length, max_skip_count)
        for number, count in counts.items():
            weight = 1.0 if weights is None else weights[number]
            row[ngram_indexes[number]] = count if mode == "TF" else weight if mode == "IDF" else count * weight
    return g.array(frequencies[0] if rows.ndim < 2 else frequencies)


def _grams(pool, counts):
    """The sequences, with the number of each."""
    columns = {}
    for i, start in enumerate(counts):
        end = counts[i + 1] if i + 1 < len(counts) else len(pool)
        for place in range(start, end, i + 1):
            columns[tuple(pool[place:place + i + 1])] = len(columns)
    return columns


def _counted(numbers, known, shortest, longest, skips):
    counts = collections.Counter()
    for length in range(shortest, min(longest, max(map(len, known), default=0)) + 1):
        for step in range(1, (min(skips, len(numbers)) if length > 1 else 0) + 2):
            for start in range(len(numbers) - (length - 1) * step):
                number = known.get(tuple(numbers[start:start + (length - 1) * step + 1:step]))
                if number is not None:
                    counts[number] += 1
    return counts
