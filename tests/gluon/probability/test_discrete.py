import math

import numpy as np
import pytest
from scipy import special, stats

import mxnet as mx
from mxnet.gluon import probability as mgp


def arr(values):
    return mx.np.array(values, dtype="float32")


P = [0.2, 0.7]
THREE = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]])


def logit(p):
    return np.log(p) - np.log1p(-np.array(p))


CASES = [
    (lambda **k: mgp.Bernoulli(**k), stats.bernoulli(P), [0, 1]), (lambda **k: mgp.Binomial(5, **k), stats.binom(5, P), [0, 2, 5]),
    (lambda **k: mgp.Geometric(**k), stats.geom(P, loc=-1), [0, 3]),
    (lambda **k: mgp.NegativeBinomial(arr([2.0, 3.5]), **k), stats.nbinom([2.0, 3.5], 1 - np.array(P)), [0, 4]),
]


@pytest.mark.parametrize("make, theirs, at", CASES, ids=["Bernoulli", "Binomial", "Geometric", "NegativeBinomial"])
@pytest.mark.parametrize("kind", ["prob", "logit"])
def test_by_a_probability(make, theirs, at, kind):
    ours = make(**{kind: arr(P if kind == "prob" else logit(P))})
    at = np.array(at)[:, None]
    np.testing.assert_allclose(ours.log_prob(arr(at)).asnumpy(), theirs.logpmf(at), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ours.prob.asnumpy(), P, rtol=1e-5)
    np.testing.assert_allclose(ours.logit.asnumpy(), logit(P), rtol=1e-5)
    np.testing.assert_allclose(ours.mean.asnumpy(), theirs.mean(), rtol=1e-4)
    np.testing.assert_allclose(ours.variance.asnumpy(), theirs.var(), rtol=1e-4)
    drawn = ours.sample_n((50, 80)).asnumpy()
    assert drawn.shape == (50, 80, 2) and (drawn == np.floor(drawn)).all()
    np.testing.assert_allclose(drawn.mean((0, 1)), theirs.mean(), atol=4 * theirs.std().max() / math.sqrt(4000))
    np.testing.assert_allclose(drawn.var((0, 1)), theirs.var(), rtol=0.25)
    if isinstance(ours, (mgp.Bernoulli, mgp.Geometric)):
        np.testing.assert_allclose(ours.entropy().asnumpy(), theirs.entropy(), rtol=1e-3)


def test_poisson():
    ours, theirs = mgp.Poisson(arr([0.5, 20.0])), stats.poisson([0.5, 20.0])
    at = np.array([[0], [3], [25]])
    np.testing.assert_allclose(ours.log_prob(arr(at)).asnumpy(), theirs.logpmf(at), rtol=1e-4)
    drawn = ours.sample_n(4000).asnumpy()
    np.testing.assert_allclose(drawn.mean(0), [0.5, 20], atol=0.3)
    np.testing.assert_allclose(drawn.var(0), ours.variance.asnumpy(), rtol=0.15)
    assert ours.sample((3, 2)).shape == (3, 2) and mgp.Poisson(4.0).sample().shape == ()


@pytest.mark.parametrize("kind", ["prob", "logit"])
def test_classes(kind):
    given = {kind: arr(THREE if kind == "prob" else np.log(THREE) + 3)}
    one, hot, many = mgp.Categorical(3, **given), mgp.OneHotCategorical(3, **given), mgp.Multinomial(3, total_count=6, **given)
    assert (one.batch_shape, one.event_shape, hot.batch_shape, hot.event_shape) == ((2,), (), (2,), (3,))
    np.testing.assert_allclose(one.prob.asnumpy(), THREE, rtol=1e-5)
    np.testing.assert_allclose(one.log_prob(arr([[0, 1], [2, 2]])).asnumpy(), np.log([[0.2, 0.1], [0.3, 0.3]]), rtol=1e-5)
    np.testing.assert_allclose(one.entropy().asnumpy(), stats.entropy(THREE.T), rtol=1e-5)
    np.testing.assert_allclose(hot.log_prob(arr([[1, 0, 0], [0, 0, 1]])).asnumpy(), np.log([0.2, 0.3]), rtol=1e-5)
    counts = [[1, 2, 3], [4, 2, 0]]
    theirs = [stats.multinomial(6, p).logpmf(c) for p, c in zip(THREE, counts)]
    np.testing.assert_allclose(many.log_prob(arr(counts)).asnumpy(), theirs, rtol=1e-5)
    np.testing.assert_allclose(many.mean.asnumpy(), 6 * THREE, rtol=1e-5)
    np.testing.assert_allclose(many.variance.asnumpy(), 6 * THREE * (1 - THREE), rtol=1e-5)
    drawn = one.sample_n(4000).asnumpy()
    shares = np.stack([(drawn == i).mean(0) for i in range(3)], -1)
    np.testing.assert_allclose(shares, THREE, atol=0.04)
    np.testing.assert_allclose(hot.sample_n(4000).asnumpy().mean(0), hot.mean.asnumpy(), atol=0.04)
    counted = many.sample_n(500).asnumpy()
    assert (counted.sum(-1) == 6).all() and np.abs(counted.mean(0) - 6 * THREE).max() < 0.3
    assert one.broadcast_to((4, 2)).sample().shape == (4, 2) and hot.broadcast_to((4, 2)).sample().shape == (4, 2, 3)


