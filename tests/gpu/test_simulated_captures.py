"""Training with captured graphs, on simulated GPUs and a stand-in for CUDA graphs: the numbers are those of training without them."""
import types

import numpy as np
import pytest
import torch

import mxnet as mx
from capture_checks import data, network, same, trained
from mxnet import autograd, gluon
from mxnet.gluon import nn
from mxnet.graph.backends.cuda import training_capture
from mxnet.ndarray import dispatch
from mxnet.ops import differentiation
from simulated_captures import installed
from simulated_gpus import gpus


@pytest.fixture
def cuda(monkeypatch):
    fake = installed(monkeypatch)
    with gpus():
        yield fake


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9, "wd": 0.01}, {"optimizer": "adam"}, {"clip": True}])
def test_a_network_learns_the_same(cuda, options):
    net = network(nn.Conv2D(4, 3, in_channels=2), nn.BatchNorm(in_channels=4), nn.Activation("relu"), nn.Flatten(), nn.Dense(3, in_units=64))
    batches = data(6, 5, 2, 6, 6)
    found = trained(net, batches, mx.gpu(0), True, **options)
    assert [g.replays for g in cuda.graphs] == [5] * 4  # of the network and of the loss, forward and backward
    assert cuda.pools == 2  # the loss runs while the network waits for its gradients
    same(found, trained(net, batches, mx.gpu(1), False, **options))


def test_a_network_without_batch_norms_learns_the_same(cuda):
    """Its biases are added in place, in memory that the captured graphs share."""
    net = network(nn.Conv2D(4, 3, in_channels=2, activation="relu"), nn.Conv2D(4, 3, padding=1, in_channels=4, activation="relu"), nn.MaxPool2D(),
                  nn.Conv2D(4, 1, in_channels=4), nn.Flatten(), nn.Dense(3, in_units=16))
    batches = data(6, 5, 2, 6, 6)
    found = trained(net, batches, mx.gpu(0), True)
    assert [g.replays for g in cuda.graphs] == [5] * 4 and "fusion: 2 x bias + relu" in net.explain()
    same(found, trained(net, batches, mx.gpu(1), False))


@pytest.mark.parametrize("options", [{"momentum": 0.9, "wd": 0.01}, {"optimizer": "adam"}, {"optimizer": "rmsprop"}, {"clip": True}])
def test_curves_with_and_without_captures_are_equal_to_the_bit(cuda, options, monkeypatch):
    net = network(nn.Conv2D(4, 3, in_channels=2, activation="relu"), nn.MaxPool2D(), nn.Conv2D(4, 1, in_channels=4), nn.BatchNorm(in_channels=4),
                  nn.Activation("relu"), nn.Flatten(), nn.Dense(5, in_units=16, activation="tanh"), nn.Dense(3, in_units=5))
    batches, curves = data(12, 5, 2, 6, 6), []
    for captured in ("1", "0"):
        monkeypatch.setenv("MXNET_ENABLE_CUDA_GRAPHS", captured)
        curves.append(trained(net, batches, mx.gpu(0), True, **options))
    assert [g.replays for g in cuda.graphs] == [11] * 4
    for one, other in zip([curves[0][0], *curves[0][1]], [curves[1][0], *curves[1][1]], strict=True):
        np.testing.assert_array_equal(one, other)


def test_dropout_draws_other_numbers_in_each_step(cuda):
    net = nn.Dropout(0.5)
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.ones((4, 50), ctx=mx.gpu(0))
    x.attach_grad()
    seen = []
    for _ in range(4):
        with autograd.record():
            y = net(x)
        y.backward()
        kept = y.asnumpy()
        assert set(np.unique(kept)) == {0, 2}
        np.testing.assert_array_equal(x.grad.asnumpy(), kept)
        seen.append(kept)
    assert len(cuda.graphs) == 2 and len(cuda.graphs[0].generators) == 1
    assert not any(np.array_equal(a, b) for i, a in enumerate(seen) for b in seen[:i])


