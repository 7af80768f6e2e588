import pytest

import mxnet as mx


def test_functions_of_torch_take_and_give_arrays():
    x = mx.nd.array([1, 2, 3])
    assert mx.th.cumsum(x, dim=0).asnumpy().tolist() == [1, 3, 6]
    assert mx.th.stack([x, x]).shape == (2, 3)
    values, places = mx.th.max(mx.nd.array([[1, 5], [7, 2]]), dim=1)
    assert values.asnumpy().tolist() == [5, 7] and places.asnumpy().tolist() == [1, 0]
    assert mx.torch is mx.th


def test_gradients_flow_through():
    x = mx.nd.array([1, 2, 3])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.th.cumsum(x * x, dim=0) * 2
    y.backward()
    assert x.grad.asnumpy().tolist() == [12, 16, 12]
    assert not mx.th.exp(x)._data.requires_grad


def test_what_torch_lacks_is_lacking():
    with pytest.raises(AttributeError, match="torch has no such function"):
        mx.th.no_such_function  # noqa: B018
    with pytest.raises(AttributeError, match="torch has no such function"):
        mx.th.Tensor  # noqa: B018
