"""Normalizing layers."""
import numpy as np
import pytest

import mxnet as mx
from layer_checks import check_layer
from mxnet.gluon import nn


@pytest.mark.parametrize("layer,shape,expected", [
    (lambda: nn.BatchNorm(), (2, 3, 4, 4), (2, 3, 4, 4)),
    (lambda: nn.BatchNorm(axis=-1, scale=False, center=False), (2, 3, 4), (2, 3, 4)),
    (lambda: nn.BatchNormReLU(), (2, 3, 4, 4), (2, 3, 4, 4)),
    (lambda: nn.InstanceNorm(), (2, 3, 4), (2, 3, 4)),
    (lambda: nn.InstanceNorm(axis=2), (2, 3, 4), (2, 3, 4)),
    (lambda: nn.LayerNorm(), (2, 3, 4), (2, 3, 4)),
    (lambda: nn.GroupNorm(2), (2, 4, 3), (2, 4, 3)),
])
def test_shapes(layer, shape, expected):
    check_layer(layer(), shape, expected)


@pytest.mark.parametrize("layer,text", [
    (lambda: nn.BatchNorm(scale=False), "BatchNorm(axis=1, eps=1e-05, momentum=0.9, fix_gamma=True, use_global_stats=False, in_channels=None)"),
    (lambda: nn.InstanceNorm(), "InstanceNorm(eps=1e-05, axis=1, center=True, scale=False, in_channels=0)"),
    (lambda: nn.LayerNorm(in_channels=3), "LayerNorm(eps=1e-05, axis=-1, center=True, scale=True, in_channels=3)"),
    (lambda: nn.GroupNorm(2), "GroupNorm(eps=1e-05, num_groups=2, center=True, scale=True)"),
])
def test_repr(layer, text):
    assert repr(layer()) == text


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


def test_group_norm_by_channel():
    x = mx.nd.array([[[1.0], [3.0], [10.0], [30.0]]])
    layer = nn.GroupNorm(2, epsilon=0, in_channels=0)
    layer.initialize()
    assert layer(x).asnumpy().ravel().tolist() == pytest.approx([-1, 1, -1, 1]) and layer.gamma.shape == (4,)
    layer.beta.set_data(mx.nd.array([0, 1, 2, 3]))
    layer.hybridize()
    assert layer(x).asnumpy().ravel().tolist() == pytest.approx([-1, 2, 1, 4])
    mx.util.set_version("2.0")
    assert nn.GroupNorm(2, in_channels=4).gamma.shape == (4,) and nn.GroupNorm(2)._by_channel
    mx.util.set_version("1.9")
    assert nn.GroupNorm(2).gamma.shape == (2,)
