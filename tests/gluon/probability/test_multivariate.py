import numpy as np
import pytest
from scipy import stats

import mxnet as mx
from mxnet.gluon import probability as mgp


def arr(values):
    return mx.np.array(values, dtype="float32")


COV = np.array([[2.0, 0.6], [0.6, 0.5]])
MEAN = np.array([1.0, -1.0])
AT = np.array([[0.0, 0.0], [1.5, -2.0]])


@pytest.mark.parametrize("kind, matrix", [("cov", COV), ("precision", np.linalg.inv(COV)), ("scale_tril", np.linalg.cholesky(COV))])
def test_normal_vectors(kind, matrix):
    ours, theirs = mgp.MultivariateNormal(arr(MEAN), **{kind: arr(matrix)}, validate_args=True), stats.multivariate_normal(MEAN, COV)
    assert ours.batch_shape == () and ours.event_shape == (2,)
    np.testing.assert_allclose(ours.log_prob(arr(AT)).asnumpy(), theirs.logpdf(AT), rtol=1e-4)
    np.testing.assert_allclose(ours.cov.asnumpy(), COV, rtol=1e-4)
    np.testing.assert_allclose(ours.precision.asnumpy(), np.linalg.inv(COV), rtol=1e-3)
    np.testing.assert_allclose(float(ours.entropy()), theirs.entropy(), rtol=1e-5)
    np.testing.assert_allclose(ours.variance.asnumpy(), np.diag(COV), rtol=1e-4)
    drawn = ours.sample_n(5000).asnumpy()
    np.testing.assert_allclose(drawn.mean(0), MEAN, atol=0.1)
    np.testing.assert_allclose(np.cov(drawn.T), COV, atol=0.15)
    assert ours.broadcast_to((3,)).sample().shape == (3, 2)


def test_matrices_that_do_not_fit():
    loc = arr(MEAN)
    with pytest.raises(AssertionError, match="one of cov, precision and scale_tril expected, received 0"):
        mgp.MultivariateNormal(loc)
    with pytest.raises(ValueError, match="positive definite matrices expected"):
        mgp.MultivariateNormal(loc, cov=-mx.np.eye(2), validate_args=True)
    with pytest.raises(ValueError, match="scale_tril: lower triangular matrices expected"):
        mgp.MultivariateNormal(loc, scale_tril=mx.np.ones((2, 2)), validate_args=True)


def test_dirichlet():
    alpha = np.array([0.5, 2.0, 3.0])
    ours, theirs = mgp.Dirichlet(arr(alpha)), stats.dirichlet(alpha)
    x = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(float(ours.log_prob(arr(x))), theirs.logpdf(x), rtol=1e-4)
    np.testing.assert_allclose(ours.mean.asnumpy(), theirs.mean(), rtol=1e-5)
    np.testing.assert_allclose(ours.variance.asnumpy(), theirs.var(), rtol=1e-4)
    np.testing.assert_allclose(float(ours.entropy()), theirs.entropy(), rtol=1e-4)
    drawn = ours.sample_n(4000).asnumpy()
    np.testing.assert_allclose(drawn.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(drawn.mean(0), theirs.mean(), atol=0.02)


def test_independent():
    base = mgp.Normal(mx.np.zeros((4, 3)), mx.np.ones((4, 3)))
    whole = mgp.Independent(base, 1)
    x = mx.np.random.normal(size=(5, 4, 3))
    np.testing.assert_allclose(whole.log_prob(x).asnumpy(), base.log_prob(x).asnumpy().sum(-1), rtol=1e-5)
    assert (whole.batch_shape, whole.event_shape, whole.has_grad) == ((4,), (3,), True)
    assert whole.sample().shape == (4, 3) and whole.sample_n(2).shape == (2, 4, 3) and whole.broadcast_to((2, 4)).sample().shape == (2, 4, 3)
    np.testing.assert_allclose(whole.entropy().asnumpy(), [3 * 1.4189385] * 4, rtol=1e-5)
    with pytest.raises(ValueError, match="at most 2 axes expected, those of the batch, received 3"):
        mgp.Independent(base, 3)


def test_transformed():
    lognormal = mgp.TransformedDistribution(mgp.Normal(arr([0.5]), 0.8), mgp.ExpTransform())
    theirs, x = stats.lognorm(0.8, scale=np.exp(0.5)), np.array([0.3, 1.0, 4.0])
    np.testing.assert_allclose(lognormal.log_prob(arr(x)).asnumpy(), theirs.logpdf(x), rtol=1e-4)
    np.testing.assert_allclose(lognormal.cdf(arr(x)).asnumpy(), theirs.cdf(x), rtol=1e-4)
    np.testing.assert_allclose(lognormal.icdf(arr([0.1, 0.9])).asnumpy(), theirs.ppf([0.1, 0.9]), rtol=1e-4)
    assert np.abs((lognormal.sample_n(4000).asnumpy() < theirs.median()).mean() - 0.5) < 0.04
    for what in ("entropy", "mean", "variance"):
        with pytest.raises(NotImplementedError, match="behind affine transformations only"):
            value = getattr(lognormal, what)
            value()


def test_moved_and_stretched():
    moved = mgp.TransformedDistribution(mgp.Laplace(mx.np.zeros(2), 1.0), [mgp.AffineTransform(1.0, 2.0), mgp.AffineTransform(0.0, -1.5)])
    theirs, x = stats.laplace(-1.5, 3.0), np.array([-4.0, 2.0])
    np.testing.assert_allclose(moved.log_prob(arr(x)).asnumpy(), theirs.logpdf(x), rtol=1e-5)
    np.testing.assert_allclose(moved.cdf(arr(x)).asnumpy(), theirs.cdf(x), rtol=1e-5)
    np.testing.assert_allclose(moved.icdf(arr([0.1, 0.7])).asnumpy(), theirs.ppf([0.1, 0.7]), rtol=1e-4)
    np.testing.assert_allclose(moved.entropy().asnumpy(), [theirs.entropy()] * 2, rtol=1e-5)
    np.testing.assert_allclose(moved.mean.asnumpy(), [-1.5] * 2)
    np.testing.assert_allclose(moved.variance.asnumpy(), [18] * 2, rtol=1e-5)
