"""Small fully connected layers that follow one another: which become one call, and what they compute."""
import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import autograd, kernels, nd
from mxnet.gluon import nn
from mxnet.graph import GraphRunner
from mxnet.graph.backends.cpu import mlp_fusion
from mxnet.graph.program import Program
from mxnet.graph.tuning import inference_states, policy
from mxnet.kernels.gemm import prepacked_skinny
from mxnet.kernels.gemm.fused_mlp import BETWEEN, MOST, FusedMLP
from mxnet.kernels.runtime.measurement import Outcome
from mxnet.ndarray import dispatch

CPU = torch.device("cpu")
pytestmark = pytest.mark.skipif(kernels.load("gemm/prepacked_skinny") is None, reason="no C++ compiler")


def dense(*widths, activation="relu", **options):
    """Layers from each width to the next, all but the last with an activation."""
    return [nn.Dense(wide, in_units=deep, activation=activation if i < len(widths) - 2 else None, **options)
            for i, (deep, wide) in enumerate(zip(widths, widths[1:]))]


def network(*blocks):
    net = nn.HybridSequential()
    net.add(*blocks)
    net.initialize(mx.init.Normal(0.5))
    for name, parameter in net.collect_params().items():
        if name.endswith("bias"):
            parameter.set_data(nd.random.normal(shape=parameter.shape))
    return net


def data(*shape):
    return nd.random.normal(shape=shape or (3, 12))


def calls_of(net):
    """How many layers each call of a chain stands for."""
    state, = net._cached_op.handle.states.values()
    found = [node.target for node in state.program.graph.nodes if isinstance(node.target, FusedMLP)]
    return [sum(width > 0 for width in chain._integers[:MOST]) for chain in found]


def check(net, x, calls):
    """The network computes what it does step by step, in these calls."""
    expected = net(x).asnumpy()
    net.hybridize(backend="kernels")
    for _ in range(3):
        np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    assert calls_of(net) == calls


def test_layers_become_one_call():
    net = network(*dense(12, 9, 40, 5))
    check(net, data(), [3])
    assert "  kernels: 3 x fully connected layer in one call" in net.explain().splitlines()


def test_one_layer_is_a_call_too():
    net = network(*dense(12, 9))
    check(net, data(), [1])
    assert "  kernels: 1 x fully connected layer" in net.explain().splitlines()


def test_the_last_layer_may_be_rectified_and_one_in_between_not():
    check(network(nn.Dense(9, in_units=12), nn.Dense(7, in_units=9, use_bias=False), nn.Dense(5, in_units=7, activation="relu")), data(), [3])


@pytest.mark.parametrize("between", [lambda F, x: F.relu(x), lambda F, x: F.Activation(x, act_type="relu")], ids=["relu", "Activation"])
def test_relu_by_its_names(between):
    net = network(nn.Dense(9, in_units=12), nn.HybridLambda(between), nn.Dense(5, in_units=9))
    check(net, data(), [2])


@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "softrelu", "softsign"])
def test_another_activation_ends_a_chain(activation):
    net = network(*dense(12, 9, 8), nn.Activation(activation), *dense(8, 7, 6))
    check(net, data(), [2, 2])
    assert "  kernels: 4 x fully connected layer in 2 calls" in net.explain().splitlines()


@pytest.mark.parametrize("between", [lambda F, x: F.clip(x, 0, 6), lambda F, x: F.LeakyReLU(x, slope=0.25), lambda F, x: x * 2,
                                     lambda F, x: F.relu(F.relu(x) - 0.25)], ids=["relu6", "leaky", "product", "more"])
def test_what_only_looks_like_a_relu_ends_a_chain(between):
    check(network(nn.Dense(9, in_units=12), nn.HybridLambda(between), nn.Dense(5, in_units=9)), data(), [1, 1])


def test_more_layers_than_a_call_takes():
    check(network(*dense(12, *[6 + i for i in range(MOST + 2)])), data(), [MOST, 2])
    check(network(*dense(12, *[6 + i for i in range(MOST)])), data(), [MOST])


class Twice(nn.HybridBlock):
    """The result of the first layer is used twice, or returned besides."""

    def __init__(self, use, activation=None):
        super().__init__()
        self.use, self.activation = use, activation
        with self.name_scope():
            self.first, self.second, self.third = nn.Dense(9, in_units=12), nn.Dense(9, in_units=9), nn.Dense(5, in_units=9)

    def hybrid_forward(self, F, x):
        hidden = self.first(x)
        hidden = F.relu(hidden) if self.activation else hidden
        return self.use(F, hidden, self.second(hidden), self.third)


