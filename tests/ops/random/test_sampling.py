"""Random numbers: shapes, types, parameters, moments; the streams themselves are our own."""

import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError

internal = mx.nd._internal
N = 20000
# operator, attributes, mean and standard deviation of the distribution
DISTRIBUTIONS = [
    ("uniform", {"low": -1, "high": 3}, 1, 1.1547), ("normal", {"loc": 2, "scale": 3}, 2, 3), ("exponential", {"lam": 4}, 0.25, 0.25),
    ("gamma", {"alpha": 2, "beta": 3}, 6, 4.2426), ("poisson", {"lam": 5}, 5, 2.2361), ("negative_binomial", {"k": 3, "p": 0.4}, 4.5, 3.3541),
    ("generalized_negative_binomial", {"mu": 2, "alpha": 0.3}, 2, 1.7889), ("generalized_negative_binomial", {"mu": 2, "alpha": 0}, 2, 1.4142)]
IDS = [f"{d[0]}{i}" for i, d in enumerate(DISTRIBUTIONS)]


@pytest.fixture(autouse=True)
def seed():
    mx.random.seed(7)


def check_moments(values, mean, deviation):
    assert abs(values.mean() - mean) < 5 * deviation / N ** 0.5
    assert abs(values.std() / deviation - 1) < 0.05


@pytest.mark.parametrize("name, attributes, mean, deviation", DISTRIBUTIONS, ids=IDS)
def test_random(name, attributes, mean, deviation):
    draw = getattr(internal, f"_random_{name}")
    check_moments(draw(shape=(N,), **attributes).asnumpy(), mean, deviation)
    assert draw(shape=(2, 3), dtype="float64", **attributes).dtype == np.float64
    half = draw(shape=3, dtype="float16", **attributes)
    assert half.dtype == np.float16 and half.shape == (3,)


@pytest.mark.parametrize("name, attributes, mean, deviation", DISTRIBUTIONS, ids=IDS)
def test_random_like(name, attributes, mean, deviation):
    y = mx.nd.zeros((N,), dtype="float64")
    y = getattr(internal, f"_random_{name}_like")(y, **attributes)
    assert y.dtype == np.float64
    check_moments(y.asnumpy(), mean, deviation)


@pytest.mark.parametrize("name, attributes, mean, deviation", DISTRIBUTIONS, ids=IDS)
def test_sample(name, attributes, mean, deviation):
    first = {"uniform": "low", "normal": "loc", "gamma": "alpha", "negative_binomial": "k", "generalized_negative_binomial": "mu"}.get(name, "lam")
    parameters = [mx.nd.array([attributes[first], attributes[first]])]
    parameters += [mx.nd.array([v, v]) for k, v in attributes.items() if k != first]
    y = getattr(internal, f"_sample_{name}")(*parameters, shape=N)
    assert y.shape == (2, N) and y.dtype == np.float32
    check_moments(y[1].asnumpy(), mean, deviation)


def test_each_parameter_has_its_own_numbers():
    y = internal._sample_uniform(mx.nd.array([[0, 10]]), mx.nd.array([[1, 20]]), shape=(3, 2)).asnumpy()
    assert y.shape == (1, 2, 3, 2)
    assert (y[0, 0] < 1).all() and (y[0, 1] >= 10).all()
    assert internal._sample_exponential(mx.nd.array([1, 2])).shape == (2,)


def test_one_seed_gives_one_stream():
    def draw():
        return [internal._random_normal(shape=(3,)), internal._random_gamma(shape=(2,), alpha=0.5),
                internal._random_randint(low=0, high=1000, shape=4), mx.nd.shuffle(mx.nd.arange(20)),
                mx.nd.sample_multinomial(mx.nd.array([0.2, 0.3, 0.5]), shape=9)]

    mx.random.seed(3)
    first = [a.asnumpy().tolist() for a in draw()]
    second = [a.asnumpy().tolist() for a in draw()]
    mx.random.seed(3)
    assert [a.asnumpy().tolist() for a in draw()] == first != second


def test_randint():
    y = internal._random_randint(low=-2, high=3, shape=(500,))
    assert y.dtype == np.int32 and sorted(set(y.asnumpy().tolist())) == [-2, -1, 0, 1, 2]
    assert internal._random_randint(low=0, high=2 ** 40, shape=(1,), dtype="int64").dtype == np.int64


@pytest.mark.parametrize("name, attributes, message", [
    ("uniform", {"low": 1, "high": 0}, "`low` must not be above `high`, received low=1, high=0"),
    ("normal", {"scale": 0}, "`scale` must be above 0, received scale=0"),
    ("gamma", {"alpha": 0}, "`alpha` and `beta` must be positive, received alpha=0, beta=1"),
    ("exponential", {"lam": -2}, "`lam` must be positive, received lam=-2"),
    ("poisson", {"lam": -1}, "`lam` must not be negative, received lam=-1"),
    ("negative_binomial", {"k": 0}, "`k` must be positive and `p` in"),
    ("negative_binomial", {"p": 2}, r"`p` in \(0, 1\], received k=1, p=2"),
    ("generalized_negative_binomial", {"mu": -1}, "`mu` and `alpha` must not be negative"),
    ("randint", {"low": 5, "high": 5}, "`low` must be below `high`, received low=5, high=5"),
    ("uniform", {"dtype": "int32"}, "`dtype` must be one of 'float16', 'float32', 'float64' or None, received 'int32'")])
def test_impossible_parameters(name, attributes, message):
    with pytest.raises(MXNetError, match=f"_random_{name}: .*{message}"):
        getattr(internal, f"_random_{name}")(shape=(2,), **attributes).wait_to_read()


def test_parameters_of_different_shapes():
    with pytest.raises(MXNetError, match=r"_sample_normal: all parameters must have one shape, received \(2,\), \(3,\)"):
        internal._sample_normal(mx.nd.ones((2,)), mx.nd.ones((3,)))


def test_shape_inference():
    s = mx.sym._internal._random_uniform(shape=(0, 3)) + mx.sym.Variable("x")
    assert s.infer_shape(x=(2, 3))[1] == [(2, 3)]
    s = mx.sym._internal._sample_normal(mx.sym.Variable("mu"), mx.sym.Variable("sigma"), shape=(4,), dtype="float64")
    assert s.infer_shape(mu=(2,)) == ([(2,), (2,)], [(2, 4)], [])
    assert s.infer_type(mu="float32")[1] == [np.float64]
