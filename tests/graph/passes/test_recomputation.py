import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import autograd
from mxnet.gluon import nn
from mxnet.graph.passes import fusion, recomputation
from mxnet.ops.nn.training_layers import add_bias
from residual import lowered, numbers


def network():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        for _ in range(6):
            net.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"))
        net.add(nn.Dropout(0.5), nn.Dense(4), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    return net


def step(mirror, monkeypatch, x):
    """What a step of training leaves: loss, gradients, moving averages, the bytes kept for backward, and what explain() says."""
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", mirror)
    np.random.seed(0)
    mx.random.seed(0)
    net = network()
    net.hybridize()
    kept = {}

    def keep(t):
        kept[t.data_ptr()] = t.numel() * t.element_size()
        return t

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t), autograd.record():
        loss = (net(x) ** 2).sum()
    loss.backward()
    values = [p.grad().asnumpy() if p.grad_req != "null" else p.data().asnumpy() for p in net.collect_params().values()]
    return float(loss.asscalar()), values, sum(kept.values()), net.explain()


def test_a_step_computes_the_same_and_keeps_less(monkeypatch):
    x = mx.nd.array(np.random.RandomState(1).normal(size=(4, 3, 16, 16)))
    loss, values, kept, explained = step("0", monkeypatch, x)
    again, mirrored, kept_less, mirrored_explained = step("1", monkeypatch, x)
    assert again == pytest.approx(loss, rel=1e-6)
    assert len(values) == len(mirrored)
    for a, b in zip(values, mirrored):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert kept_less < 0.6 * kept
    assert "computed again in backward" in mirrored_explained and "computed again" not in explained


def test_moving_averages_change_once(monkeypatch):
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    data = mx.sym.var("data")
    for i in range(4):
        data = mx.sym.BatchNorm(mx.sym.tanh(data), name=f"bn{i}", momentum=0.5, fix_gamma=False)
    executor = data.simple_bind(mx.cpu(), data=(4, 2))
    executor.arg_dict["data"][:] = np.arange(8).reshape(4, 2)
    executor.arg_dict["bn0_gamma"][:] = 1
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((4, 2)))
    expected = 0.5 * np.tanh(np.arange(8).reshape(4, 2)).mean(axis=0)
    np.testing.assert_allclose(executor.aux_dict["bn0_moving_mean"].asnumpy(), expected, rtol=1e-6)


def test_what_draws_is_never_run_twice(monkeypatch):
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    x = mx.sym.var("x")
    y = mx.sym.Dropout(x, p=0.5)
    for _ in range(6):
        y = mx.sym.sin(y * 1.5)
    y = mx.sym.Dropout(y, p=0.5)
    executor = y.simple_bind(mx.cpu(), x=(500,))
    executor.arg_dict["x"][:] = 0
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((500,)))
    slope = executor.grad_dict["x"].asnumpy()
    values = sorted({round(float(v), 2) for v in slope})
    assert values == [0, round(4 * 1.5 ** 6, 2)]
    assert 0.15 < (slope != 0).mean() < 0.35


def test_force_mirroring_asks_for_some_nodes(monkeypatch):
    monkeypatch.delenv("MXNET_BACKWARD_DO_MIRROR", raising=False)

    def bound(**attributes):
        x = mx.sym.var("x")
        with mx.AttrScope(**attributes):
            y = mx.sym.sigmoid(mx.sym.tanh(mx.sym.exp(x)))
        executor = y.simple_bind(mx.cpu(), x=(3,))
        executor.arg_dict["x"][:] = [-1, 0, 1]
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones((3,)))
        return executor

    plain, marked = bound(), bound(force_mirroring="True")
    np.testing.assert_array_equal(plain.grad_dict["x"].asnumpy(), marked.grad_dict["x"].asnumpy())
    assert "1 parts with 3 operators are computed again" in marked._runner.explain()
    assert "computed again" not in plain._runner.explain()


def test_a_graph_may_be_differentiated_again(monkeypatch):
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    net = nn.HybridLambda(lambda F, x: F.exp(F.sin(F.tanh(F.sigmoid(F.sqrt(F.exp(x)))))))
    net.hybridize()
    x = mx.nd.array([0.3, 0.7])
    x.attach_grad()
    with autograd.record():
        y = net(x)
    y.backward(retain_graph=True)
    first = x.grad.asnumpy().copy()
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), first)
    assert (first != 0).all()


def test_a_part_that_begins_with_a_bias_does_not_overwrite_its_input():
    out = mx.sym.var("x")
    for i in range(9):
        out = mx.sym.relu(mx.sym.Convolution(out, kernel=(1, 1), num_filter=2, name=f"conv{i}"))
    module, plain = lowered(out), lowered(out)
    fusion.fuse_biases(module)
    recomputation.apply(module, True)
    targets = [[n.target for n in part.module.graph.nodes if n.op == "call_function"] for part in module.children()]
    assert any(part[:2] == [torch.clone, add_bias] for part in targets)
    inputs = [numbers(1, 2, 3, 3, seed=0), *(numbers(*shape, seed=i) for i in range(9) for shape in ((2, 2, 1, 1), (2,)))]
    results = []
    for graph in (module, plain):
        leaves = [t.clone().requires_grad_() for t in inputs]
        out, = graph(*leaves)
        results.append([out, *torch.autograd.grad(out.square().sum(), leaves)])
    torch.testing.assert_close(*results)


def test_force_mirroring_includes_operators_that_were_fused():
    with mx.AttrScope(force_mirroring="True"):
        out = mx.sym.relu(mx.sym.Convolution(mx.sym.var("x"), kernel=(1, 1), num_filter=2))
        out = mx.sym.tanh(mx.sym.Convolution(mx.sym.BatchNorm(out), kernel=(1, 1), num_filter=2))
    module = lowered(out)
    fusion.fuse_batch_norms(module)
    fusion.fuse_biases(module)
    assert recomputation.marked(module)
    assert recomputation.apply(module, False) == ["memory: 1 parts with 6 operators are computed again in backward"]
