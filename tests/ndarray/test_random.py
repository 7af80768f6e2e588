import numpy as np
import pytest

import mxnet as mx

R = mx.nd.random


@pytest.mark.parametrize("function, parameters, mean, std", [
    (R.uniform, (2, 4), 3, 2 / 12 ** 0.5), (R.normal, (1, 2), 1, 2), (R.poisson, (4,), 4, 2), (R.exponential, (3,), 3, 3),
    (R.gamma, (2, 3), 6, 18 ** 0.5),
    (R.negative_binomial, (3, 0.5), 3, 6 ** 0.5), (R.generalized_negative_binomial, (2, 0.5), 2, 2), (R.randint, (0, 5), 2, 2 ** 0.5)])
def test_distributions(function, parameters, mean, std):
    mx.random.seed(1)
    samples = function(*parameters, shape=(200, 200)).asnumpy()
    assert abs(samples.mean() - mean) < 0.03 * std and abs(samples.std() - std) < 0.03 * std
    if function is R.randint:
        return
    arrays = [mx.nd.array([p, p]) for p in parameters]
    samples = function(*arrays, shape=(200, 100)).asnumpy()
    assert samples.shape == (2, 200, 100)
    assert abs(samples.mean() - mean) < 0.04 * std and abs(samples.std() - std) < 0.04 * std


def test_shapes_and_types():
    assert R.uniform().shape == (1,) and R.uniform(shape=3).shape == (3,)
    assert R.randn(2, 3, dtype="float64").dtype == np.float64
    assert R.randint(0, 5).dtype == np.int32 and R.randint(0, 5, dtype="int64").dtype == np.int64
    assert R.uniform(mx.nd.zeros((2,)), mx.nd.ones((2,))).shape == (2,)
    assert R.randn(2, loc=mx.nd.zeros((3,)), scale=mx.nd.ones((3,))).shape == (3, 2)
    assert R.normal(shape=(2,), ctx=mx.cpu(1)).context == mx.cpu(1)


def test_out():
    out = mx.nd.zeros((2, 3), ctx=mx.cpu(1), dtype="float64")
    assert R.uniform(5, 6, out=out) is out
    assert out.asnumpy().min() >= 5 and out.dtype == np.float64 and out.context == mx.cpu(1)
    whole = mx.nd.zeros((2,), dtype="int64")
    R.randint(3, 4, out=whole)
    assert whole.asnumpy().tolist() == [3, 3]


@pytest.mark.parametrize("call, error, message", [
    (lambda: R.uniform(0, mx.nd.ones(2)), ValueError, "either numbers or arrays, received <class 'int'> and"),
    (lambda: R.uniform(mx.nd.ones(2), 1), ValueError, "either numbers or arrays"),
    (lambda: R.uniform("a"), ValueError, "either NDArrays or numbers, received <class 'str'>"),
    (lambda: R.randint(mx.nd.ones(2), mx.nd.ones(2)), ValueError, "must be numbers, received arrays"),
    (lambda: R.uniform(dtype="int32"), mx.MXNetError, "`dtype` must be one of 'float16', 'float32', 'float64'"),
    (lambda: R.uniform(0, 1, 3, foo=4), mx.MXNetError, "cannot find argument 'foo'")])
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_multinomial():
    probabilities = mx.nd.array([[0, 1, 0, 0], [0, 0, 0, 1]])
    assert R.multinomial(probabilities).asnumpy().tolist() == [1, 3]
    samples, likelihood = R.multinomial(probabilities, shape=(2,), get_prob=True, dtype="float64")
    assert samples.asnumpy().tolist() == [[1, 1], [3, 3]] and samples.dtype == np.float64
    assert likelihood.asnumpy().tolist() == [[0, 0], [0, 0]]


def test_shuffle():
    mx.random.seed(3)
    rows = R.shuffle(mx.nd.arange(200).reshape((100, 2))).asnumpy()
    assert sorted(rows.tolist()) == np.arange(200).reshape(100, 2).tolist() != rows.tolist()


def test_like_operators_are_there_too():
    assert R.uniform_like(mx.nd.ones((2, 3)), low=2, high=3).asnumpy().min() >= 2
    assert "normal_like" in dir(R)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        R.nothing


def test_scalars_with_numpy_shapes():
    with mx.np_shape():
        assert [f(shape=()).shape for f in (mx.nd.random.uniform, mx.nd.random.normal, mx.nd.random.poisson)] == [(), (), ()]
        assert mx.nd.random.randint(0, 5, shape=()).shape == () and mx.nd.random.uniform().shape == (1,)
    assert mx.nd.random.uniform(shape=()).shape == (1,)
