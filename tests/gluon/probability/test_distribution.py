import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import probability as mgp
from mxnet.gluon.probability import distribution


def test_parameters_broadcast():
    normal = mgp.Normal(mx.np.zeros((3, 1)), mx.np.ones(2))
    assert normal.batch_shape == (3, 2) and normal.sample().shape == normal.mean.shape == normal.variance.shape == (3, 2)
    assert normal.sample_n((4, 5)).shape == (4, 5, 3, 2) and repr(normal) == "Normal(loc: (3, 1), scale: (2,))"
    assert normal.broadcast_to((6, 3, 2)).sample().shape == (6, 3, 2) and normal.batch_shape == (3, 2)
    assert mgp.Normal().sample().shape == () and mgp.Normal().sample(3).shape == (3,)
    np.testing.assert_allclose(mgp.Normal(0, 2).stddev.asnumpy(), 2)


def test_arguments_are_checked_when_asked():
    mgp.Normal(0, -1)
    with pytest.raises(ValueError, match="Normal: scale: numbers above 0 expected, received -1"):
        mgp.Normal(0, -1, validate_args=True)
    mgp.Distribution.set_default_validate_args(True)
    try:
        with pytest.raises(ValueError, match="Gamma: shape: numbers above 0 expected"):
            mgp.Gamma(-1.0)
        with pytest.raises(ValueError, match="numbers from 0 to 1 expected"):
            mgp.Beta(1, 1).log_prob(mx.np.array([1.5]))
    finally:
        mgp.Distribution.set_default_validate_args(False)


def test_what_a_distribution_lacks():
    class Bare(mgp.Distribution):
        pass

    bare = Bare()
    for call in (lambda: bare.log_prob(1), lambda: bare.cdf(1), lambda: bare.icdf(1), lambda: bare.mean, lambda: bare.variance, bare.entropy,
                 bare.enumerate_support, lambda: bare.sample_n(2) if bare._parameters else bare._draw(())):
        with pytest.raises(NotImplementedError, match="^Bare "):
            call()


def test_helpers():
    x = mx.np.array([-90.0, 0.0, 90.0])
    np.testing.assert_allclose(distribution.softplus(x).asnumpy(), [0, 0.6931472, 90], atol=1e-6)
    np.testing.assert_allclose(float(distribution.logsumexp(x)), 90)
    assert distribution.sum_right(mx.np.ones((2, 3, 4)), 2).asnumpy().tolist() == [12, 12] and distribution.sizes(3) == (3,)