def test_gradients_that_add_up(cuda):
    net = network(nn.Dense(3, in_units=4), nn.Dense(2, in_units=3))
    ctx = mx.gpu(0)
    net.initialize(ctx=ctx)
    net.collect_params().setattr("grad_req", "add")
    found = []
    for static in (True, False):
        net.hybridize(static_alloc=static, static_shape=static)
        net.collect_params().zero_grad()
        for batch in data(4, 5, 4):
            with autograd.record():
                y = net(mx.nd.array(batch, ctx=ctx)).square().sum()
            y.backward()
        found.append([p.grad(ctx).asnumpy() for p in net.collect_params().values()])
    assert len(cuda.graphs) == 2
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_gradients_change_their_manner(cuda):
    """What was written by a captured graph is kept where gradients are added to it afterwards."""
    net, ctx = nn.Dense(2, in_units=3), mx.gpu(0)
    net.initialize(mx.init.One(), ctx=ctx)
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.ones((1, 3), ctx=ctx)
    for req in ("write", "add"):
        net.weight.grad_req = req
        for _ in range(3):
            with autograd.record():
                y = net(x)
            y.backward()
    assert net.weight.grad().asnumpy().tolist() == [[3] * 3] * 2


def test_module_trains_the_same(cuda):
    out = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=8, name="fc1")
    out = mx.sym.BatchNorm(out, fix_gamma=False, name="bn")
    out = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.relu(out), num_hidden=3, name="fc2"), mx.sym.var("softmax_label"), name="softmax")
    values, labels = np.concatenate(data(12, 4, 6)), np.arange(48) % 3
    weights = []
    for ctx in (mx.gpu(0), mx.cpu()):
        mx.random.seed(3)
        module = mx.mod.Module(out, context=ctx)
        module.fit(mx.io.NDArrayIter(values, labels, 4), num_epoch=2, initializer=mx.init.One(), optimizer="sgd",
                   optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
        weights.append({k: v.asnumpy() for k, v in {**module.get_params()[0], **module.get_params()[1]}.items()})
    assert len(cuda.graphs) == 2 and cuda.graphs[0].replays == 24 - training_capture.PATIENCE
    for name, value in weights[0].items():
        np.testing.assert_allclose(value, weights[1][name], rtol=1e-4, atol=1e-5)


def test_a_value_may_be_read_between_forward_and_step(cuda):
    net, ctx = nn.Dense(2, in_units=3), mx.gpu(0)
    net.initialize(mx.init.One(), ctx=ctx)
    net.hybridize(static_alloc=True, static_shape=True)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1})
    x, kept = mx.nd.ones((1, 3), ctx=ctx), []
    for _ in range(4):
        with autograd.record():
            y = net(x)
        kept.append((y, y.asnumpy()))
        y.backward()
        weight = net.weight.data().asnumpy()
        trainer.step(1)
        np.testing.assert_array_equal(net.weight.data().asnumpy(), weight - 1)
    for y, value in kept:
        np.testing.assert_array_equal(y.asnumpy(), value)
    assert [v.tolist() for _, v in kept] == [[[3, 3]], [[-1, -1]], [[-5, -5]], [[-9, -9]]]


def test_two_networks_and_one_of_them_twice(cuda):
    """As adversarial networks are trained: steps of one and the other, and a discriminator that sees two batches."""
    ctx = mx.gpu(0)
    make, judge = nn.Dense(3, in_units=2), network(nn.Dense(4, in_units=3, activation="tanh"), nn.Dense(1, in_units=4))
    ends = []
    for static in (True, False):
        mx.random.seed(2)
        for net in (make, judge):
            net.initialize(mx.init.Xavier(), ctx=ctx, force_reinit=True)
            net.hybridize(static_alloc=static, static_shape=static)
        trainers = [gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05}) for net in (make, judge)]
        for real, noise in zip(data(5, 4, 3), data(5, 4, 2)):
            real, noise = mx.nd.array(real, ctx=ctx), mx.nd.array(noise, ctx=ctx)
            with autograd.record():
                loss = judge(real).square().mean() - judge(make(noise).detach()).mean()
            loss.backward()
            trainers[1].step(1)
            with autograd.record():
                loss = judge(make(noise)).mean()
            loss.backward()
            trainers[0].step(1)
        ends.append([p.data(ctx).asnumpy() for net in (make, judge) for p in net.collect_params().values()])
    assert cuda.graphs
    for a, b in zip(*ends):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_memory_goes_with_the_network(cuda):
    net, ctx = nn.Dense(2, in_units=3), mx.gpu(0)
    net.initialize(ctx=ctx)
    net.hybridize(static_alloc=True, static_shape=True)
    for _ in range(3):
        with autograd.record():
            y = net(mx.nd.ones((1, 3), ctx=ctx))
        y.backward()
    assert len(cuda.graphs) == 2
    level, = training_capture.levels(torch.device("cuda", 0))
    assert level.free


