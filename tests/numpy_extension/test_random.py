import pytest

import mxnet as mx
from mxnet import np, npx


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    yield
    npx.reset_np()


def test_seed():
    npx.random.seed(3)
    first = np.random.uniform(size=3).tolist()
    mx.random.seed(3)
    assert np.random.uniform(size=3).tolist() == first


def test_one_device_is_seeded_alone():
    npx.random.seed(5)
    with mx.cpu(1):
        first = np.random.uniform(size=3).tolist()
    npx.random.seed(6, ctx=mx.cpu(0))
    npx.random.seed(5, ctx=mx.cpu(1))
    with mx.cpu(1):
        again = np.random.uniform(size=3).tolist()
    npx.random.seed(5, ctx=mx.cpu(1))
    with mx.cpu(1):
        assert np.random.uniform(size=3).tolist() == again != first


def test_bernoulli():
    mx.random.seed(1)
    assert npx.random.bernoulli(prob=0.25, size=(4000,)).mean().item() == pytest.approx(0.25, abs=0.03)
    assert npx.random.bernoulli(logit=np.array([-50.0, 50.0])).tolist() == [0, 1]


def test_draws_for_each_parameter():
    mx.random.seed(1)
    x = npx.random.uniform_n(np.array([0.0, 10.0]), np.array([1.0, 11.0]), batch_shape=(500,))
    assert x.shape == (500, 2) and x.min(0).tolist() == pytest.approx([0, 10], abs=0.02) and x.max(0).tolist() == pytest.approx([1, 11], abs=0.02)
