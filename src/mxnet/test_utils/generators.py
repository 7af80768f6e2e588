"""Statistical tests of random generators. A generator is a function of the number of samples."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def gen_buckets_probs_with_ppf(ppf: Callable[[float], float], nbuckets: int) -> tuple[list[tuple[float, float]], list[float]]:
    """Return intervals of equal probability under a distribution, and these probabilities.

    Parameters
    ----------
    ppf : callable
        The inverse of the cumulative distribution, such as ``scipy.stats.norm.ppf``.
    nbuckets : int

    Returns
    -------
    buckets : list of tuple of float
    probs : list of float

    Example
    -------
    >>> mx.test_utils.gen_buckets_probs_with_ppf(lambda x: 10 * x, 2)
    ([(0.0, 5.0), (5.0, 10.0)], [0.5, 0.5])
    """
    if nbuckets <= 0:
        raise ValueError(f"gen_buckets_probs_with_ppf: expected a positive number of buckets, received {nbuckets}")
    edges = [ppf(i / nbuckets) for i in range(nbuckets + 1)]
    return list(zip(edges, edges[1:])), [1.0 / nbuckets] * nbuckets


def mean_check(generator: Callable[[int], Any], mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Return True if the mean of samples is within 3 standard errors of `mu`.

    Example
    -------
    >>> import numpy as np
    >>> np.random.seed(7)
    >>> bool(mx.test_utils.mean_check(lambda n: np.random.normal(5, 1, n), 5, 1, nsamples=1000))
    True
    """
    return bool(abs(np.asarray(generator(nsamples)).mean() - mu) < 3 * sigma / np.sqrt(nsamples))


def var_check(generator: Callable[[int], Any], sigma: float, nsamples: int = 1000000) -> bool:
    """Return True if the variance of samples is within 3 standard errors of ``sigma ** 2``.

    Example
    -------
    >>> import numpy as np
    >>> np.random.seed(7)
    >>> bool(mx.test_utils.var_check(lambda n: np.random.normal(5, 1, n), 1, nsamples=1000))
    True
    """
    return bool(abs(np.asarray(generator(nsamples)).var(ddof=1) - sigma ** 2) < 3 * sigma ** 2 * np.sqrt(2 / (nsamples - 1)))


def chi_square_check(generator: Callable[[int], Any], buckets: Sequence[Any], probs: Sequence[float],
                     nsamples: int = 1000000) -> tuple[float, Any, Any]:
    """Test a generator against a distribution by Pearson's chi-square test.

    Parameters
    ----------
    generator : callable
    buckets : list
        Intervals, in order, for continuous distributions; values for discrete ones.
    probs : list of float
        The probability of each.
    nsamples : int

    Returns
    -------
    p : float
        The p value: the probability of such a deviation if the samples follow the distribution.
    obs_freq, expected_freq : numpy.ndarray
        The observed and the expected number of samples in each bucket.

    Example
    -------
    >>> import numpy as np
    >>> np.random.seed(7)
    >>> halves = [(0, 0.5), (0.5, 1)]
    >>> p, _, _ = mx.test_utils.chi_square_check(lambda n: np.random.uniform(0, 1, n), halves, [0.5, 0.5], nsamples=1000)
    >>> bool(p > 0.01)
    True
    """
    from scipy import stats
    if not isinstance(buckets, list) or len(buckets) != len(probs):
        raise ValueError(f"chi_square_check: expected a list of buckets and a probability for each, received {len(buckets)} and {len(probs)}")
    samples = np.asarray(generator(nsamples)).ravel()
    if isinstance(buckets[0], (list, tuple)):
        edges = np.array(buckets, dtype=np.float32).ravel()
        if np.any(np.diff(edges) < 0):
            raise ValueError(f"chi_square_check: buckets must be in order and not overlap, received {buckets}")
        places = np.searchsorted(edges, samples, side="right")
        observed = np.bincount(places // 2, minlength=len(buckets))[:len(buckets)]
    else:
        observed = np.array([(samples == value).sum() for value in buckets])
    expected = (nsamples * np.array(probs, dtype=np.float32)).astype(np.int32)
    # scipy.stats.chisquare requires equal sums, which differ if samples are outside of all buckets.
    statistic = ((observed - expected) ** 2 / expected.astype(np.float64)).sum()
    return float(stats.chi2.sf(statistic, len(buckets) - 1)), observed, expected


def verify_generator(generator: Callable[[int], Any], buckets: Sequence[Any], probs: Sequence[float], nsamples: int = 1000000, nrepeat: int = 5,
                     success_rate: float = 0.2, alpha: float = 0.05) -> list[float]:
    """Raise an AssertionError unless a generator passes `chi_square_check` often enough.

    Parameters
    ----------
    generator, buckets, probs, nsamples
        As in `chi_square_check`.
    nrepeat : int
        The number of tests.
    success_rate : float
        The fraction of tests that must pass.
    alpha : float
        The p value that a test needs to pass.

    Returns
    -------
    list of float
        The p values.

    Example
    -------
    >>> import numpy as np
    >>> np.random.seed(7)
    >>> halves = [(0, 0.5), (0.5, 1)]
    >>> _ = mx.test_utils.verify_generator(lambda n: np.random.uniform(0, 1, n), halves, [0.5, 0.5], nsamples=1000, nrepeat=2)
    """
    results = [chi_square_check(generator, buckets, probs, nsamples) for _ in range(nrepeat)]
    p_values = [p for p, _, _ in results]
    if sum(p > alpha for p in p_values) < nrepeat * success_rate:
        raise AssertionError(f"the generator fails the chi-square test: p={p_values}, obs_freq={[o.tolist() for _, o, _ in results]}, "
                             f"expected_freq={results[0][2].tolist()}.\nbuckets={buckets}, probs={probs}")
    return p_values