class TwoResults(gluon.HybridBlock):
    """A recurrent network's kind: what the loss reads, and a state for the next call."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(3, in_units=4, activation="relu"), nn.Dense(3, in_units=3)

    def hybrid_forward(self, F, x):
        state = self.first(x)
        return self.second(state), state


@pytest.mark.parametrize("results", [1, 2])
def test_captured_passes_need_no_engine(cuda, monkeypatch, results):
    engine, run = [], differentiation._engine.run_backward
    monkeypatch.setattr(differentiation, "_engine", types.SimpleNamespace(run_backward=lambda *a, **k: engine.append(1) or run(*a, **k)))
    net, loss = TwoResults(), gluon.loss.SoftmaxCrossEntropyLoss()
    net.initialize(mx.init.One(), ctx=mx.gpu(0))
    for block in (net, loss):
        block.hybridize(static_alloc=True, static_shape=True)
    counts = []
    for batch in data(5, 4, 4):
        x, before = mx.nd.array(batch, ctx=mx.gpu(0)), len(engine)
        with autograd.record():
            out, state = net(x)
            heads = [loss(out, mx.nd.zeros(4, ctx=mx.gpu(0)))] + [state] * (results - 1)
        autograd.backward(heads)
        counts.append(len(engine) - before)
        expected = (results - 1) * 4 * np.maximum(batch.sum(1), 0).astype(bool).sum() / 4
        np.testing.assert_allclose(state.asnumpy(), np.maximum(batch.sum(1, keepdims=True), 0) @ np.ones((1, 3)), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(net.first.bias.grad(mx.gpu(0)).asnumpy(), [expected] * 3, rtol=1e-5, atol=1e-5)
    assert counts == [1, 1 + 6, 0, 0, 0]  # the second warms up and captures two graphs


def test_a_part_of_a_gradient_by_torch_is_added_to_that_of_a_captured_pass(cuda):
    """A penalty that is switched on after some steps: the array of the gradient lies in the capture's memory by then."""
    net, ctx = nn.Dense(1, in_units=2), mx.gpu(0)
    net.initialize(mx.init.One(), ctx=ctx)
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.array([[1, 2]], ctx=ctx)
    for i in range(6):
        with autograd.record():
            total = net(x).sum()
            if i in (3, 4):
                total = total + 50 * net.weight.data(ctx).square().sum()
        total.backward()
        assert net.weight.grad(ctx).asnumpy().tolist() == ([[101, 102]] if i in (3, 4) else [[1, 2]])
    assert cuda.graphs[0].replays == 5


def test_a_penalty_of_gradients_after_captured_steps(cuda):
    net, ctx = nn.Dense(2, in_units=2, activation="tanh"), mx.gpu(0)
    x, ends = mx.nd.array([[0.5, -0.25]], ctx=ctx), []
    x.attach_grad()
    net.initialize(mx.init.Constant(0.5), ctx=ctx)
    for static in (True, False):
        net.hybridize(static, static_alloc=True, static_shape=True)
        for i in range(5):
            with autograd.record():
                out = net(x).sum()
                if i == 3:
                    slope, = autograd.grad(out, [x], create_graph=True)
                    out = out + (slope ** 2).sum()
            out.backward()
            ends.append([net.weight.grad(ctx).asnumpy(), x.grad.asnumpy()])
    for one, other in zip(ends[:5], ends[5:]):
        for a, b in zip(one, other):
            np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("what", ["other data", "attached again", "another grad_req"])