def test_all_values():
    assert mgp.Bernoulli(prob=arr(P)).enumerate_support().asnumpy().tolist() == [[0, 0], [1, 1]]
    assert mgp.Binomial(2, prob=arr(P)).enumerate_support().asnumpy().tolist() == [[0, 0], [1, 1], [2, 2]]
    assert mgp.Categorical(3, arr(THREE)).enumerate_support().asnumpy().tolist() == [[0, 0], [1, 1], [2, 2]]
    assert mgp.OneHotCategorical(3, arr(THREE)).enumerate_support()[1].asnumpy().tolist() == [[0, 1, 0]] * 2
    for made in (mgp.Bernoulli(prob=0.3), mgp.Binomial(4, prob=0.3), mgp.Categorical(3, arr(THREE[0]))):
        assert made.has_enumerate_support and abs(float(np.exp(made.log_prob(made.enumerate_support()).asnumpy()).sum()) - 1) < 1e-5


def test_relaxed_bernoulli():
    ours = mgp.RelaxedBernoulli(0.5, prob=arr(P))
    x = special.expit(np.linspace(-14, 14, 5001))
    density = np.exp(ours.log_prob(arr(x[:, None])).asnumpy())
    np.testing.assert_allclose(np.sum((density[1:] + density[:-1]) / 2 * np.diff(x)[:, None], 0), 1, atol=0.03)
    drawn = ours.sample_n(4000).asnumpy()
    np.testing.assert_allclose((drawn > 0.5).mean(0), P, atol=0.04)  # above a half as often as 1 is drawn


def test_relaxed_classes():
    ours = mgp.RelaxedOneHotCategorical(0.7, 3, arr(THREE[0]))
    x = np.array([0.2, 0.3, 0.5])
    expected = (special.gammaln(3) + 2 * np.log(0.7) + (np.log(THREE[0]) - 1.7 * np.log(x)).sum() - 3 * np.log((THREE[0] * x ** -0.7).sum()))
    np.testing.assert_allclose(float(ours.log_prob(arr(x))), expected, rtol=1e-4)
    drawn = ours.sample_n(4000).asnumpy()
    np.testing.assert_allclose(drawn.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.eye(3)[drawn.argmax(-1)].mean(0), THREE[0], atol=0.04)
    weights = arr(np.log(THREE[0]))
    weights.attach_grad()
    with mx.autograd.record():
        out = mgp.RelaxedOneHotCategorical(0.7, 3, logit=weights).sample_n(10)[:, 0].sum()
    out.backward()
    assert weights.grad[0] > 0 > weights.grad[1]


def test_arguments():
    for arguments in ({}, {"prob": 0.5, "logit": 0.0}):
        with pytest.raises(AssertionError, match="Bernoulli: either prob or logit expected, received (none|both)"):
            mgp.Bernoulli(**arguments)
    with pytest.raises(ValueError, match=r"Categorical: probabilities of 4 classes along the last axis expected, received \(3,\)"):
        mgp.Categorical(4, arr(THREE))
    with pytest.raises(ValueError, match="Binomial: prob: numbers from 0 to 1 expected"):
        mgp.Binomial(3, prob=1.5, validate_args=True)
    with pytest.raises(ValueError, match="whole numbers from 0 to 3 expected"):
        mgp.Binomial(3, prob=0.5, validate_args=True).log_prob(arr([4.0]))
