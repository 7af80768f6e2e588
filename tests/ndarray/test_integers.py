"""Gradients of integer arrays, as MXNet 1.9.1 gives them."""
import mxnet as mx


def test_integer_arrays_have_gradients():
    x = mx.nd.array([1, 2, 3], dtype="int32")
    x.attach_grad()
    with mx.autograd.record():
        y = x * x + 2 * x
    y.backward()
    assert x.grad.dtype is mx.nd.array([1], dtype="int32").dtype
    assert x.grad.asnumpy().tolist() == [4, 6, 8]


def test_values_written_later_count():
    x = mx.nd.array([1, 2], dtype="int64")
    x.attach_grad()
    x[:] = 5
    with mx.autograd.record():
        y = (x * x).sum()
    y.backward()
    assert y.asscalar() == 50 and x.grad.asnumpy().tolist() == [10, 10]


def test_adding_to_a_gradient():
    x = mx.nd.array([1, 2], dtype="int8")
    x.attach_grad("add")
    for _ in range(2):
        with mx.autograd.record():
            y = mx.nd.concat(x, x, dim=0).reshape((2, 2)).T
        y.backward()
    assert x.grad.asnumpy().tolist() == [4, 4]


def test_into_floating_point():
    x = mx.nd.array([1, 2], dtype="int32")
    x.attach_grad()
    with mx.autograd.record():
        y = x.astype("float32") * 3
    y.backward()
    assert y.asnumpy().tolist() == [3.0, 6.0] and x.grad.asnumpy().tolist() == [3, 3]
