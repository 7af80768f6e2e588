"""Convolutions: shapes, representations and errors."""
import pytest

import mxnet as mx
from layer_checks import check_layer
from mxnet.gluon import nn


@pytest.mark.parametrize("layer,shape,expected", [
    (lambda: nn.Conv1D(4, 3), (2, 3, 10), (2, 4, 8)),
    (lambda: nn.Conv1D(6, 3, strides=2, padding=1, groups=3), (2, 3, 10), (2, 6, 5)),
    (lambda: nn.Conv2D(4, (3, 2), activation="relu"), (1, 3, 8, 8), (1, 4, 6, 7)),
    (lambda: nn.Conv2D(4, 3, strides=2, padding=1, layout="NHWC", use_bias=False), (1, 8, 8, 3), (1, 4, 4, 4)),
    (lambda: nn.Conv2D(4, 3, dilation=2, groups=2), (1, 2, 8, 8), (1, 4, 4, 4)),
    (lambda: nn.Conv3D(2, 2), (1, 3, 4, 4, 4), (1, 2, 3, 3, 3)),
    (lambda: nn.Conv1DTranspose(4, 3, strides=2), (1, 3, 5), (1, 4, 11)),
    (lambda: nn.Conv2DTranspose(4, 3, strides=2, padding=1, output_padding=1), (1, 3, 4, 4), (1, 4, 8, 8)),
    (lambda: nn.Conv2DTranspose(4, 2, groups=2), (1, 6, 4, 4), (1, 4, 5, 5)),
    (lambda: nn.Conv3DTranspose(2, 2), (1, 3, 3, 3, 3), (1, 2, 4, 4, 4)),
    (lambda: nn.ReflectionPad2D(2), (1, 1, 4, 4), (1, 1, 8, 8)),
])
def test_shapes(layer, shape, expected):
    check_layer(layer(), shape, expected)


@pytest.mark.parametrize("layer,text", [
    (lambda: nn.Conv2D(4, 3, padding=1, dilation=2, groups=2, use_bias=False),
     "Conv2D(None -> 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), dilation=(2, 2), groups=2, bias=False)"),
    (lambda: nn.Conv1D(2, 3, activation="relu", in_channels=5), "Conv1D(5 -> 2, kernel_size=(3,), stride=(1,), Activation(relu))"),
    (lambda: nn.Conv2DTranspose(4, 3, in_channels=6), "Conv2DTranspose(4 -> 6, kernel_size=(3, 3), stride=(1, 1))"),
])
def test_repr(layer, text):
    assert repr(layer()) == text


@pytest.mark.parametrize("make,message", [
    (lambda: nn.Conv2D(1, (1, 2, 3)), "kernel_size must be a number or a list of 2 ints"),
    (lambda: nn.Conv2D(1, 3, strides=(1,)), "strides must be a number or a list of 2 ints"),
    (lambda: nn.Conv1D(1, 3, layout="NWC"), "layout must be 'NCW', received 'NWC'"),
    (lambda: nn.Conv3DTranspose(1, 3, layout="NCHW"), "layout must be 'NCDHW' or 'NDHWC', received 'NCHW'"),
    (lambda: nn.Conv2DTranspose(1, 3, output_padding=(1,)), "output_padding must be a number"),
    (lambda: nn.ReflectionPad2D((1, 2)), "padding must be a number or a tuple of 8 ints"),
])
def test_errors(make, message):
    with pytest.raises(AssertionError, match=message):
        make()


def test_names():
    with mx.name.NameManager():
        assert [layer.name for layer in (nn.Conv3D(1, 1), nn.MaxPool2D(), nn.Activation("tanh"), nn.BatchNormReLU(), nn.PReLU())] == [
            "conv0", "pool0", "tanh0", "batchnormrelu0", "prelu0"]
        assert nn.Conv2D(1, 1, activation="relu").act.prefix == "conv1_relu_"
