import pytest

import mxnet as mx
from mxnet import np, npx


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    mx.random.seed(7)
    yield
    npx.reset_np()


def test_rows_are_shuffled_in_place():
    x = np.arange(40).reshape(20, 2)
    assert np.random.shuffle(x) is None
    rows = x.tolist()
    assert sorted(rows) == [[2 * i, 2 * i + 1] for i in range(20)] != rows


def test_functions_look_like_what_they_are():
    assert set(np.random.__all__) >= {"uniform", "normal", "randint", "choice", "shuffle", "multinomial"}
    assert np.random.uniform.__name__ == "uniform" and np.random.uniform.__module__ == "mxnet.numpy.random" and np.random.uniform.__doc__
