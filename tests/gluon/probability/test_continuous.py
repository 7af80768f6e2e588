import math

import numpy as np
import pytest
from scipy import stats

import mxnet as mx
from mxnet.gluon import probability as mgp


def arr(values):
    return mx.np.array(values, dtype="float32")


A, B = [0.7, 2.5], [1.5, 0.6]
CASES = [
    (mgp.Normal, (A, B), stats.norm(A, B), [-1.0, 0.3, 2.0]), (mgp.Laplace, (A, B), stats.laplace(A, B), [-1.0, 0.3, 2.0]),
    (mgp.Cauchy, (A, B), stats.cauchy(A, B), [-1.0, 0.3, 2.0]), (mgp.Gumbel, (A, B), stats.gumbel_r(A, B), [-1.0, 0.3, 2.0]),
    (mgp.HalfNormal, (B,), stats.halfnorm(0, B), [0.2, 1.0, 3.0]), (mgp.HalfCauchy, (B,), stats.halfcauchy(0, B), [0.2, 1.0, 3.0]),
    (mgp.Uniform, ([-1.0, 0.0], [2.0, 4.0]), stats.uniform([-1.0, 0.0], [3.0, 4.0]), [0.1, 1.9, 3.0]),
    (mgp.Exponential, (A,), stats.expon(0, A), [0.2, 1.0, 3.0]), (mgp.Gamma, (A, B), stats.gamma(A, 0, B), [0.2, 1.0, 3.0]),
    (mgp.Chi2, ([3.0, 7.0],), stats.chi2([3.0, 7.0]), [0.2, 1.0, 3.0]), (mgp.Beta, (A, B), stats.beta(A, B), [0.1, 0.5, 0.8]),
    (mgp.StudentT, ([3.0, 7.0], A, B), stats.t([3.0, 7.0], A, B), [-1.0, 0.3, 2.0]),
    (mgp.FisherSnedecor, ([3.0, 7.0], [9.0, 20.0]), stats.f([3.0, 7.0], [9.0, 20.0]), [0.2, 1.0, 3.0]),
    (mgp.Weibull, ([1.5, 3.0], B), stats.weibull_min([1.5, 3.0], 0, B), [0.2, 0.5, 0.9]),
    (mgp.Pareto, ([3.0, 5.0], B), stats.pareto([3.0, 5.0], 0, B), [0.3, 1.7, 3.0]),
]
NAMES = [case[0].__name__ for case in CASES]


def made(case):
    return case[0](*(arr(p) for p in case[1]))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_densities(case):
    ours, theirs, at = made(case), case[2], np.array(case[3])[:, None]
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(ours.log_prob(arr(at)).asnumpy(), theirs.logpdf(at), rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(ours.pdf(arr(at)).asnumpy(), theirs.pdf(at), rtol=2e-4, atol=1e-5)
    p = np.array([0.1, 0.5, 0.9])[:, None]
    for name, their, where in (("cdf", theirs.cdf, at), ("icdf", theirs.ppf, p)):
        try:
            value = getattr(ours, name)(arr(where)).asnumpy()
        except NotImplementedError:
            assert case[0] in (mgp.Gamma, mgp.Chi2, mgp.Beta, mgp.StudentT, mgp.FisherSnedecor)
            continue
        np.testing.assert_allclose(value, their(where), rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_moments(case):
    ours, theirs = made(case), case[2]
    assert ours.batch_shape == (2,) and ours.event_shape == ()
    np.testing.assert_allclose(ours.mean.asnumpy(), theirs.mean(), rtol=1e-4)
    np.testing.assert_allclose(ours.variance.asnumpy(), theirs.var(), rtol=1e-4)
    if case[0] is not mgp.FisherSnedecor:
        np.testing.assert_allclose(ours.entropy().asnumpy(), theirs.entropy(), rtol=1e-4)
        np.testing.assert_allclose(ours.perplexity().asnumpy(), np.exp(theirs.entropy()), rtol=1e-4)
    assert ours.broadcast_to((3, 2)).mean.shape == (3, 2)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_samples(case):
    ours, theirs = made(case), case[2]
    assert ours.sample().shape == (2,) and ours.sample((4, 2)).shape == (4, 2) and ours.sample_n(3).shape == (3, 2)
    drawn = ours.sample_n(4000).asnumpy()
    assert np.isfinite(drawn).all()
    # The share of samples below quantiles: within 4 standard deviations.
    for p in (0.2, 0.5, 0.9):
        assert np.abs((drawn < theirs.ppf(p)).mean(0) - p).max() < 4 * math.sqrt(p * (1 - p) / 4000)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_gradients_and_graphs(case):
    class Both(mx.gluon.HybridBlock):
        def forward(self, x, *parameters):
            distribution = case[0](*parameters)
            return distribution.log_prob(x), distribution.sample_n(2)

    parameters = [arr(p) for p in case[1]]
    for p in parameters:
        p.attach_grad()
    x = arr(case[3][1])
    net = Both()
    net.hybridize()
    with mx.autograd.record():
        density, drawn = net(x, *parameters)
        drawn.sum().backward(retain_graph=True)
    assert case[0].has_grad and all(np.isfinite(p.grad.asnumpy()).all() and p.grad.asnumpy().any() for p in parameters)
    np.testing.assert_allclose(density.asnumpy(), case[2].logpdf(case[3][1]), rtol=2e-4, atol=1e-5)
    assert (net(x, *parameters)[1] != net(x, *parameters)[1]).any()  # drawn anew at each call


def test_outside_of_where_they_are():
    below = arr([-1.0])
    for distribution in (mgp.HalfNormal(1), mgp.HalfCauchy(1), mgp.Uniform(0, 1), mgp.Pareto(1, 1)):
        assert distribution.log_prob(below).asnumpy() == -math.inf and distribution.cdf(below).asnumpy() == 0
    assert mgp.Uniform(0, 1).cdf(arr([2.0])) == 1
