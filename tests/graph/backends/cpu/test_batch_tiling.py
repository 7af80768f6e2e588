"""Graphs whose first layers run a few images at a time: which do, up to where, and that the results are those of the whole batch."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.gluon import nn
from mxnet.graph.backends.cpu import batch_tiling
from mxnet.kernels.conv.prepacked_conv import PrepackedConv


@pytest.fixture(autouse=True)
def small(monkeypatch, kernels_compute_all):
    """Small arrays count as large."""
    monkeypatch.setattr(batch_tiling, "limits", batch_tiling.Limits(20_000, 40_000, 1000, image=0, rereads=0))


def change(monkeypatch, **limits):
    monkeypatch.setattr(batch_tiling, "limits", batch_tiling.limits._replace(**limits))


class Beginning(nn.HybridBlock):
    """Large arrays at first, with a residual and a concatenation; small ones behind."""

    def __init__(self, pooled=True, softmax=False):
        super().__init__()
        self.pooled, self.softmax = pooled, softmax
        self.one, self.two, self.three = (nn.Conv2D(16, 3, padding=1, in_channels=c) for c in (3, 16, 16))
        self.four, self.five = nn.Conv2D(32, 1, strides=4, in_channels=32), nn.Conv2D(8, 1, in_channels=32)
        self.norm = nn.BatchNorm(in_channels=16)

    def hybrid_forward(self, F, x):
        x = F.relu(self.norm(self.one(x)))
        if self.softmax:
            x = F.softmax(x, axis=0)  # looks at all images
        x = F.relu(self.two(x) + x)
        x = F.concat(self.three(x), F.Pooling(x, kernel=(3, 3), pad=(1, 1)), dim=1)
        x = self.four(x)
        if self.pooled:
            x = F.Pooling(x, kernel=(2, 2), pool_type="avg")
        return self.five(x)


def found(net, images=6, **flags):
    """What the network computes, before and after it is hybridized, and what `explain` says of images."""
    net.initialize(mx.init.Xavier())
    x = nd.array(np.random.RandomState(0).uniform(-1, 1, (images, 3, 24, 24)))
    expected = net(x).asnumpy()
    net.hybridize(backend="kernels", **flags)
    for _ in range(3):
        np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    return [line.strip() for line in net.explain().splitlines() if "at a time" in line]


@pytest.mark.parametrize("pooled", [False, True])
def test_the_first_layers_of_a_large_batch(pooled):
    # A part of 40,000 bytes has one image: a concatenation of 32 x 24 x 24 has 73,728.
    assert found(Beginning(pooled)) == [f"kernels: the first {8 + pooled} of {9 + pooled} calls on 1 of 6 images at a time"]


def test_as_many_images_as_a_cache_holds_and_the_batch_is_a_multiple_of(monkeypatch):
    change(monkeypatch, tile=300_000)
    net = Beginning()
    assert found(net) == ["kernels: the first 9 of 10 calls on 3 of 6 images at a time"]
    assert "convolutions, forward: 2 x Winograd F(4x4), 3 x direct" in net.explain()
    fewer = nd.array(np.random.RandomState(1).uniform(-1, 1, (4, 3, 24, 24)))  # compiled for that batch
    result = net(fewer).asnumpy()
    net.hybridize(active=False)
    np.testing.assert_allclose(result, net(fewer).asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reason", ["one image", "small arrays", "one part", "much to multiply", "small images"])
def test_where_the_whole_batch_is_as_fast(reason, monkeypatch):
    if reason == "small arrays":
        change(monkeypatch, large=1 << 30)
    elif reason == "one part":
        change(monkeypatch, tile=1 << 30)
    elif reason == "much to multiply":
        change(monkeypatch, work_per_byte=1)
    elif reason == "small images":
        change(monkeypatch, image=1 << 20)
    assert found(Beginning(), 1 if reason == "one image" else 6) == []


@pytest.mark.parametrize("name, value, calls", [
    ("image", 60_000, 7),  # `four` reads and writes 78,336 bytes of an image; the pooling behind it would need 240,000
    ("rereads", 4, 8),  # `five` reads and writes 4,000 bytes of an image, and has 1,024 of weights
    ("rereads", 100, 8)])  # no convolution is worth it, but pooling, which reads no weights
def test_the_last_layer_that_is_worth_it(name, value, calls, monkeypatch):
    change(monkeypatch, **{name: value})
    assert found(Beginning()) == [f"kernels: the first {calls} of 10 calls on 1 of 6 images at a time"]


def test_what_looks_at_several_images_ends_the_beginning():
    assert found(Beginning(softmax=True)) == ["kernels: the first 1 of 13 calls on 1 of 6 images at a time"]


def test_its_layers_are_found_with_the_others():
    net = Beginning()
    found(net)
    state, = net._cached_op.handle.states.values()
    assert sum(isinstance(target, PrepackedConv) for target in batch_tiling.targets(state.program.graph)) == 5
    assert not any(isinstance(node.target, PrepackedConv) for node in state.program.graph.nodes)
