"""Captured graphs on a real GPU: they compute what the same network does without them, and are really used."""
import numpy as np
import pytest
import torch

import mxnet as mx
from capture_checks import data, network, same, trained
from gpu_checks import GPU, needs_gpu
from mxnet import autograd, gluon
from mxnet.gluon import nn
from mxnet.gluon.model_zoo import vision
from mxnet.graph.backends.cuda import training_capture

pytestmark = needs_gpu
CAPTURED = "captured as CUDA graphs of the forward and the backward pass"


def convolutional():
    return network(nn.Conv2D(8, 3, in_channels=4), nn.BatchNorm(in_channels=8), nn.Activation("relu"), nn.Conv2D(8, 3, in_channels=8), nn.Flatten(),
                   nn.Dense(3, in_units=128))


NETWORKS = {"convolutional": (convolutional, (5, 4, 8, 8)),
            "fully connected": (lambda: network(nn.Dense(16, activation="relu", in_units=6), nn.Dense(3, in_units=16)), (5, 6)),
            "residual": (lambda: vision.ResNetV1(vision.BasicBlockV1, [1, 1], [8, 8, 16], classes=3, thumbnail=True), (6, 3, 16, 16)),
            "before the addition": (lambda: vision.ResNetV2(vision.BasicBlockV2, [1, 1], [8, 8, 16], classes=3, thumbnail=True), (6, 3, 16, 16))}


@pytest.mark.parametrize("options", [{"momentum": 0.9, "wd": 0.01}, {"optimizer": "adam", "learning_rate": 1e-3}, {"clip": True}])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_learns_the_same(name, options, exact, monkeypatch):
    make, shape = NETWORKS[name]
    batches = data(8, *shape)
    net = make()
    found = trained(net, batches, GPU, True, **options)
    assert CAPTURED in net.explain(), net.explain()
    monkeypatch.setenv("MXNET_ENABLE_CUDA_GRAPHS", "0")
    same(found, trained(make(), batches, GPU, True, **options), 2e-2 if options.get("optimizer") else 5e-3)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_layers_learn_the_same(kind, exact, monkeypatch):
    batches, ends = data(6, 7, 5, 8), []
    for captured in (True, False):
        monkeypatch.setenv("MXNET_ENABLE_CUDA_GRAPHS", str(int(captured)))
        mx.random.seed(1)
        layer = getattr(gluon.rnn, kind)(8, 2, input_size=8)
        layer.initialize(mx.init.Xavier(), ctx=GPU)
        layer.hybridize()
        trainer = gluon.Trainer(layer.collect_params(), "sgd", {"learning_rate": 0.1})
        for batch in batches:
            with autograd.record():
                loss = layer(mx.nd.array(batch, ctx=GPU)).square().sum()
            loss.backward()
            trainer.step(5)
        assert (CAPTURED in layer.explain()) is captured, layer.explain()
        ends.append([p.data(GPU).asnumpy() for p in layer.collect_params().values()])
    for a, b in zip(*ends):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_dropout_draws_other_numbers_in_each_step():
    net = nn.Dropout(0.5)
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.ones((40, 50), ctx=GPU)
    x.attach_grad()
    seen = []
    for _ in range(5):
        with autograd.record():
            y = net(x)
        y.backward()
        kept = y.asnumpy()
        assert set(np.unique(kept)) == {0, 2} and 0.4 < (kept > 0).mean() < 0.6
        np.testing.assert_array_equal(x.grad.asnumpy(), kept)
        assert not any(np.array_equal(kept, other) for other in seen)
        seen.append(kept)
    assert CAPTURED in net.explain()


def test_gradients_of_gradients():
    """A penalty on the gradient, as in WGAN-GP, needs a second derivative, which a captured graph does not have."""
    net = network(nn.Dense(8, activation="tanh", in_units=3), nn.Dense(1, in_units=8))
    found = []
    for hybridized in (True, False):
        mx.random.seed(4)
        net.initialize(mx.init.Xavier(), ctx=GPU, force_reinit=True)
        net.hybridize(hybridized, static_alloc=True, static_shape=True)
        for batch in data(4, 5, 3):
            x = mx.nd.array(batch, ctx=GPU)
            x.attach_grad()
            with autograd.record():
                gradient, = autograd.grad(net(x).sum(), [x], create_graph=True, retain_graph=True)
                penalty = (gradient.square().sum(axis=1).sqrt() - 1).square().sum()
            penalty.backward()
        found.append([p.grad(GPU).asnumpy() for p in net.collect_params().values()])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_a_capture_that_is_impossible_leaves_training_as_it_was():
    class Counts(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.contrib.boolean_mask(x, F.sum(x, axis=1) > 0)

    net = Counts()
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.array([[1, 2], [-3, 1], [0, 4]], ctx=GPU)
    x.attach_grad()
    for _ in range(4):
        with autograd.record():
            y = net(x)
        y.backward()
        assert y.asnumpy().tolist() == [[1, 2], [0, 4]] and x.grad.asnumpy().tolist() == [[1, 1], [0, 0], [1, 1]]
    assert "not as CUDA graphs" in net.explain()


def test_memory_stays_where_it_is():
    net, loss = convolutional(), gluon.loss.SoftmaxCrossEntropyLoss()
    net.initialize(ctx=GPU)
    for block in (net, loss):
        block.hybridize(static_alloc=True, static_shape=True)
    trainer = gluon.Trainer(net.collect_params(), "adam")
    x, y = mx.nd.ones((8, 4, 8, 8), ctx=GPU), mx.nd.ones((8,), ctx=GPU)

    def steps(count):
        for _ in range(count):
            with autograd.record():
                losses = loss(net(x), y)
            losses.backward()
            trainer.step(8)
        mx.nd.waitall()
        del losses
        return torch.cuda.memory_allocated()

    before = steps(10)
    assert steps(300) <= before
    assert all(level.free for level in training_capture.levels(torch.device("cuda", 0)))


def test_networks_in_turns_share_memory():
    """Two networks of which each is differentiated at once take the same level, so that what they leave for backward lies in one place."""
    pairs = [(convolutional(), gluon.loss.L2Loss()) for _ in range(2)]
    for net, loss in pairs:
        net.initialize(mx.init.Xavier(), ctx=GPU)
        for block in (net, loss):
            block.hybridize(static_alloc=True, static_shape=True)
    x, y = mx.nd.ones((8, 4, 8, 8), ctx=GPU), mx.nd.ones((8, 3), ctx=GPU)
    for _ in range(4):
        for net, loss in pairs:
            with autograd.record():
                losses = loss(net(x), y)
            losses.backward()
    expected = []
    for net, loss in pairs:
        net.hybridize(False)
        loss.hybridize(False)
        before = [p.grad(GPU).asnumpy() for p in net.collect_params().values() if p.grad_req != "null"]
        with autograd.record():
            losses = loss(net(x), y)
        losses.backward()
        after = [p.grad(GPU).asnumpy() for p in net.collect_params().values() if p.grad_req != "null"]
        expected.append((before, after))
    for before, after in expected:
        for a, b in zip(before, after):
            np.testing.assert_allclose(a, b, rtol=2e-2, atol=1e-3)