@pytest.mark.parametrize("activation", [None, "relu"])
@pytest.mark.parametrize("use, calls", [
    (lambda F, hidden, second, third: third(second + hidden), [1, 1, 1]),
    (lambda F, hidden, second, third: F.concat(third(second), hidden, dim=1), [1, 2]),
    (lambda F, hidden, second, third: F.broadcast_add(third(second), hidden.sum()), [1, 2])], ids=["sum", "concat", "sum of all"])
def test_a_result_that_is_used_twice_ends_a_chain(use, calls, activation):
    net = Twice(use, activation)
    net.initialize(mx.init.Normal(0.5))
    check(net, data(), calls)


def test_a_result_that_is_returned_besides_ends_a_chain():
    net, x = Twice(lambda F, hidden, second, third: [hidden, third(second)]), data()
    net.initialize(mx.init.Normal(0.5))
    expected = [out.asnumpy() for out in net(x)]
    net.hybridize(backend="kernels")
    for found, wanted in zip(net(x), expected):
        np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-4, atol=1e-5)
    assert calls_of(net) == [1, 2]


def test_a_layer_before_its_relu_that_is_used_besides():
    class Besides(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Dense(9, in_units=12), nn.Dense(9, in_units=9)

        def hybrid_forward(self, F, x):
            hidden = self.first(x)
            return self.second(F.relu(hidden)) - hidden
    net = Besides()
    net.initialize(mx.init.Normal(0.5))
    check(net, data(), [1, 1])


def test_shared_weights():
    first = nn.Dense(12, in_units=12, activation="relu")
    net = network(first, nn.Dense(12, in_units=12, params=first.params), first)
    check(net, data(), [3])
    first.weight.set_data(nd.zeros((12, 12)))
    np.testing.assert_allclose(net(data()).asnumpy(), np.maximum(np.tile(first.bias.data().asnumpy(), (3, 1)), 0), rtol=1e-5)


@pytest.mark.parametrize("write", [lambda p: p.set_data(p.data() * -2), lambda p: p.data().__setitem__(slice(None), 0.5),
                                   lambda p: p.data().as_torch().mul_(3)], ids=["set_data", "in place", "by torch"])
def test_a_weight_that_changes(write):
    net, x = network(*dense(12, 9, 5)), data()
    net[1].weight.data().as_torch()
    check(net, x, [2])
    for parameter in (net[0].weight, net[1].weight, net[1].bias):
        write(parameter)
        found = net(x).asnumpy()
        net.hybridize(False)
        expected = net(x).asnumpy()
        net.hybridize(backend="kernels")
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_weight_that_is_computed_from_the_data_stays_out():
    class Own(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.last = nn.Dense(5, in_units=3)

        def hybrid_forward(self, F, x):
            return self.last(F.FullyConnected(x, x, num_hidden=3, no_bias=True))
    net = Own()
    net.initialize(mx.init.Normal(0.5))
    check(net, data(), [1])


@pytest.mark.parametrize("parts, shape, calls", [
    ([nn.Dense(9, flatten=False), nn.Dense(5, flatten=False)], (2, 3, 12), [2]),
    ([nn.Dense(9, activation="relu"), nn.Dense(5)], (2, 3, 4), [2]),
    ([nn.Dense(9, flatten=False), nn.Dense(5)], (2, 3, 12), [1, 1]),
    ([nn.Dense(9), nn.Dense(5, flatten=False)], (2, 3, 12), [2]),
    ([nn.Dense(9, flatten=False), nn.Dense(5)], (2, 12), [2])], ids=["last axis", "flat", "last axis, then flat", "flat, then last axis", "two axes"])
def test_data_of_more_axes(parts, shape, calls):
    net = nn.HybridSequential()
    net.add(*parts)
    net.initialize(mx.init.Normal(0.5), force_reinit=True)
    check(net, data(*shape), calls)


def test_large_weights_and_many_rows_stay_out(monkeypatch):
    monkeypatch.setattr(mlp_fusion, "SMALL_WEIGHT", 100)
    check(network(*dense(12, 9, 8, 5)), data(), [2])  # 12 x 9 is one of 108
    monkeypatch.setattr(mlp_fusion, "SMALL_WEIGHT", 1 << 20)
    rows = BETWEEN // 9
    check(network(*dense(12, 9, 5)), data(rows, 12), [2])
    check(network(*dense(12, 9, 5)), data(rows + 1, 12), [1])


def test_other_types_and_rounded_weights_stay_out():
    net = network(*dense(12, 9, 5))
    net.cast("float64")
    check(net, data().astype("float64"), [])
    net = network(*dense(12, 9, 5))
    net.hybridize(backend="kernels", weights="bf16")
    net(data())
    assert calls_of(net) == []


def test_without_the_kernel_there_is_no_chain(monkeypatch):
    monkeypatch.setattr(prepacked_skinny, "available", lambda: False)
    check(network(*dense(12, 9, 5)), data(), [])


def test_between_other_layers():
    check(network(nn.LayerNorm(in_channels=12), *dense(12, 9, 5), nn.LayerNorm(in_channels=5), nn.Dense(4, in_units=5)), data(), [2, 1])


def test_training_goes_on_beside_it():
    net, x = network(*dense(12, 9, 5)), data()
    check(net, x, [2])
    with autograd.record():
        net(x).sum().backward()
    assert net[0].weight.grad().asnumpy().any()


def test_a_profile_names_the_layers():
    net = network(*dense(12, 9, 5))
    net.hybridize(backend="kernels")
    net(data())
    told = []
    dispatch.graph_observer = lambda call, *rest: told.append(call)
    try:
        net(data())
    finally:
        dispatch.graph_observer = None
    assert [call.name for call in told] == ["FullyConnected+Activation+FullyConnected"]


# -- who is asked for such graphs ----------------------------------------------------------------------------------------


def lowered(symbol, **shapes):
    names = symbol.list_inputs()
    inferred = dict(zip(symbol.list_arguments(), symbol.infer_shape(**shapes)[0]))
    inputs = [torch.ones(inferred[name]) for name in names]
    return GraphRunner(symbol).lowered(False, CPU, inputs), inputs, [i for i, name in enumerate(names) if name != "data"]


def layer(x, width=4, **options):
    return mx.sym.FullyConnected(x, num_hidden=width, **options)


x = mx.sym.var("data")


@pytest.mark.parametrize("symbol, may, does", [
    (layer(x), True, True), (mx.sym.relu(layer(mx.sym.relu(layer(x)))), True, True), (layer(mx.sym.relu(x)), True, False),
    (mx.sym.Group([layer(x), layer(x)]), True, False), (mx.sym.softmax(layer(x)), False, False), (mx.sym.relu(x), True, False),
    (layer(mx.sym.relu(mx.sym.relu(layer(x)))), True, False), (mx.sym.identity(layer(x)), False, False)],
    ids=["one", "two", "relu first", "two beside", "softmax", "relu alone", "two relus", "copy"])
def test_graphs_that_are_nothing_else(symbol, may, does):
    module, inputs, weights = lowered(symbol, data=(2, 3))
    assert mlp_fusion.may_suit(module) is may
    assert mlp_fusion.suits(Program(module, inputs, weights)) is does
    assert [b.name for b in policy.mlp_candidates(module, inputs, weights, CPU)] == ["kernels"] * does


def test_graphs_of_too_many_layers_or_of_none():
    deep = x
    for _ in range(MOST):
        deep = mx.sym.relu(layer(deep))
    module, inputs, weights = lowered(deep, data=(2, 3))
    assert mlp_fusion.may_suit(module) and mlp_fusion.suits(Program(module, inputs, weights))
    module, inputs, weights = lowered(layer(deep), data=(2, 3))
    assert not mlp_fusion.may_suit(module) and not mlp_fusion.suits(Program(module, inputs, weights))
    module, inputs, weights = lowered(mx.sym.Group([x]), data=(2, 3))
    assert not mlp_fusion.may_suit(module) and not mlp_fusion.suits(Program(module, inputs))


def test_weights_that_may_change_and_other_devices_are_not_asked_for():
    module, inputs, weights = lowered(layer(x), data=(2, 3))
    assert not mlp_fusion.suits(Program(module, inputs))
    assert policy.mlp_candidates(module, inputs, (), CPU) == []
    assert policy.mlp_candidates(module, inputs, weights, torch.device("cuda")) == []


@pytest.mark.parametrize("seconds, kind", [(0.5, inference_states.Compiled), (2.0, inference_states.Native)])
def test_a_contest_takes_them_where_they_are_faster(monkeypatch, seconds, kind):
    monkeypatch.setattr(policy, "candidate_backends", lambda device, all_backends=False: [])
    monkeypatch.setattr(policy, "benchmark", lambda runs, clock, rules: Outcome({k: 1.0 if k == "native" else seconds for k in runs}, 1.0, 0.0))
    net, given = network(*dense(12, 9, 5)), data()
    expected = net(given).asnumpy()
    net.hybridize(static_alloc=True, static_shape=True)
    for _ in range(2):
        np.testing.assert_allclose(net(given).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    state, = net._cached_op.handle.states.values()
    assert type(state) is kind and (kind is inference_states.Native or state.name == "kernels")
