import math

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import probability as mgp


def arr(values):
    return mx.np.array(values, dtype="float32")


PAIRS = [
    (mgp.Normal(0.3, 1.2), mgp.Normal(1, 2)), (mgp.HalfNormal(1.2), mgp.HalfNormal(2)), (mgp.Laplace(0.3, 1.2), mgp.Laplace(1, 2)),
    (mgp.Cauchy(0.3, 1.2), mgp.Cauchy(1, 2)), (mgp.Gumbel(0.3, 1.2), mgp.Gumbel(1, 2)), (mgp.Uniform(0, 1), mgp.Uniform(-1, 2)),
    (mgp.Uniform(0, 1), mgp.Gumbel(1, 2)), (mgp.Exponential(1.2), mgp.Gumbel(0.4, 2)),
    (mgp.Uniform(0, 1), mgp.Normal(1, 2)), (mgp.Exponential(1.2), mgp.Exponential(2)), (mgp.Exponential(1.2), mgp.Normal(1, 2)),
    (mgp.Exponential(1.2), mgp.Gamma(2, 0.8)), (mgp.Gamma(1.5, 2), mgp.Gamma(2, 0.8)), (mgp.Chi2(3), mgp.Gamma(2, 0.8)),
    (mgp.Beta(2, 3), mgp.Beta(1.5, 1)), (mgp.Pareto(3, 2), mgp.Pareto(2, 1)), (mgp.Bernoulli(0.3), mgp.Bernoulli(0.6)),
    (mgp.Binomial(4, 0.3), mgp.Binomial(4, 0.6)), (mgp.Geometric(0.3), mgp.Geometric(0.6)), (mgp.Poisson(3), mgp.Poisson(5)),
    (mgp.Categorical(3, arr([0.2, 0.3, 0.5])), mgp.Categorical(3, arr([0.6, 0.1, 0.3]))),
    (mgp.OneHotCategorical(3, arr([0.2, 0.3, 0.5])), mgp.OneHotCategorical(3, arr([0.6, 0.1, 0.3]))),
    (mgp.Dirichlet(arr([1.5, 2, 3])), mgp.Dirichlet(arr([2.0, 1, 1]))),
    (mgp.MultivariateNormal(arr([0.0, 1]), arr([[1.0, 0.3], [0.3, 0.5]])), mgp.MultivariateNormal(arr([0.5, 0]), arr([[2.0, -0.2], [-0.2, 1]]))),
    (mgp.Independent(mgp.Normal(arr([0.0, 1.0]), 1), 1), mgp.Independent(mgp.Normal(arr([1.0, 3.0]), 2), 1)),
]


@pytest.mark.parametrize("p, q", PAIRS, ids=[f"{type(p).__name__}-{type(q).__name__}" for p, q in PAIRS])
def test_formulas_agree_with_samples(p, q):
    exact = float(mgp.kl_divergence(p, q))
    x = p.sample_n(8000)
    ratio = (p.log_prob(x) - q.log_prob(x)).asnumpy()
    assert exact > 0 and abs(ratio.mean() - exact) < 5 * ratio.std() / math.sqrt(8000) + 1e-5
    assert abs(float(mgp.kl_divergence(p, p))) < 1e-5


def test_known_values():
    assert float(mgp.kl_divergence(mgp.Normal(0, 1), mgp.Normal(1, 1))) == 0.5
    assert round(float(mgp.kl_divergence(mgp.Bernoulli(0.5), mgp.Bernoulli(0.25))), 6) == round(0.5 * math.log(2) + 0.5 * math.log(2 / 3), 6)
    for p, q in ((mgp.Uniform(0, 3), mgp.Uniform(0, 1)), (mgp.Pareto(1, 1), mgp.Pareto(1, 2)), (mgp.Binomial(3, 0.5), mgp.Binomial(2, 0.5))):
        assert float(mgp.kl_divergence(p, q)) == math.inf
    assert mgp.kl_divergence(mgp.Normal(mx.np.zeros((3, 1)), 1), mgp.Normal(mx.np.zeros(2), 1)).shape == (3, 2)


def test_pairs_without_a_formula():
    with pytest.raises(NotImplementedError, match="no divergence is known between Normal and Poisson: register_kl adds a formula"):
        mgp.kl_divergence(mgp.Normal(), mgp.Poisson())
    with pytest.raises(NotImplementedError, match="between Binomials of one number of trials"):
        mgp.kl_divergence(mgp.Binomial(2, 0.5), mgp.Binomial(3, 0.5))
    with pytest.raises(NotImplementedError, match="between Independents of one number of axes"):
        mgp.kl_divergence(mgp.Independent(mgp.Normal(mx.np.zeros(2)), 1), mgp.Independent(mgp.Normal(mx.np.zeros(2)), 0))

    class Own(mgp.Normal):
        pass

    assert float(mgp.kl_divergence(Own(0, 1), mgp.Normal(1, 1))) == 0.5  # of a class that it is derived from

    @mgp.register_kl(Own, mgp.Normal)
    def _(p, q):
        return "own"

    assert mgp.kl_divergence(Own(), mgp.Normal()) == "own"


def test_by_samples():
    estimate = mgp.empirical_kl(mgp.Normal(mx.np.zeros(2), 1), mgp.Normal(1, 1), 4000)
    np.testing.assert_allclose(estimate.asnumpy(), 0.5, atol=0.08)
