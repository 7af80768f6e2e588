"""Norms and normalizations of numbers whose squares leave their type; 2-norms and their gradients as MXNet 1.9.1 has them."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.gluon import nn


def with_gradient(function, values, head=None, dtype="float32"):
    x = nd.array(values, dtype=dtype)
    x.attach_grad()
    with mx.autograd.record():
        y = function(x)
    y.backward(None if head is None else nd.array(head, dtype=dtype))
    return y.asnumpy(), x.grad.asnumpy()


@pytest.mark.parametrize("values, norm, gradient", [
    ([1e20, 0], 1e20, [1, 0]), ([1e-25, 0], 1e-25, [1, 0]), ([3e38, 0], 3e38, [1, 0]), ([1e20, 1e-20], 1e20, [1, 1e-40]),
    ([3e20, -4e20], 5e20, [0.6, -0.8]), ([3e-25, 4e-25], 5e-25, [0.6, 0.8]), ([3, 4], 5, [0.6, 0.8])])
def test_two_norms_neither_overflow_nor_underflow(values, norm, gradient):
    out, grad = with_gradient(nd.norm, values)
    np.testing.assert_allclose(out, [norm], rtol=1e-6)
    np.testing.assert_allclose(grad, gradient, rtol=1e-4)
    out, grad = with_gradient(lambda x: nd.norm(x, axis=1, keepdims=True), [values, [3, 4], [0, 0]])
    np.testing.assert_allclose(out, [[norm], [5], [0]], rtol=1e-6)
    np.testing.assert_allclose(grad, [gradient, [0.6, 0.8], [0, 0]], rtol=1e-4)
    hybrid = nn.HybridLambda(lambda F, x: F.norm(x, axis=(0, 1)))
    hybrid.hybridize()
    np.testing.assert_allclose(with_gradient(hybrid, [values])[1], [gradient], rtol=1e-4)


def test_two_norms_of_double_precision():
    out, grad = with_gradient(nd.norm, [3e200, 4e200], dtype="float64")
    assert out == pytest.approx([5e200], rel=1e-14) and grad == pytest.approx([0.6, 0.8])
    out, grad = with_gradient(nd.norm, [3e-200, 4e-200], dtype="float64")
    assert out[0] == pytest.approx(5e-200, rel=1e-14, abs=0) and grad == pytest.approx([0.6, 0.8])


def test_norms_of_what_is_not_finite():
    assert nd.norm(nd.array([np.inf, 1])).asscalar() == np.inf and np.isnan(nd.norm(nd.array([np.nan, 1])).asscalar())
    assert nd.norm(nd.array([3e38, 3e38])).asscalar() == np.inf  # it is larger than the largest number


def test_norms_of_nothing():
    with mx.util.np_shape(True):
        assert nd.norm(nd.zeros((0, 3)), axis=1).shape == (0,) and nd.norm(nd.zeros((2, 0)), axis=1).asnumpy().tolist() == [0, 0]


@pytest.mark.parametrize("order, of_1_and_2", [(3, 2.080084), (0.5, 5.828427), (-2, 0.8944272)])
@pytest.mark.parametrize("scale", [1, 1e20, 1e-25])
def test_other_orders(order, of_1_and_2, scale):
    x = mx.np.array([scale, 2 * scale])
    np.testing.assert_allclose(mx.np.linalg.norm(x, ord=order).asnumpy(), of_1_and_2 * scale, rtol=1e-5)


LINE = [1, 2, 3, 4]
NORMAL, HEAD = np.array([-1.3416408, -0.4472136, 0.4472136, 1.3416408]), [1, 0, 2, 3]
ONE, ZERO = nd.ones(1), nd.zeros(1)
LAYERS = {
    "LayerNorm": (lambda x: nd.LayerNorm(x, nd.ones(4), nd.zeros(4)), NORMAL),
    "LayerNorm of another axis": (lambda x: nd.LayerNorm(x.transpose((0, 2, 1)), nd.ones(4), nd.zeros(4), axis=1).transpose((0, 2, 1)), NORMAL),
    "InstanceNorm": (lambda x: nd.InstanceNorm(x, ONE, ZERO, eps=1e-5), NORMAL), "GroupNorm": (lambda x: nd.GroupNorm(x, ONE, ZERO), NORMAL),
    "L2Normalization": (nd.L2Normalization, np.array([0.18257418, 0.36514837, 0.5477226, 0.7302967])),
}


@pytest.mark.parametrize("scale", [1, 1e19, 1e20, 8e37])
@pytest.mark.parametrize("name", LAYERS)
def test_normalizations_of_large_numbers(name, scale):
    layer, expected = LAYERS[name]
    ordinary = with_gradient(layer, [[LINE]], [[HEAD]])
    out, grad = with_gradient(layer, np.array([[LINE]]) * scale, [[HEAD]])
    np.testing.assert_allclose(out.ravel(), expected, rtol=1e-4)
    np.testing.assert_allclose(grad * scale, ordinary[1], rtol=1e-3, atol=1e-3 * abs(ordinary[1]).max())


def test_rows_of_ordinary_size_stay_as_they_are_beside_large_ones():
    rows = nd.array([LINE, np.array(LINE) * 1e20])
    out = nd.LayerNorm(rows, nd.ones(4), nd.zeros(4), eps=1).asnumpy()
    np.testing.assert_allclose(out, [NORMAL * np.sqrt(1.25 / 2.25), NORMAL], rtol=1e-5)


def test_moments_of_large_numbers():
    _, mean, deviation = nd.LayerNorm(nd.array([LINE]) * 1e20, nd.ones(4), nd.zeros(4), output_mean_var=True)
    np.testing.assert_allclose([mean.asscalar(), deviation.asscalar()], [2.5e20, 1.118034e20], rtol=1e-5)


def test_layers_with_nan_stay_nan():
    assert np.isnan(nd.LayerNorm(nd.array([[np.nan, 1], [1, 2]]), nd.ones(2), nd.zeros(2)).asnumpy()).tolist() == [[True, True], [False, False]]


def test_l2_normalization_of_half_precision():
    np.testing.assert_allclose(nd.L2Normalization(nd.array([[300, 400]], dtype="float16")).asnumpy(), [[0.6, 0.8]], rtol=1e-3)


@pytest.mark.parametrize("function, values, gradients", [
    (nd.arcsinh, [1e20, -1e25, 1], [1e-20, 1e-25, 0.70710677]), (nd.arccosh, [1e20, 1e8, 1.5], [1e-20, 1e-8, 0.8944272]),
    (mx.np.arcsinh, [1e20], [1e-20])])
def test_gradients_of_inverse_hyperbolic_functions(function, values, gradients):
    x = (mx.np if function is mx.np.arcsinh else nd).array(values)
    x.attach_grad()
    with mx.autograd.record():
        y = function(x)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), gradients, rtol=1e-5)


@pytest.mark.parametrize("function, values, gradients", [
    (nd.arctan, [300, 1], [1.11e-5, 0.5]), (nd.softsign, [300, 1], [1.104e-5, 0.25]), (nd.rsqrt, [1e-3, 4], [-15811, -0.0625]),
    (nd.arccosh, [300, 1.5], [0.003334, 0.8945]), (nd.arcsinh, [300, 0], [0.003334, 1]), (nd.log10, [20000, 1], [2.17e-5, 0.4343]),
    (lambda x: nd.broadcast_power(x, x), [4, 1e-6], [611, -12.82])])
def test_gradients_of_half_precision(function, values, gradients):
    x = nd.array(values, dtype="float16")
    x.attach_grad()
    with mx.autograd.record():
        y = function(x)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), gradients, rtol=1e-2)


def test_gradients_of_angles():
    y, x = mx.np.array([1e-20, 1e19, 0, 1]), mx.np.array([1e-20, 1e20, 0, -2])
    y.attach_grad()
    x.attach_grad()
    with mx.autograd.record():
        out = mx.np.arctan2(y, x)
    out.backward()
    np.testing.assert_allclose(y.grad.asnumpy(), [5e19, 9.90099e-21, 0, -0.4], rtol=1e-5)
    np.testing.assert_allclose(x.grad.asnumpy(), [-5e19, -9.90099e-22, 0, -0.2], rtol=1e-5)
    y = mx.np.array([[1.0], [2.0]])
    y.attach_grad()
    with mx.autograd.record():
        out = mx.np.arctan2(y, mx.np.array([1.0, 3.0])).sum() + mx.np.arctan2(2.0, y).sum()
    out.backward()
    np.testing.assert_allclose(y.grad.asnumpy(), [[0.4], [0.180769]], rtol=1e-4)


def test_products_over_several_axes():
    x = nd.array([[[1e20, 1e20], [1e-25, 1e-30]], [[1, 2], [3, 4]]])
    np.testing.assert_allclose(mx.np.prod(x.as_np_ndarray(), axis=(1, 2)).asnumpy(), [1e-15, 24], rtol=1e-5)
    half = nd.prod(nd.array([[[300, 400], [1e-3, 2]]], dtype="float16"), axis=(1, 2))
    assert half.dtype == np.float16 and half.asscalar() == pytest.approx(240, rel=2e-3)
    np.testing.assert_allclose(nd.prod(x, axis=(1, 2)).asnumpy(), [1e-15, 24], rtol=1e-5)
    np.testing.assert_allclose(nd.nanprod(x, axis=(1, 2), keepdims=True).asnumpy(), [[[1e-15]], [[24]]], rtol=1e-5)
