"""Layers of gluon.contrib."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon.contrib import nn as contrib_nn


@pytest.mark.parametrize("kind", [contrib_nn.Concurrent, contrib_nn.HybridConcurrent])
def test_concurrent(kind):
    net = kind(axis=1)
    net.add(gluon.nn.Dense(2, in_units=3), contrib_nn.Identity(), gluon.nn.Dense(1, in_units=3))
    net.initialize(mx.init.One())
    x = mx.nd.array([[1., 2., 3.]])
    for _ in range(2):
        assert net(x).asnumpy().tolist() == [[6, 6, 1, 2, 3, 6]]
        if kind is contrib_nn.HybridConcurrent:
            net.hybridize()


@pytest.mark.parametrize("layer,shape,expected,text", [
    (contrib_nn.PixelShuffle1D(2), (1, 2, 3), [0, 3, 1, 4, 2, 5], "PixelShuffle1D(2)"),
    (contrib_nn.PixelShuffle2D((1, 2)), (1, 2, 2, 2), [0, 4, 1, 5, 2, 6, 3, 7], "PixelShuffle2D((1, 2))"),
    (contrib_nn.PixelShuffle3D((2, 1, 2)), (1, 4, 1, 1, 2), None, "PixelShuffle3D((2, 1, 2))"),
])
def test_pixel_shuffle(layer, shape, expected, text):
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    n, factors = len(shape) - 2, layer._factors
    split = x.reshape(shape[0], -1, *factors, *shape[2:])
    order = [0, 1] + [a for i in range(n) for a in (2 + n + i, 2 + i)]
    reference = split.transpose(order).reshape(shape[0], split.shape[1], *(s * f for s, f in zip(shape[2:], factors)))
    for hybridize in (False, True):
        layer.hybridize(hybridize)
        out = layer(mx.nd.array(x)).asnumpy()
        np.testing.assert_array_equal(out, reference)
        if expected:
            assert out.ravel().tolist() == expected
    assert repr(layer) == text


def test_pixel_shuffle_factor():
    with pytest.raises(AssertionError, match="must be a number or 2 of them, wrong length 3"):
        contrib_nn.PixelShuffle2D((1, 2, 3))


def test_sync_batch_norm_on_one_device_is_batch_norm():
    x = mx.nd.array(np.sin(np.arange(24)).reshape(2, 3, 4))
    outs = []
    for layer in (contrib_nn.SyncBatchNorm(in_channels=3, num_devices=1), gluon.nn.BatchNorm(in_channels=3)):
        layer.initialize()
        with mx.autograd.record():
            outs.append(layer(x).asnumpy())
    np.testing.assert_allclose(*outs, rtol=1e-5, atol=1e-6)
    with pytest.warns(UserWarning, match="pass num_devices if you train on fewer"):
        contrib_nn.SyncBatchNorm()
