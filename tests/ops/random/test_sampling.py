"""Random numbers: shapes, types, parameters, moments; the streams themselves are our own."""
import math

import numpy as np
import pytest
import torch

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


class TestMultinomial:
    def test_shapes(self):
        one, two = mx.nd.array([0, 1]), mx.nd.array([[0, 1], [1, 0]])
        assert mx.nd.sample_multinomial(one).asnumpy().tolist() == [1]
        assert mx.nd.sample_multinomial(one, shape=3).asnumpy().tolist() == [1, 1, 1]
        y = mx.nd.sample_multinomial(two, shape=(1, 2))
        assert y.dtype == np.int32 and y.asnumpy().tolist() == [[[1, 1]], [[0, 0]]]
        assert mx.nd.sample_multinomial(mx.nd.ones((2, 3, 4)), dtype="float32").shape == (2, 3)

    def test_frequencies(self):
        y = mx.nd.sample_multinomial(mx.nd.array([0.2, 0.8]), shape=N).asnumpy()
        assert abs(y.mean() - 0.8) < 0.02

    def test_logarithms_carry_the_gradient(self):
        p = mx.nd.array([[0.25, 0.75], [1, 0]])
        p.attach_grad()
        with mx.autograd.record():
            classes, logarithms = mx.nd.sample_multinomial(p, get_prob=True)
        logarithms.backward()
        first = int(classes.asnumpy()[0])
        np.testing.assert_allclose(logarithms.asnumpy(), [np.log([0.25, 0.75][first]), 0], rtol=1e-5)
        np.testing.assert_allclose(p.grad.asnumpy(), [[4, 0] if first == 0 else [0, 4 / 3], [1, 0]], rtol=1e-5)

    def test_in_a_graph(self):
        s = mx.sym.sample_multinomial(mx.sym.Variable("p"), shape=(5,), get_prob=True)
        assert s.infer_shape(p=(2, 3))[1] == [(2, 5), (2, 5)]
        assert s.infer_type(p="float64")[1] == [np.int32, np.float64]

    def test_no_chance(self):
        with pytest.raises(MXNetError, match="_sample_multinomial"):
            mx.nd.sample_multinomial(mx.nd.array([-1, 2]))


def test_shuffle_moves_rows():
    x = mx.nd.arange(40).reshape((20, 2))
    y = mx.nd.shuffle(x).asnumpy()
    assert (y[:, 1] - y[:, 0] == 1).all() and sorted(y[:, 0]) == list(range(0, 40, 2)) and (y != x.asnumpy()).any()


class TestUniqueZipfian:
    def test_classes(self):
        classes, tries = internal._sample_unique_zipfian(range_max=50, shape=(3, 20))
        assert classes.dtype == np.int64 and classes.shape == (3, 20) and tries.shape == (3,)
        for row, count in zip(classes.asnumpy(), tries.asnumpy()):
            assert len(set(row)) == 20 <= count and 0 <= row.min() and row.max() < 50

    def test_refusals(self):
        with pytest.raises(MXNetError, match=r"`shape` must be \(rows, classes\), received \(3,\)"):
            internal._sample_unique_zipfian(range_max=50, shape=(3,))
        with pytest.raises(MXNetError, match="5 different classes cannot be drawn out of 4"):
            internal._sample_unique_zipfian(range_max=4, shape=(1, 5))
        for shape in ((-1, 3), (3, -5)):
            with pytest.raises(MXNetError, match=r"`shape` must be \(rows, classes\), received"):
                internal._sample_unique_zipfian(range_max=50, shape=shape)
        for range_max in (-3, 0, 1 << 63):
            with pytest.raises(MXNetError, match="`range_max` must be an integer from 1 to 4503599627370496"):
                internal._sample_unique_zipfian(range_max=range_max, shape=(1, 1))

    def test_all_of_many_classes(self):
        """The last of them would be drawn after more than a hundred million others."""
        classes, tries = internal._sample_unique_zipfian(range_max=10**6, shape=(1, 10**6))
        assert np.array_equal(np.sort(classes.asnumpy()[0]), np.arange(10**6)) and 5e7 < tries.asnumpy()[0] < 1e9
        classes, tries = internal._sample_unique_zipfian(range_max=50, shape=(20000, 0))
        assert classes.shape == (20000, 0) and not tries.asnumpy().any()

    def test_both_ways_draw_alike(self):
        from mxnet.ops.random import sampling
        mx.random.seed(5)
        found = []
        for draw in (sampling._drawn, sampling._raced):
            classes, tries = torch.zeros(4000, 4, dtype=torch.int64), torch.zeros(4000, dtype=torch.int64)
            draw(6, classes, tries)
            assert all(len(set(row)) == 4 for row in classes.tolist())
            found.append([*(classes == 0).double().mean(0).tolist(), tries.double().mean().item() / 10, tries.double().std().item() / 10])
        assert found[0][0] == pytest.approx(math.log(2) / math.log(7), abs=0.03)
        assert found[0] == pytest.approx(found[1], abs=0.04)


def test_shape_inference():
    s = mx.sym._internal._random_uniform(shape=(0, 3)) + mx.sym.Variable("x")
    assert s.infer_shape(x=(2, 3))[1] == [(2, 3)]
    s = mx.sym._internal._sample_normal(mx.sym.Variable("mu"), mx.sym.Variable("sigma"), shape=(4,), dtype="float64")
    assert s.infer_shape(mu=(2,)) == ([(2,), (2,)], [(2, 4)], [])
    assert s.infer_type(mu="float32")[1] == [np.float64]
