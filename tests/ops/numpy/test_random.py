"""NumPy operators that draw random numbers."""
import pytest

import mxnet as mx
from mxnet import np
from mxnet.ndarray import dispatch
from mxnet.ops import registry
from numpy_checks import ruled


@pytest.fixture(autouse=True)
def numpy_mode():
    with mx.util.np_shape(True), mx.util.np_array(True):
        yield


def draw(*arrays, **attributes):
    return set(dispatch.invoke(registry.get("_npi_bernoulli"), list(arrays), {"size": "(50,)", **{k: str(v) for k, v in attributes.items()}},
                               None, np.ndarray).asnumpy().tolist())


def test_bernoulli_takes_the_number_that_is_given_whatever_is_logit_says():
    assert draw(prob=1.0, logit=None, is_logit=True) == {1.0}
    assert draw(prob=0.0, logit=None, is_logit=True) == {0.0}
    assert draw(prob=None, logit=-50.0, is_logit=False) == {0.0}
    assert draw(prob=None, logit=50.0, is_logit=False) == {1.0}
    assert draw(np.array([50.0]), prob=None, logit=None, is_logit=True) == {1.0}
    with pytest.raises(ValueError, match="`prob` must be at least 0 and at most 1, received 2"):
        draw(prob=2.0, logit=0.0, is_logit=True)


def test_many_experiments_take_no_memory():
    mx.random.seed(3)
    counts = np.random.multinomial(10**12, [0.2, 0.3, 0.5], size=(2, 3))
    assert counts.shape == (2, 3, 3) and counts.dtype == "int64" and counts.sum(-1).tolist() == [[10**12] * 3] * 2
    assert abs(counts[..., 0].asnumpy() / 10**12 - 0.2).max() < 1e-4 and abs(counts[..., 1].asnumpy() / 10**12 - 0.3).max() < 1e-4
    assert np.random.multinomial(7, [0, 1, 0]).tolist() == [0, 7, 0] and np.random.multinomial(7, [1.0]).tolist() == [7]
    with pytest.raises(mx.MXNetError, match="`n` must be an integer from 0"):
        np.random.multinomial(-1, [0.5, 0.5])
    with pytest.raises(mx.MXNetError, match="must not be negative"):
        np.random.multinomial(3, [float("nan"), 0.5])


def test_a_few_out_of_many_take_the_memory_of_few():
    mx.random.seed(3)
    found = np.random.choice(1 << 53, size=(1000,), replace=False)
    assert len(set(found.tolist())) == 1000 and min(found.tolist()) >= 0 and max(found.tolist()) < 1 << 53
    found = np.random.choice(100_000, size=(24_000,), replace=False).tolist()
    assert len(set(found)) == 24_000 and 0 <= min(found) and max(found) < 100_000 and abs(sum(found) / 24_000 - 50_000) < 1000


def test_gamma_of_an_infinite_shape_ends():
    found = mx.np.random.gamma(mx.np.array([np.inf, 3.0]), 1.0, size=(2, 2)).asnumpy()
    assert (found[:, 0] != found[:, 0]).all() and (found[:, 1] > 0).all()


@pytest.mark.parametrize("name, shapes, attributes, expected", [
    ("normal", [(2,), (3, 1)], {"loc": None, "scale": None}, (3, 2)), ("normal", [(2,)], {"loc": None, "size": (3, 2)}, (3, 2)),
    ("normal", [(-1,)], {"loc": None, "size": (3, 2)}, (3, 2)), ("normal", [(-1,)], {"loc": None}, (-1,)), ("normal", [], {"size": (0, 2)}, (0, 2)),
    ("uniform_n", [(2,)], {"low": None, "size": (3,)}, (3, 2)), ("gamma", [(2,)], {"shape": None, "scale": 1.0}, (2,)), ("exponential", [], {}, ())])
def test_shapes_of_what_is_drawn(name, shapes, attributes, expected):
    assert ruled(f"_npi_{name}", *shapes, **attributes) == expected


def test_parameters_larger_than_what_is_drawn():
    for shapes in ([(3, 2)], [(-1, 2)]):
        with pytest.raises(mx.MXNetError, match=r"do not broadcast to `size` \(2,\)"):
            ruled("_npi_normal", *shapes, loc=None, size=(2,))
