import json

import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError


@pytest.fixture
def x():
    array = mx.nd.arange(120).reshape((4, 5, 6))
    array.attach_grad()
    return array


def recorded(x, key):
    with mx.autograd.record():
        y = x[key]
    return y, mx.autograd.get_symbol(y)


BASIC = {
    "integer": (1, ["slice", "Reshape"]),
    "negative": (-1, ["slice", "Reshape"]),
    "rows": (slice(1, 3), ["slice"]),
    "step": (slice(None, None, 2), ["slice"]),
    "backwards": (slice(None, None, -1), ["slice"]),
    "from the end": (slice(-3, -1), ["slice"]),
    "nothing": (slice(None), []),
    "all": (Ellipsis, []),
    "new axis": (None, ["Reshape"]),
    "column": ((slice(None), 1), ["slice", "Reshape"]),
    "element": ((1, 2, 3), ["slice", "Reshape"]),
    "last axis": ((Ellipsis, 1), ["slice", "Reshape"]),
    "new first axis": ((None, 1), ["slice"]),
    "new axis behind": ((slice(1, 3), None), ["slice", "Reshape"]),
    "two steps": ((slice(3, 1, -1), slice(None, None, 2)), ["slice"]),
    "three": ((slice(None), slice(2, 4), slice(None, None, 3)), ["slice"]),
    "mixed": ((1, None, slice(None, None, -2)), ["slice"]),
}


@pytest.mark.parametrize("key, operators", BASIC.values(), ids=BASIC)
def test_a_basic_index_is_a_slice_and_a_shape(x, key, operators):
    y, symbol = recorded(x, key)
    nodes = [n["op"] for n in json.loads(symbol.tojson())["nodes"]]
    assert nodes == ["null", *operators] and symbol.list_arguments() == ["var0"]
    result = symbol.bind(mx.cpu(), {"var0": x}).forward()[0]
    assert result.shape == y.shape and (result.asnumpy() == y.asnumpy()).all()


def test_an_element_of_numpy_arrays_has_no_axes():
    with mx.np_shape():
        x = mx.np.array([[1.0, 2.0], [3.0, 4.0]])
        x.attach_grad()
        y, symbol = recorded(x, (1, 0))
        assert symbol.bind(mx.cpu(), {"var0": x}).forward()[0].shape == y.shape == ()


def test_indices_that_nothing_computed_are_a_variable(x):
    for key, indices in [([0, 1], [[0, 1]]), (mx.nd.array([3, 2]), [[3, 2]]), (([0, 1], [2, 3]), [[0, 1], [2, 3]])]:
        y, symbol = recorded(x, key)
        assert symbol.list_arguments() == ["var0", "var1"]
        result = symbol.bind(mx.cpu(), {"var0": x, "var1": mx.nd.array(indices)}).forward()[0]
        assert (result.asnumpy() == y.asnumpy()).all()


def test_computed_indices_are_part_of_the_graph(x):
    order = mx.nd.array([0, 1])
    order.attach_grad()
    with mx.autograd.record():
        y, z = x[order + 1], x[order + 1, 2]
    symbol = mx.autograd.get_symbol(y)
    assert symbol.list_arguments() == ["var0", "var1"]
    assert (symbol.bind(mx.cpu(), {"var0": x, "var1": order}).forward()[0].asnumpy() == x.asnumpy()[[1, 2]]).all()
    symbol = mx.autograd.get_symbol(z)
    result = symbol.bind(mx.cpu(), {"var0": x, "var1": order, "var2": mx.nd.array([2, 2])}).forward()[0]
    assert (result.asnumpy() == x.asnumpy()[[1, 2], 2]).all()
    with mx.autograd.record():
        y = x[order + 1, :, order + 1]
    with pytest.raises(MXNetError, match="computed indices that stand apart"):
        mx.autograd.get_symbol(y)


def test_a_computed_mask():
    x = mx.np.array([[1.0, 2.0], [3.0, 4.0]])
    x.attach_grad()
    with mx.autograd.record():
        y = x[x > 1]
    symbol = mx.autograd.get_symbol(y)
    assert symbol.list_arguments() == ["var0"] and y.asnumpy().tolist() == [2.0, 3.0, 4.0]
    assert [n for n in symbol.get_internals().list_outputs() if "mask" in n]


def test_gradients_flow_through_the_symbol(x):
    _, symbol = recorded(x, (slice(None, None, -2), 1))
    executor = symbol.bind(mx.cpu(), {"var0": x}, args_grad={"var0": mx.nd.zeros((4, 5, 6))})
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((2, 6)))
    expected = np.zeros((4, 5, 6))
    expected[[1, 3], 1] = 1
    assert (executor.grad_dict["var0"].asnumpy() == expected).all()
