"""Activations: values, representations and errors."""
import numpy as np
import pytest

import mxnet as mx
from layer_checks import check_layer
from mxnet.gluon import nn


@pytest.mark.parametrize("layer,shape,expected", [
    (lambda: nn.Activation("softsign"), (2, 3), (2, 3)),
    (lambda: nn.LeakyReLU(0.1), (2, 3), (2, 3)),
    (lambda: nn.PReLU(in_channels=3), (2, 3), (2, 3)),
])
def test_shapes(layer, shape, expected):
    check_layer(layer(), shape, expected)


@pytest.mark.parametrize("layer,expected", [  # of -2, -0.5, 0, 1.5
    (nn.Activation("relu"), [0, 0, 0, 1.5]),
    (nn.LeakyReLU(0.1), [-0.2, -0.05, 0, 1.5]),
    (nn.PReLU(), [-0.5, -0.125, 0, 1.5]),
    (nn.ELU(2.0), [-1.729329, -0.786939, 0, 1.5]),
    (nn.SELU(), [-1.520167, -0.69175814, 0, 1.576051]),
    (nn.GELU(), [-0.04550028, -0.15426877, 0, 1.3997892]),
    (nn.GELU(approximation="tanh"), [-0.04540229, -0.15428599, 0, 1.39957225]),
    (nn.SiLU(), [-0.23840584, -0.18877033, 0, 1.22636171]),
    (nn.Swish(2.0), [-0.03597242, -0.13447072, 0, 1.4288609]),
])
def test_activation_values(layer, expected):
    layer.initialize()
    out = layer(mx.nd.array([[-2, -0.5, 0, 1.5]]))
    np.testing.assert_allclose(out.asnumpy()[0], expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("layer,text", [
    (lambda: nn.LeakyReLU(0.2), "LeakyReLU(0.2)"),
    (lambda: nn.SELU(), "SELU(\n\n)"),
])
def test_repr(layer, text):
    assert repr(layer()) == text


@pytest.mark.parametrize("make,message", [
    (lambda: nn.LeakyReLU(-1), "alpha must be at least 0, received -1"),
])
def test_errors(make, message):
    with pytest.raises(AssertionError, match=message):
        make()


def test_gelu_has_two_forms():
    with pytest.raises(AssertionError, match="GELU: approximation must be 'erf' or 'tanh', received 'relu'"):
        nn.GELU(approximation="relu")
