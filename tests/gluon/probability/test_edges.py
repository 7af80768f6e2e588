"""Densities, quantiles and moments where numbers are tiny, large or on the border; scipy's values, as literals."""
import math

import numpy as np
import pytest
from scipy import stats

import mxnet as mx
from mxnet.gluon import probability as mgp

INF = math.inf


def arr(values, dtype="float32"):
    return mx.np.array(np.array(values, dtype), dtype=dtype)


@pytest.mark.parametrize("made, values, expected", [
    (lambda: mgp.Bernoulli(prob=arr([1e-12, 0, 0, 1, 1])), [1, 0, 1, 1, 0], [-27.631021, 0, -INF, 0, -INF]),
    (lambda: mgp.Bernoulli(logit=arr([200, -200])), [0, 1], [-200, -200]),
    (lambda: mgp.Geometric(prob=arr([1e-12, 1, 1])), [0, 0, 1], [-27.631021, 0, -INF]),
    (lambda: mgp.Binomial(10, prob=arr([1e-12, 0, 1, 1])), [1, 0, 10, 11], [-25.328436, 0, 0, -INF]),
    (lambda: mgp.NegativeBinomial(arr([1, 3, 100, 1e4, 2, 2]), prob=arr([1e-12, 1e-12, 0.3, 0.01, 0, 0])), [1, 1, 200, 50, 0, 1],
     [-27.631021, -26.532409, -89.62618, -18.600318, 0, -INF]),
    (lambda: mgp.Poisson(arr([1e6, 0, 0])), [1000000, 0, 1], [-7.826694, 0, -INF]),
    (lambda: mgp.Gamma(arr([1, 1e5, 1e3]), arr([1, 1e-3, 1e-3])), [0, 100, 1], [0, 0.232353, 2.534856]),
    (lambda: mgp.Beta(arr([1, 1, 1]), arr([1, 0.5, 2])), [1, 0, 0], [0, -0.693147, 0.693147]),
    (lambda: mgp.Weibull(arr([1, 1]), arr([1, 1e-3])), [0, 0], [0, 6.907755]),
    (lambda: mgp.Chi2(arr([2, 1e4])), [0, 1e4], [-0.693147, -5.870699]),
    (lambda: mgp.StudentT(arr([1e4])), [-5], [-13.404613]),
])
def test_logarithms_of_densities(made, values, expected):
    np.testing.assert_allclose(made().log_prob(arr(values)).asnumpy(), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("made, values, expected", [
    (lambda: mgp.Normal(0, 1), [1e-12, 0.5, 1], [-7.034484, 0, INF]), (lambda: mgp.Laplace(0, 1), [1e-12, 0.5], [-26.937874, 0]),
    (lambda: mgp.Cauchy(0, 1), [1e-12, 0.25, 0.5, 0.75], [-3.1830989e11, -1, 0, 1]),
    (lambda: mgp.HalfCauchy(1), [1e-6, 0.5, 1 - 2 ** -20], [1.5707963e-6, 1, 667544.2]),
    (lambda: mgp.HalfNormal(1), [1e-6, 0.5, 1 - 2 ** -20], [1.2533141e-6, 0.6744898, 4.9009640]),
    (lambda: mgp.Pareto(1, 1), [1e-6, 0.5], [1.000001, 2])])
def test_quantiles(made, values, expected):
    np.testing.assert_allclose(made().icdf(arr(values)).asnumpy(), expected, rtol=3e-4, atol=1e-6)


def test_probabilities_of_small_numbers():
    for made, slope in ((mgp.HalfNormal(1), 0.7978846), (mgp.HalfCauchy(1), 0.6366198)):
        np.testing.assert_allclose(made.cdf(arr([1e-10, -1])).asnumpy(), [slope * 1e-10, 0], rtol=1e-5)
    np.testing.assert_allclose(mgp.Pareto(1e-3, 1).cdf(arr([1.001])).asnumpy(), [9.995e-7], rtol=1e-3)


def test_entropies():
    np.testing.assert_allclose(mgp.Bernoulli(prob=arr([0, 1e-12, 1])).entropy().asnumpy(), [0, 2.8631e-11, 0], rtol=1e-4)
    np.testing.assert_allclose(mgp.Geometric(prob=arr([1e-12, 1])).entropy().asnumpy(), [28.631021, 0], rtol=1e-4)
    np.testing.assert_allclose(mgp.Gamma(arr([1e5]), 1).entropy().asnumpy(), [7.175398], rtol=1e-5)
    np.testing.assert_allclose(mgp.Beta(arr([0.5]), arr([1000])).entropy().asnumpy(), [-6.8173955], rtol=1e-5)
    np.testing.assert_allclose(mgp.StudentT(arr([1e4])).entropy().asnumpy(), [1.4190385], rtol=1e-5)


def test_negative_binomials_count_what_they_draw():
    """Probabilities of 0 to 199 add up to 1, and give the mean and the variance."""
    one = mgp.NegativeBinomial(arr([3.5], "float64"), prob=arr([0.6], "float64"))
    numbers = np.arange(200.0)
    chances = one.pdf(arr(numbers, "float64")).asnumpy()
    assert chances.sum() == pytest.approx(1) and (chances * numbers).sum() == pytest.approx(one.mean.item())
    assert (chances * (numbers - 5.25) ** 2).sum() == pytest.approx(one.variance.item())
    np.testing.assert_allclose(mgp.NegativeBinomial(arr([3]), prob=arr([1e-12])).mean.asnumpy(), [3e-12])


def test_negative_binomials_of_mxnet_2_take_the_other_probability():
    mx.util.set_version("2.0")
    one = mgp.NegativeBinomial(arr([3.5], "float64"), prob=arr([0.6], "float64"))
    np.testing.assert_allclose(one.log_prob(arr([2], "float64")).asnumpy(), stats.nbinom(3.5, 0.6).logpmf([2]))
    np.testing.assert_allclose(one.mean.asnumpy(), stats.nbinom(3.5, 0.4).mean())


def test_classes_of_no_probability():
    given = {"prob": arr([0.5, 0.5, 0]), "logit": arr([0, 0, -INF])}
    for kind, values in given.items():
        one, hot, many = (c(3, **{kind: values}) for c in (mgp.Categorical, mgp.OneHotCategorical, mgp.Multinomial))
        np.testing.assert_allclose(one.log_prob(arr([0, 2])).asnumpy(), [-0.693147, -INF], rtol=1e-5)
        np.testing.assert_allclose(hot.log_prob(arr([[1, 0, 0], [0, 0, 1]])).asnumpy(), [-0.693147, -INF], rtol=1e-5)
        np.testing.assert_allclose(many.log_prob(arr([[1, 1, 0], [1, 0, 1]])).asnumpy(), [-0.693147, -INF], rtol=1e-5)
        np.testing.assert_allclose([one.entropy().item(), hot.entropy().item()], 0.693147, rtol=1e-5)
        sure = mgp.Categorical(3, prob=arr([1, 0, 0]))
        np.testing.assert_allclose([mgp.kl_divergence(sure, one).item(), mgp.kl_divergence(one, sure).item()], [0.693147, INF], rtol=1e-5)


def test_divergences():
    tiny, half, never = (mgp.Bernoulli(prob=arr([p])) for p in (1e-12, 0.5, 0))
    assert [round(float(mgp.kl_divergence(p, q).item()), 5) for p, q in ((never, half), (half, never), (never, never), (tiny, half))] == [
        0.69315, INF, 0, 0.69315]
    assert mgp.kl_divergence(mgp.Poisson(arr([0])), mgp.Poisson(arr([2]))).item() == 2
    large = [mgp.Gamma(arr([a]), 1) for a in (1e5, 1.001e5)]
    assert mgp.kl_divergence(*large).item() == pytest.approx(0.0499836, rel=1e-4)


@pytest.mark.parametrize("kind, value", [("prob", [0.0, 1.0, 0.3]), ("logit", [-200.0, 200.0, 0.3])])
def test_gradients_on_the_border_are_finite(kind, value):
    x = arr(value)
    x.attach_grad()
    with mx.autograd.record():
        one = mgp.Bernoulli(**{kind: x})
        loss = (one.log_prob(arr([0, 1, 1])) + one.entropy()).sum()
    loss.backward()
    assert np.isfinite(x.grad.asnumpy()).all()
