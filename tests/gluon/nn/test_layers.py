"""Layers: shapes, values, representations and errors."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import nn


def check(layer, shape, expected):
    """The layer gives `expected`'s shape eagerly and traced, with the same values, and its gradient reaches the input."""
    layer.initialize()
    x = mx.nd.array(np.sin(np.arange(np.prod(shape))).reshape(shape))
    eager = layer(x)
    assert eager.shape == expected
    layer.hybridize()
    x.attach_grad()
    with mx.autograd.record(train_mode=False):
        traced = layer(x)
    traced.backward()
    np.testing.assert_allclose(traced.asnumpy(), eager.asnumpy(), rtol=1e-5, atol=1e-6)
    assert x.grad.shape == shape


@pytest.mark.parametrize("layer,shape,expected", [
    (lambda: nn.Dense(3), (2, 4, 5), (2, 3)),
    (lambda: nn.Dense(3, flatten=False, use_bias=False, activation="relu"), (2, 4, 5), (2, 4, 3)),
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
    (lambda: nn.MaxPool1D(), (1, 2, 7), (1, 2, 3)),
    (lambda: nn.MaxPool1D(3, ceil_mode=True), (1, 2, 7), (1, 2, 3)),
    (lambda: nn.MaxPool2D(3, 2, 1), (1, 2, 7, 7), (1, 2, 4, 4)),
    (lambda: nn.MaxPool2D((2, 3), layout="NHWC"), (1, 6, 6, 2), (1, 3, 2, 2)),
    (lambda: nn.MaxPool3D(), (1, 2, 4, 4, 4), (1, 2, 2, 2, 2)),
    (lambda: nn.AvgPool1D(2, 1), (1, 2, 5), (1, 2, 4)),
    (lambda: nn.AvgPool2D(3, 2, 1, count_include_pad=False), (1, 2, 7, 7), (1, 2, 4, 4)),
    (lambda: nn.AvgPool3D(2, ceil_mode=True), (1, 2, 5, 5, 5), (1, 2, 3, 3, 3)),
    (lambda: nn.GlobalMaxPool1D(), (1, 2, 5), (1, 2, 1)),
    (lambda: nn.GlobalAvgPool2D(), (1, 2, 5, 5), (1, 2, 1, 1)),
    (lambda: nn.GlobalMaxPool2D(layout="NHWC"), (1, 5, 5, 2), (1, 1, 1, 2)),
    (lambda: nn.GlobalAvgPool3D(), (1, 2, 3, 3, 3), (1, 2, 1, 1, 1)),
    (lambda: nn.ReflectionPad2D(2), (1, 1, 4, 4), (1, 1, 8, 8)),
    (lambda: nn.Flatten(), (2, 3, 4), (2, 12)),
    (lambda: nn.Dropout(0.5), (2, 3), (2, 3)),
    (lambda: nn.Dropout(0), (2, 3), (2, 3)),
    (lambda: nn.BatchNorm(), (2, 3, 4, 4), (2, 3, 4, 4)),
    (lambda: nn.BatchNorm(axis=-1, scale=False, center=False), (2, 3, 4), (2, 3, 4)),
    (lambda: nn.BatchNormReLU(), (2, 3, 4, 4), (2, 3, 4, 4)),
    (lambda: nn.InstanceNorm(), (2, 3, 4), (2, 3, 4)),
    (lambda: nn.InstanceNorm(axis=2), (2, 3, 4), (2, 3, 4)),
    (lambda: nn.LayerNorm(), (2, 3, 4), (2, 3, 4)),
    (lambda: nn.GroupNorm(2), (2, 4, 3), (2, 4, 3)),
    (lambda: nn.Activation("softsign"), (2, 3), (2, 3)),
    (lambda: nn.LeakyReLU(0.1), (2, 3), (2, 3)),
    (lambda: nn.PReLU(in_channels=3), (2, 3), (2, 3)),
    (lambda: nn.HybridLambda("tanh"), (2, 3), (2, 3)),
])
def test_shapes(layer, shape, expected):
    check(layer(), shape, expected)


@pytest.mark.parametrize("layer,expected", [  # of -2, -0.5, 0, 1.5
    (nn.Activation("relu"), [0, 0, 0, 1.5]),
    (nn.LeakyReLU(0.1), [-0.2, -0.05, 0, 1.5]),
    (nn.PReLU(), [-0.5, -0.125, 0, 1.5]),
    (nn.ELU(2.0), [-1.729329, -0.786939, 0, 1.5]),
    (nn.SELU(), [-1.520167, -0.69175814, 0, 1.576051]),
    (nn.GELU(), [-0.04550028, -0.15426877, 0, 1.3997892]),
    (nn.Swish(2.0), [-0.03597242, -0.13447072, 0, 1.4288609]),
    (nn.Lambda(lambda x: x * 3), [-6, -1.5, 0, 4.5]),
    (nn.HybridLambda(lambda F, x: F.square(x)), [4, 0.25, 0, 2.25]),
])
def test_activation_values(layer, expected):
    layer.initialize()
    out = layer(mx.nd.array([[-2, -0.5, 0, 1.5]]))
    np.testing.assert_allclose(out.asnumpy()[0], expected, rtol=2e-5, atol=1e-6)


def test_embedding():
    layer = nn.Embedding(4, 2)
    layer.initialize()
    layer.weight.set_data(mx.nd.arange(8).reshape((4, 2)))
    with mx.autograd.record():
        out = layer(mx.nd.array([[1, 3], [1, 0]]))
    out.backward()
    assert out.asnumpy().tolist() == [[[2, 3], [6, 7]], [[2, 3], [0, 1]]]
    assert layer.weight.grad().asnumpy().tolist() == [[1, 1], [2, 2], [0, 0], [1, 1]]


