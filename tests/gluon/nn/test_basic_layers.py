"""Dense, Embedding, Lambda and the other simple layers, and layers in a row."""
import numpy as np
import pytest

import mxnet as mx
from layer_checks import check_layer
from mxnet.gluon import nn


@pytest.mark.parametrize("layer,shape,expected", [
    (lambda: nn.Dense(3), (2, 4, 5), (2, 3)),
    (lambda: nn.Dense(3, flatten=False, use_bias=False, activation="relu"), (2, 4, 5), (2, 4, 3)),
    (lambda: nn.Flatten(), (2, 3, 4), (2, 12)),
    (lambda: nn.Dropout(0.5), (2, 3), (2, 3)),
    (lambda: nn.Dropout(0), (2, 3), (2, 3)),
    (lambda: nn.HybridLambda("tanh"), (2, 3), (2, 3)),
])
def test_shapes(layer, shape, expected):
    check_layer(layer(), shape, expected)


@pytest.mark.parametrize("layer,expected", [  # of -2, -0.5, 0, 1.5
    (nn.Lambda(lambda x: x * 3), [-6, -1.5, 0, 4.5]),
    (nn.HybridLambda(lambda F, x: F.square(x)), [4, 0.25, 0, 2.25]),
])
def test_activation_values(layer, expected):
    layer.initialize()
    out = layer(mx.nd.array([[-2, -0.5, 0, 1.5]]))
    np.testing.assert_allclose(out.asnumpy()[0], expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("layer,text", [
    (lambda: nn.Dense(3, in_units=2, activation="relu"), "Dense(2 -> 3, Activation(relu))"),
    (lambda: nn.Embedding(3, 4), "Embedding(3 -> 4, float32)"),
    (lambda: nn.Dropout(0.3), "Dropout(p = 0.3, axes=())"),
    (lambda: nn.Flatten(), "Flatten"),
    (lambda: nn.HybridLambda("tanh"), "HybridLambda(tanh)"),
])
def test_repr(layer, text):
    assert repr(layer()) == text


@pytest.mark.parametrize("make,message", [
    (lambda: nn.Lambda("no_such_operator"), "Function name no_such_operator is not found in ndarray"),
    (lambda: nn.HybridLambda("no_such_operator"), "is not found in symbol/ndarray"),
])
def test_errors(make, message):
    with pytest.raises(AssertionError, match=message):
        make()


def test_embedding():
    layer = nn.Embedding(4, 2)
    layer.initialize()
    layer.weight.set_data(mx.nd.arange(8).reshape((4, 2)))
    with mx.autograd.record():
        out = layer(mx.nd.array([[1, 3], [1, 0]]))
    out.backward()
    assert out.asnumpy().tolist() == [[[2, 3], [6, 7]], [[2, 3], [0, 1]]]
    assert layer.weight.grad().asnumpy().tolist() == [[1, 1], [2, 2], [0, 0], [1, 1]]


def test_lambda_of_something_else():
    for kind in (nn.Lambda, nn.HybridLambda):
        with pytest.raises(ValueError, match="Unrecognized function in lambda: 3 of type <class 'int'>"):
            kind(3)


def test_sequential_access():
    net = nn.HybridSequential(prefix="s_")
    net.add(nn.Dense(1), nn.Dense(2), nn.Dense(3))
    assert len(net) == 3 and net[-1] is net[2]
    part = net[1:]
    assert type(part) is nn.HybridSequential and len(part) == 2 and part[0] is net[1] and part.prefix == "s_"
    assert repr(net[:1]) == "HybridSequential(\n  (0): Dense(None -> 1, linear)\n)"
