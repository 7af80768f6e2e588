"""Comparisons and logic on two arrays. The numbers come from MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx

# for [1, 2, 0, 0] and [2, 2, 0, -1]
CASES = [
    ("equal", [0, 1, 1, 0]),
    ("not_equal", [1, 0, 0, 1]),
    ("greater", [0, 0, 0, 1]),
    ("greater_equal", [0, 1, 1, 1]),
    ("lesser", [1, 0, 0, 0]),
    ("lesser_equal", [1, 1, 1, 0]),
    ("logical_and", [1, 1, 0, 0]),
    ("logical_or", [1, 1, 0, 1]),
    ("logical_xor", [0, 0, 0, 1]),
]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("name, values", CASES, ids=[c[0] for c in CASES])
def test_values(name, values, dtype):
    x, y = mx.nd.array([1, 2, 0, 0], dtype=dtype), mx.nd.array([2, 2, 0, -1], dtype=dtype)
    for z in (getattr(mx.nd, "broadcast_" + name)(x, y), getattr(mx.nd._internal, "_" + name)(x, y)):
        assert z.dtype == np.dtype(dtype) and z.asnumpy().tolist() == values


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_large_arrays_and_nan(name):
    x, y = np.random.RandomState(0).randint(-1, 2, (2, 5000)).astype("float32")
    x[:2] = y[1:3] = np.nan
    assert np.array_equal(getattr(mx.nd, "broadcast_" + name)(mx.nd.array(x), mx.nd.array(y)).asnumpy(), getattr(np, name)(x, y))


def test_broadcasting():
    z = mx.nd.broadcast_greater(mx.nd.array([[1], [3]]), mx.nd.array([[0, 2]]))
    assert z.asnumpy().tolist() == [[1, 0], [1, 1]]


def test_no_gradient_flows():
    x = mx.nd.array([1, 3])
    x.attach_grad()
    with mx.autograd.record():
        y = (mx.nd.broadcast_greater(x, mx.nd.array([2, 2])) + 1) * x
    y.backward()
    assert x.grad.asnumpy().tolist() == [1, 2]