@pytest.mark.parametrize("hybridize", [False, True])
def test_batch_norm_statistics(hybridize):
    layer = nn.BatchNorm(momentum=0.9, epsilon=0, in_channels=1)
    layer.initialize()
    if hybridize:
        layer.hybridize()
    x = mx.nd.array([[1.], [3.]])
    with mx.autograd.record():
        out = layer(x)
    assert out.asnumpy().tolist() == [[-1], [1]]
    np.testing.assert_allclose([layer.running_mean.data().asscalar(), layer.running_var.data().asscalar()], [0.2, 1.0], rtol=1e-6)
    np.testing.assert_allclose(layer(x).asnumpy(), [[0.8], [2.8]], rtol=1e-6)


def test_batch_norm_without_scale_or_center():
    layer = nn.BatchNorm(scale=False, center=False)
    assert layer.gamma.grad_req == layer.beta.grad_req == "null"
    layer.gamma.grad_req = "write"
    assert layer.gamma.grad_req == "null"  # for good
    norm = nn.LayerNorm(scale=False)
    norm.gamma.grad_req = "write"
    assert norm.gamma.grad_req == "write"


def test_batch_norm_stays_float32():
    layer = nn.BatchNorm(in_channels=2)
    layer.cast("float16")
    assert layer.gamma.dtype == "float32"
    layer.cast("float64")
    assert layer.gamma.dtype == "float64"


@pytest.mark.parametrize("layer,text", [
    (lambda: nn.Dense(3, in_units=2, activation="relu"), "Dense(2 -> 3, Activation(relu))"),
    (lambda: nn.Conv2D(4, 3, padding=1, dilation=2, groups=2, use_bias=False),
     "Conv2D(None -> 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), dilation=(2, 2), groups=2, bias=False)"),
    (lambda: nn.Conv1D(2, 3, activation="relu", in_channels=5), "Conv1D(5 -> 2, kernel_size=(3,), stride=(1,), Activation(relu))"),
    (lambda: nn.Conv2DTranspose(4, 3, in_channels=6), "Conv2DTranspose(4 -> 6, kernel_size=(3, 3), stride=(1, 1))"),
    (lambda: nn.AvgPool2D(ceil_mode=True),
     "AvgPool2D(size=(2, 2), stride=(2, 2), padding=(0, 0), ceil_mode=True, global_pool=False, pool_type=avg, layout=NCHW)"),
    (lambda: nn.GlobalMaxPool1D(),
     "GlobalMaxPool1D(size=(1,), stride=(1,), padding=(0,), ceil_mode=True, global_pool=True, pool_type=max, layout=NCW)"),
    (lambda: nn.BatchNorm(scale=False), "BatchNorm(axis=1, eps=1e-05, momentum=0.9, fix_gamma=True, use_global_stats=False, in_channels=None)"),
    (lambda: nn.InstanceNorm(), "InstanceNorm(eps=1e-05, axis=1, center=True, scale=False, in_channels=0)"),
    (lambda: nn.LayerNorm(in_channels=3), "LayerNorm(eps=1e-05, axis=-1, center=True, scale=True, in_channels=3)"),
    (lambda: nn.GroupNorm(2), "GroupNorm(eps=1e-05, num_groups=2, center=True, scale=True)"),
    (lambda: nn.Embedding(3, 4), "Embedding(3 -> 4, float32)"),
    (lambda: nn.Dropout(0.3), "Dropout(p = 0.3, axes=())"),
    (lambda: nn.LeakyReLU(0.2), "LeakyReLU(0.2)"),
    (lambda: nn.Flatten(), "Flatten"),
    (lambda: nn.HybridLambda("tanh"), "HybridLambda(tanh)"),
    (lambda: nn.SELU(), "SELU(\n\n)"),
])
def test_repr(layer, text):
    assert repr(layer()) == text


def test_names():
    with mx.name.NameManager():
        assert [layer.name for layer in (nn.Conv3D(1, 1), nn.MaxPool2D(), nn.Activation("tanh"), nn.BatchNormReLU(), nn.PReLU())] == [
            "conv0", "pool0", "tanh0", "batchnormrelu0", "prelu0"]
        assert nn.Conv2D(1, 1, activation="relu").act.prefix == "conv1_relu_"


@pytest.mark.parametrize("make,message", [
    (lambda: nn.Conv2D(1, (1, 2, 3)), "kernel_size must be a number or a list of 2 ints"),
    (lambda: nn.Conv2D(1, 3, strides=(1,)), "strides must be a number or a list of 2 ints"),
    (lambda: nn.Conv1D(1, 3, layout="NWC"), "Only supports 'NCW' layout for now, received 'NWC'"),
    (lambda: nn.Conv3DTranspose(1, 3, layout="NCHW"), "Only supports 'NCDHW' and 'NDHWC' layout for now"),
    (lambda: nn.Conv2DTranspose(1, 3, output_padding=(1,)), "output_padding must be a number"),
    (lambda: nn.MaxPool2D(layout="NCW"), "2D pooling has layouts NCHW and NHWC, received 'NCW'"),
    (lambda: nn.AvgPool1D((2, 2)), "pool_size must be a number or a list of 1 ints"),
    (lambda: nn.LeakyReLU(-1), "alpha must be at least 0, received -1"),
    (lambda: nn.ReflectionPad2D((1, 2)), "padding must be a number or a tuple of 8 ints"),
    (lambda: nn.Lambda("no_such_operator"), "Function name no_such_operator is not found in ndarray"),
    (lambda: nn.HybridLambda("no_such_operator"), "is not found in symbol/ndarray"),
])
def test_errors(make, message):
    with pytest.raises(AssertionError, match=message):
        make()


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
