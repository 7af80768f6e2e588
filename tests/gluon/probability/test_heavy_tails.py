"""Densities, samples and gradients of these are in `test_continuous`, with all others."""
import math

import numpy as np

import mxnet as mx
from mxnet.gluon import probability as mgp


def arr(values):
    return mx.np.array(values, dtype="float32")


def test_moments_that_do_not_exist():
    t = mgp.StudentT(arr([0.5, 1.5, 4.0]), 1.0, 2.0)
    np.testing.assert_allclose(t.mean.asnumpy(), [math.nan, 1, 1])
    np.testing.assert_allclose(t.variance.asnumpy(), [math.nan, math.inf, 8])
    np.testing.assert_allclose(mgp.Pareto(arr([0.5, 1.5, 3.0])).mean.asnumpy(), [math.inf, 3, 1.5])
    np.testing.assert_allclose(mgp.Pareto(arr([0.5, 1.5, 3.0])).variance.asnumpy(), [math.inf, math.inf, 0.75])
    f = mgp.FisherSnedecor(arr([2.0, 2.0]), arr([1.0, 3.0]))
    np.testing.assert_allclose(f.mean.asnumpy(), [math.nan, 3])
    assert np.isnan(f.variance.asnumpy()).all()