def test_gradients_that_a_program_has_are_not_overwritten(cuda, what):
    net, ctx = nn.Dense(2, in_units=3), mx.gpu(0)
    net.initialize(mx.init.One(), ctx=ctx)
    net.hybridize(static_alloc=True, static_shape=True)
    x, gradients = mx.nd.ones((1, 3), ctx=ctx), []
    for i in range(5):
        if what == "other data":
            x = mx.nd.ones((1, 3), ctx=ctx)
        if what == "another grad_req":
            net.weight.grad_req = "null"
            net.weight.grad_req = "write"
        else:
            x.attach_grad()
        with autograd.record():
            y = net(x)
        y.backward(mx.nd.ones((1, 2), ctx=ctx) * (i + 1))
        gradients.append(net.weight.grad(ctx) if what == "another grad_req" else x.grad)
    factor = 1 if what == "another grad_req" else 2
    assert [g.asnumpy().flat[0] for g in gradients] == [factor * (i + 1) for i in range(5)]
    assert len(cuda.graphs) == 2


def test_executors_of_one_network_have_gradients_of_their_own(cuda, monkeypatch):
    monkeypatch.setenv("MXNET_ENABLE_CUDA_GRAPHS", "1")
    out = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, no_bias=True, name="fc")
    one = out.simple_bind(mx.gpu(0), data=(1, 3), grad_req="write")
    one.arg_dict["fc_weight"][:] = 1
    other = one.reshape(allow_up_sizing=True, data=(2, 3)).reshape(data=(1, 3))
    for executor, factor in ((one, 1), (other, 5)):
        for _ in range(3):
            executor.forward(is_train=True)
            executor.backward(mx.nd.ones((1, 2), ctx=mx.gpu(0)) * factor)
    assert one.grad_dict["data"].asnumpy().tolist() == [[2] * 3] and other.grad_dict["data"].asnumpy().tolist() == [[10] * 3]


@pytest.mark.parametrize("what", ["twice", "in part", "again", "between"])
def test_the_engine_differentiates_what_does_not_consist_of_captured_passes(cuda, what):
    net, ctx = nn.Dense(2, in_units=2), mx.gpu(0)
    net.initialize(mx.init.One(), ctx=ctx)
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.array([[1, 2]], ctx=ctx)
    for _ in range(3):
        with autograd.record():
            y = net(x)
            z = net(y) if what == "twice" else y * 3 if what == "between" else y
        if what == "again":
            z.backward(retain_graph=True)
        z.backward(None if what != "in part" else mx.nd.array([[1, 0]], ctx=ctx))
        found = net.weight.grad().asnumpy().tolist()
    assert found == {"twice": [[5, 7], [5, 7]], "in part": [[1, 2], [0, 0]], "again": [[1, 2], [1, 2]], "between": [[3, 6], [3, 6]]}[what]


def test_a_profile_names_the_operators_of_what_is_captured(cuda, monkeypatch):
    net, ctx, seen = nn.Dense(2, in_units=2), mx.gpu(0), []
    net.initialize(ctx=ctx)
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.ones((1, 2), ctx=ctx)
    for observer in (None, lambda call, *_: seen.append(call.name), None):
        monkeypatch.setattr(dispatch, "graph_observer", observer)
        for _ in range(2):
            with autograd.record():
                y = net(x)
            y.backward()
            net(x)
    assert seen == ["FullyConnected"] * 4
    assert all(g.replays for g in cuda.graphs) and len(cuda.graphs) == 3


def test_a_graph_that_draws_repeats_itself_from_a_seed(cuda):
    """In training, which is captured in the end, and in inference."""
    ctx, y = mx.gpu(0), mx.sym.random.normal(shape=(4, 5)) + mx.sym.var("x")
    executor = y.bind(ctx, {"x": mx.nd.zeros((4, 5), ctx=ctx)}, {"x": mx.nd.zeros((4, 5), ctx=ctx)})
    found = []
    for is_train in (True, False, True, True, False):
        mx.random.seed(128)
        executor.forward(is_train=is_train)
        if is_train:
            executor.backward(executor.outputs[0])
        found.append(executor.outputs[0].asnumpy().tolist())
    assert all(f == found[0] for f in found)
