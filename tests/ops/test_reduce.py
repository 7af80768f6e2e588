"""Reductions. The numbers come from MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError

nan = float("nan")


@pytest.fixture
def x():
    return mx.nd.array([[1, 5, 3], [4, 2, 5]])


@pytest.mark.parametrize("attributes, shape, values", [
    ({}, (1,), [20]), ({"axis": ()}, (1,), [20]), ({"axis": (0, 1)}, (1,), [20]), ({"axis": -1}, (2,), [9, 11]), ({"axis": 0}, (3,), [5, 7, 8]),
    ({"axis": 0, "exclude": True}, (2,), [9, 11]), ({"axis": (0, 1), "exclude": True}, (2, 3), [1, 5, 3, 4, 2, 5]),
    ({"axis": (0, -1), "keepdims": True}, (1, 1), [20]), ({"keepdims": True}, (1, 1), [20]), ({"axis": 1, "keepdims": True}, (2, 1), [9, 11])])
def test_axes(x, attributes, shape, values):
    y = mx.nd.sum(x, **attributes)
    assert y.shape == shape and y.asnumpy().ravel().tolist() == values
    s = mx.sym.sum(mx.sym.Variable("x"), **attributes)
    assert s.infer_shape(x=(2, 3))[1] == [shape]


@pytest.mark.parametrize("name, values", [("sum", [9, 11]), ("mean", [3, 11 / 3]), ("prod", [15, 40]), ("max", [5, 5]), ("min", [1, 2]),
                                          ("nansum", [9, 11]), ("nanprod", [15, 40]), ("sum_axis", [9, 11]), ("max_axis", [5, 5]),
                                          ("min_axis", [1, 2]), ("argmax", [1, 2]), ("argmin", [0, 1])])
def test_values(x, name, values):
    y = getattr(mx.nd, name)(x, axis=1)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.asnumpy(), values, rtol=1e-6)


@pytest.mark.parametrize("name, values", [("sum", [20]), ("mean", [3]), ("prod", [600]), ("max", [5]), ("nansum", [20]), ("norm", [8]),
                                          ("argmax", [1])])
def test_integers_stay_integers(x, name, values):
    y = getattr(mx.nd, name)(x.astype("int32"))
    assert y.dtype == np.int32 and y.asnumpy().tolist() == values


def test_bytes_wrap_around():
    assert mx.nd.sum(mx.nd.array([200, 100], dtype="uint8")).asnumpy().tolist() == [44]


def test_float16_is_summed_in_float32():
    y = mx.nd.sum(mx.nd.full((5000,), 1, dtype="float16"))
    assert y.dtype == np.float16 and y.asscalar() == 5000


def test_nan_is_left_out():
    x = mx.nd.array([[1, nan, 3], [nan, nan, nan]])
    assert mx.nd.nansum(x, axis=1).asnumpy().tolist() == [4, 0]
    assert mx.nd.nanprod(x, axis=1).asnumpy().tolist() == [3, 1]


def gradient(function, values):
    x = mx.nd.array(values)
    x.attach_grad()
    with mx.autograd.record():
        y = function(x)
    y.backward()
    return x.grad.asnumpy().tolist()


@pytest.mark.parametrize("function, values, expected", [
    (lambda x: mx.nd.max(x, axis=1), [[1, 3, 3], [2, 2, 1]], [[0, 1, 1], [1, 1, 0]]),
    (lambda x: mx.nd.max(x), [[1, 3, 3], [2, 2, 1]], [[0, 1, 1], [0, 0, 0]]),
    (lambda x: mx.nd.min(x, axis=0, exclude=True, keepdims=True), [[1, 3, 1], [2, 2, 1]], [[1, 0, 1], [0, 0, 1]]),
    (lambda x: mx.nd.prod(x, axis=1), [[0, 3, 3], [2, 2, 1]], [[9, 0, 0], [2, 2, 4]]),
    (lambda x: mx.nd.nansum(x, axis=1), [[0, nan, 3]], [[1, 0, 1]]),
    (lambda x: mx.nd.nanprod(x, axis=1), [[2, nan, 3]], [[3, 0, 2]]),
    (lambda x: mx.nd.norm(x, ord=1, axis=1), [[0, -2, 0], [3, 0, 4]], [[0, -1, 0], [1, 0, 1]]),
    (lambda x: mx.nd.mean(x, axis=0), [[0, -2], [3, 0]], [[0.5, 0.5], [0.5, 0.5]])])
def test_gradients(function, values, expected):
    assert gradient(function, values) == expected


def test_gradient_of_the_norm():
    np.testing.assert_allclose(gradient(lambda x: mx.nd.norm(x), [[3, 0], [0, 4]]), [[0.6, 0], [0, 0.8]], rtol=1e-6)


class TestNorm:
    def test_values(self, x):
        np.testing.assert_allclose(mx.nd.norm(x).asnumpy(), [8.944272], rtol=1e-6)
        np.testing.assert_allclose(mx.nd.norm(x, axis=1, keepdims=True).asnumpy(), [[5.91608], [6.7082033]], rtol=1e-6)
        assert mx.nd.norm(x, ord=1, axis=(0, 1)).asnumpy().tolist() == [20]

    def test_out_dtype(self):
        y = mx.nd.norm(mx.nd.full((2000,), 60, dtype="float16"), out_dtype="float32")
        assert y.dtype == np.float32
        np.testing.assert_allclose(y.asscalar(), 60 * 2000 ** 0.5, rtol=1e-6)
        assert mx.sym.norm(mx.sym.Variable("x"), out_dtype="float64").infer_type(x="float32")[1] == [np.float64]

    def test_other_orders(self, x):
        with pytest.raises(MXNetError, match="norm: `ord` must be 1 or 2, received 3"):
            mx.nd.norm(x, ord=3)


class TestMoments:
    def test_values(self, x):
        mean, variance = mx.nd.moments(x, axes=0)
        assert mean.asnumpy().tolist() == [2.5, 3.5, 4] and variance.asnumpy().tolist() == [2.25, 2.25, 1]
        mean, variance = mx.nd.moments(x, axes=(0, 1), keepdims=True)
        np.testing.assert_allclose([mean.asnumpy(), variance.asnumpy()], [[[3.3333333]], [[2.2222222]]], rtol=1e-6)

    def test_integers(self, x):
        mean, variance = mx.nd.moments(x.astype("int32"), axes=0)
        assert mean.asnumpy().tolist() == [2, 3, 4] and variance.asnumpy().tolist() == [2, 2, 1]

    def test_gradient_of_the_variance(self):
        np.testing.assert_allclose(gradient(lambda x: mx.nd.moments(x, axes=1)[1], [[0, -2, 0]]), [[0.4444444, -0.8888889, 0.4444444]], rtol=1e-5)

    def test_shapes(self):
        s = mx.sym.moments(mx.sym.Variable("x"), axes=(0, 2))
        assert s.infer_shape(x=(2, 3, 4))[1] == [(3,), (3,)]

    def test_axes_are_needed(self, x):
        with pytest.raises(MXNetError, match="`axes` must name the axes to reduce"):
            mx.nd.moments(x)


class TestArg:
    def test_all_axes(self, x):
        assert mx.nd.argmax(x).asnumpy().tolist() == [1]
        assert mx.nd.argmax(x, keepdims=True).asnumpy().tolist() == [[1]]

    def test_first_of_equals(self):
        assert mx.nd.argmax(mx.nd.array([[2, 7, 7], [3, 3, 1]]), axis=1).asnumpy().tolist() == [1, 0]
        assert mx.nd.argmin(mx.nd.array([1, 0, 0]), axis=0).asnumpy().tolist() == [1]

    @pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
    def test_type(self, x, dtype):
        y = mx.nd.argmax(x.astype(dtype), axis=1, keepdims=True)
        assert y.dtype == np.dtype(dtype) and y.asnumpy().tolist() == [[1], [2]]

    def test_channel(self, x):
        assert mx.nd.argmax_channel(x).asnumpy().tolist() == [1, 2]


def test_square_sum(x):
    assert mx.nd._internal._square_sum(x, axis=1).asnumpy().tolist() == [35, 45]


@pytest.mark.parametrize("name", ["sum", "max", "norm", "argmax", "cumsum"])
def test_axis_out_of_range(x, name):
    with pytest.raises(MXNetError, match=rf"{name}: `axis` must be in \[-2, 1\] for 2-D data, received 2"):
        getattr(mx.nd, name)(x, axis=2)


def test_axis_named_twice(x):
    with pytest.raises(MXNetError, match=r"sum: `axis` must not name an axis twice, received \(0, -2\)"):
        mx.nd.sum(x, axis=(0, -2))


def test_partial_shapes():
    s = mx.sym.sum(mx.sym.Variable("x"), axis=1)
    assert s.infer_shape_partial(x=(0, 3, 4))[1] == [(0, 4)]


def test_mean_of_booleans_is_a_boolean():
    mean = mx.nd.mean(mx.nd.array([[1, 0, 1], [1, 1, 1], [0, 0, 0]], dtype="bool"), axis=1)
    assert mean.dtype == np.bool_ and mean.asnumpy().tolist() == [True, True, False]


def test_argmax_channel_has_no_gradient():
    with pytest.raises(mx.base.MXNetError, match="argmax_channel"):
        mx.sym.argmax_channel(mx.sym.var("x")).simple_bind(mx.cpu(), x=(2, 3)).backward()
