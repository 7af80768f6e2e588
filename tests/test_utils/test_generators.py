import numpy as np
import pytest
from scipy import stats

from mxnet import test_utils as tu

RNG = np.random.RandomState(0)


def test_continuous():
    buckets, probs = tu.gen_buckets_probs_with_ppf(stats.norm.ppf, 5)
    assert len(buckets) == 5 and probs == [0.2] * 5 and buckets[0][0] == -np.inf and buckets[1][0] == buckets[0][1]
    p = tu.verify_generator(RNG.randn, buckets, probs, nsamples=20000)
    assert len(p) == 5
    with pytest.raises(AssertionError, match="the generator fails the chi-square test: p="):
        tu.verify_generator(lambda n: RNG.randn(n) * 1.1, buckets, probs, nsamples=20000)
    with pytest.raises(ValueError, match="positive number of buckets"):
        tu.gen_buckets_probs_with_ppf(stats.norm.ppf, 0)


def test_discrete():
    p, observed, expected = tu.chi_square_check(lambda n: RNG.randint(0, 4, n), [0, 1, 2, 3], [0.25] * 4, nsamples=10000)
    assert p > 1e-4 and observed.sum() == 10000 and expected.tolist() == [2500] * 4
    assert tu.chi_square_check(lambda n: RNG.randint(0, 3, n), [0, 1, 2, 3], [0.25] * 4, nsamples=10000)[0] < 1e-10


def test_p_value_is_that_of_pearson():
    samples = [0] * 30 + [1] * 70
    p, _, _ = tu.chi_square_check(lambda n: samples, [0, 1], [0.5, 0.5], nsamples=100)
    assert p == pytest.approx(stats.chisquare([30, 70]).pvalue)


def test_wrong_buckets():
    with pytest.raises(ValueError, match="received 2 and 1"):
        tu.chi_square_check(RNG.randn, [0, 1], [1.0], 10)
    with pytest.raises(ValueError, match="must be in order"):
        tu.chi_square_check(RNG.randn, [(0, 2), (1, 3)], [0.5, 0.5], 10)


def test_moments():
    assert tu.mean_check(RNG.randn, 0, 1, 10000) and not tu.mean_check(RNG.randn, 0.1, 1, 10000)
    assert tu.var_check(RNG.randn, 1, 10000) and not tu.var_check(RNG.randn, 1.1, 10000)
