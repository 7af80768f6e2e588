import gc
import weakref

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import autograd, kernels
from mxnet.gluon import nn
from mxnet.graph.runtime import explicit_gradients
from mxnet.ndarray import dispatch
from mxnet.ops import differentiation

pytestmark = pytest.mark.skipif(kernels.load("gemm/mlp_training") is None or kernels.load("nn/softmax") is None, reason="no C++ compiler")
X, Y = mx.nd.array(np.sin(np.arange(24)).reshape(4, 6)), mx.nd.array([0, 2, 1, 2])


def network(hybridized=True, out=3):
    """Return two layers with fixed weights."""
    net = nn.HybridSequential()
    net.add(nn.Dense(6, activation="tanh", in_units=6), nn.Dense(out, in_units=6))
    net.initialize()
    for i, parameter in enumerate(net.collect_params().values()):
        parameter.set_data(mx.nd.array(np.cos(np.arange(parameter.data().size) + i).reshape(parameter.shape) / 2))
    if hybridized:
        net.hybridize(static_alloc=True, static_shape=True)
    return net


def cross_entropy(hybridized=True):
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    loss.hybridize(hybridized)
    return loss


def gradients(net):
    return [parameter.grad().asnumpy() for parameter in net.collect_params().values()]


def check(compute, out=3):
    """Compare all gradients after ``compute(net, loss)`` with those of blocks that are not hybridized."""
    found = []
    for hybridized in (True, False):
        net = network(hybridized, out)
        result = compute(net, cross_entropy(hybridized))
        found.append([*([] if result is None else [result.asnumpy()]), *gradients(net)])
    assert any(np.abs(a).max() > 1e-3 for a in found[1])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.fixture
def no_autograd(monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("torch's autograd was used")

    monkeypatch.setattr(differentiation, "backward", fail)


def test_torch_is_not_needed_for_a_network_and_its_loss(no_autograd):
    net, loss = network(), cross_entropy()
    with autograd.record():
        losses = loss(net(X), Y)
    losses.backward()
    found = [losses.asnumpy(), *gradients(net)]
    w1, b1, w2, b2 = (torch.tensor(p.data().asnumpy(), dtype=torch.float64, requires_grad=True) for p in net.collect_params().values())
    x, y = torch.tensor(X.asnumpy(), dtype=torch.float64), torch.tensor([0, 2, 1, 2])
    expected = torch.nn.functional.cross_entropy(torch.tanh(x @ w1.t() + b1) @ w2.t() + b2, y, reduction="none")
    expected.sum().backward()
    for a, b in zip(found, [expected.detach(), *[w.grad for w in (w1, b1, w2, b2)]]):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def backward(*heads):
    autograd.backward(list(heads))


def test_operators_of_torch_before_between_and_behind():
    def compute(net, loss):
        factor = mx.nd.ones((1,))
        factor.attach_grad()
        with autograd.record():
            scores = net(mx.nd.sin(X * factor))
            total = loss(scores * 2, Y).sum() + (scores * scores).mean()
        backward(total)
        return factor.grad
    check(compute)


def test_weights_that_torch_reads_too():
    def compute(net, loss):
        with autograd.record():
            decay = sum((p.data() ** 2).sum() for p in net.collect_params().values())
            first = loss(net(X), Y).sum()
            total = first + decay * 0.1
            second = loss(net(X * (1 + decay * 0.01)), Y)
        backward(total, second)
    check(compute)


def test_a_network_called_on_its_own_result():
    def compute(net, loss):
        x = X.copy()
        x.attach_grad()
        with autograd.record():
            once = net(x)
            losses = loss(net(once + once * once), Y)
        backward(losses, once)
        return x.grad
    check(compute, out=6)


def test_gradients_are_added_on_request():
    def compute(net, loss):
        net.collect_params().setattr("grad_req", "add")
        for _ in range(2):
            with autograd.record():
                losses = loss(net(X), Y)
            losses.backward()
    check(compute)


def test_gradients_of_the_head_are_used():
    def compute(net, loss):
        with autograd.record():
            losses = loss(net(X), Y)
        losses.backward(mx.nd.array([1, 0, -2, 3]))
    check(compute)


@pytest.mark.parametrize("create_graph", [True, False])
def test_grad(create_graph):
    def compute(net, loss):
        x = X.copy()
        x.attach_grad()
        with autograd.record():
            scores = net(x)
            losses = loss(scores, Y).sum() + scores.mean()
            slopes = autograd.grad(losses, [x, scores, net[0].weight.data()], create_graph=create_graph)
            penalty = sum((slope ** 2).sum() for slope in slopes)
            if not create_graph:
                penalty = penalty + net(x).sum()
        penalty.backward()
        return mx.nd.concat(*[slope.reshape(-1) for slope in slopes], dim=0)
    check(compute)


def test_a_second_backward():
    net, loss = network(), cross_entropy()
    with autograd.record():
        scores = net(X)
        first, second = loss(scores, Y), loss(scores, Y)
    first.backward(retain_graph=True)
    right = gradients(net)
    first.backward()
    for a, b in zip(gradients(net), right):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(mx.MXNetError, match="not part of a recorded"):
        first.backward()
    with pytest.raises(mx.MXNetError, match="retain_graph=True"):
        second.backward()


def test_functions_of_torch_differentiate_the_result():
    net = network()
    weight = net[1].weight.data()
    with autograd.record():
        out = net(X)
        (out.as_torch() ** 2).sum().backward()
    found = weight.grad.asnumpy()
    with autograd.record():
        total = (net(X) ** 2).sum()
    total.backward()
    np.testing.assert_allclose(found, weight.grad.asnumpy(), rtol=1e-5, atol=1e-6)
    assert np.abs(found).max() > 0.1


def test_gradients_stay_in_their_memory(no_autograd):
    net, loss = network(), cross_entropy()
    places = []
    for _ in range(3):
        with autograd.record():
            losses = loss(net(X), Y)
        losses.backward()
        places.append([parameter.grad().as_torch().data_ptr() for parameter in net.collect_params().values()])
    assert places[1] == places[2] and len(set(places[1])) == 4


def awaited(net):
    """Return the list of (name, gradient) to which each parameter's gradient is added as soon as it is finished."""
    calls = []
    for name, parameter in net.collect_params().items():
        array = parameter.data()
        dispatch.entry_of(array).finished = lambda name=name, array=array: calls.append((name, array.grad.asnumpy()))
    return calls


def test_a_finished_gradient_is_announced_while_the_others_are_computed(no_autograd):
    net, loss = nn.HybridSequential(), cross_entropy()
    net.add(nn.Conv2D(16, 3, in_channels=16), nn.BatchNorm(in_channels=16), nn.Conv2D(16, 3, in_channels=16), nn.BatchNorm(in_channels=16),
            nn.Dense(3, in_units=256))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    x = mx.nd.array(np.sin(np.arange(4096)).reshape(4, 16, 8, 8))
    trained, calls = [p for p in net.collect_params().values() if p.grad_req != "null"], []

    def step(batch):
        with autograd.record():
            losses = loss(net(batch), Y)
        losses.backward()
        return [p.grad().asnumpy() for p in trained]

    before = step(x)
    for i, p in enumerate(trained):
        dispatch.entry_of(p.data()).finished = lambda i=i, p=p: calls.append((i, p.grad().asnumpy(), trained[0].grad().asnumpy()))
    after = step(x * x)
    assert [i for i, *_ in calls] == [8, 9, 6, 7, 4, 5, 2, 3, 0, 1] and (before[0] != after[0]).any()
    for i, gradient, first in calls:
        np.testing.assert_array_equal(gradient, after[i])
        np.testing.assert_array_equal(first, after[0] if i < 2 else before[0])


def test_a_backward_that_fails_leaves_nothing_expected(monkeypatch):
    net = network()
    calls = awaited(net)
    with autograd.record():
        out = net(X)
    run = explicit_gradients.ExplicitGraph.backward

    def fail(*args, **kwargs):
        raise RuntimeError("no")

    monkeypatch.setattr(explicit_gradients.ExplicitGraph, "backward", fail)
    with pytest.raises(mx.MXNetError, match="no"):
        out.backward()
    monkeypatch.setattr(explicit_gradients.ExplicitGraph, "backward", run)
    net.hybridize(False)  # torch records the next call
    with autograd.record():
        out = net(X)
    out.backward()
    assert sorted(name for name, _ in calls) == sorted(net.collect_params())


def twice(net, loss):
    return [loss(net(X), Y) + loss(net(X * 2), Y)]


def on_its_result(net, loss):
    return [loss(net(mx.nd.concat(net(X), X.slice_axis(1, 3, 6), dim=1)), Y)]


def on_a_weight_of_its_own(net, loss):
    return [net(net[0].weight.data())]


def with_decay(net, loss):
    return [loss(net(X), Y).sum() + sum((p.data() ** 2).sum() for p in net.collect_params().values())]


def with_decay_and_a_call_without_influence(net, loss):
    return [*with_decay(net, loss), mx.nd.BlockGrad(net(X)).sum() + net[0].weight.data().sum()]


@pytest.mark.parametrize("heads", [twice, on_its_result, on_a_weight_of_its_own, with_decay, with_decay_and_a_call_without_influence])
def test_a_gradient_of_several_parts_is_announced_once_and_complete(heads):
    net, loss = network(), cross_entropy()
    calls = awaited(net)
    for _ in range(2):
        with autograd.record():
            results = heads(net, loss)
        backward(*results)
    assert sorted(name for name, _ in calls) == sorted([*net.collect_params()] * 2)

    def compute(net, loss):
        for _ in range(2):
            with autograd.record():
                results = heads(net, loss)
            backward(*results)
    check(compute)
    for name, gradient in calls:
        np.testing.assert_array_equal(gradient, net.collect_params()[name].grad().asnumpy())
        assert np.abs(gradient).max() > 1e-2


def test_the_results_of_a_call_are_released_without_a_collection():
    net = network()
    with autograd.record():
        out = net(X)
    total, result = out.sum(), weakref.ref(out._data)
    assert result() is not None and total.shape == (1,)
    gc.disable()
    try:
        del out, total
        assert result() is None
    finally:
        gc.enable()


def test_a_network_in_test_mode_and_monitored_ones_are_recorded_by_torch(monkeypatch):
    net, names, calls, engine = network(), [], [], differentiation.backward
    monkeypatch.setattr(differentiation, "backward", lambda *args: calls.append(1) or engine(*args))
    with autograd.record(train_mode=False):
        out = net(X)
    out.backward()
    right = gradients(net)
    net.register_op_hook(lambda name, operator, array: names.append(name))
    with autograd.record():
        out = net(X)
    out.backward()
    assert names and len(calls) == 2
    for a, b in zip(gradients(net), right):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


class Clipped(autograd.Function):
    """The identity with a gradient that is not linear in that of the result."""

    def forward(self, x):
        return x * 1

    def backward(self, dy):
        return dy.clip(-0.1, 0.1)


@pytest.mark.parametrize("before", [lambda x: Clipped()(x), lambda x: mx.nd.MakeLoss(x * x)])
def test_what_comes_before_several_calls_gets_one_gradient(before):
    def compute(net, loss):
        x = X.copy()
        x.attach_grad()
        with autograd.record():
            start = before(x)
            total = loss(net(start), Y).sum() + loss(net(start), Y).mean() + start.sum()
        total.backward()
        return x.grad
    check(compute)


def test_what_comes_before_several_calls_is_differentiated_once():
    calls = []

    class Counted(autograd.Function):
        def forward(self, x):
            return x * 1

        def backward(self, dy):
            calls.append(dy)
            return dy

    x, net = X.copy(), network()
    x.attach_grad()
    with autograd.record():
        start = Counted()(x)
        total = sum(net(start).sum() for _ in range(3))
    total.backward()
    assert len(calls) == 1


def test_gradients_that_are_inputs_keep_their_values_for_the_backward_pass():
    def compute(net, loss):
        x = X.copy()
        x.attach_grad()
        with autograd.record():
            total = net(x).sum()
        total.backward()
        other = network(net._active)
        with autograd.record():
            product = net(x.grad) * other(x)
        product.backward()
        return x.grad
    check(compute)


def test_a_block_with_two_results_runs_once(monkeypatch):
    runs = []
    run = explicit_gradients.ExplicitGraph.forward
    monkeypatch.setattr(explicit_gradients.ExplicitGraph, "forward", lambda self, *args: runs.append(1) or run(self, *args))

    class Twofold(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x, first, second):
            return [F.tanh(F.FullyConnected(x, w, num_hidden=3, no_bias=True)) for w in (first, second)]

    weights = [mx.nd.ones((3, 6)) / 4 for _ in range(2)]
    for weight in weights:
        weight.attach_grad()
    net = Twofold()
    net.hybridize()
    with autograd.record():
        one, two = net(X, *weights)
        total = one + 2 * two
    total.backward()
    for weight, factor in zip(weights, (1, 2)):
        slopes = 1 - np.tanh(X.asnumpy().sum(1) / 4) ** 2
        np.testing.assert_allclose(weight.grad.asnumpy(), [slopes @ X.asnumpy() * factor] * 3, rtol=1e-5, atol=1e-6)
    assert len(runs) == 1


def test_a_result_without_a_gradient_beside_one_that_has_it():
    class Halves(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x, weight):
            out = F.FullyConnected(x, weight, num_hidden=3, no_bias=True)
            return out, F.BlockGrad(F.tanh(out))

    found = []
    for hybridized in (True, False):
        net, weight = Halves(), mx.nd.ones((3, 6)) / 4
        net.hybridize(hybridized)
        weight.attach_grad()
        with autograd.record():
            out, constant = net(X, weight)
            total = (out * constant).sum() + constant.sum()
        total.backward()
        found.append([total.asscalar(), weight.grad.asnumpy(), constant.asnumpy()])
        with autograd.record():
            out, constant = net(X, weight)
        gradient, = autograd.grad(out, [weight], head_grads=constant)
        found[-1].append(gradient.asnumpy())
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_second_derivatives_of_two_results():
    class Powers(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x, weight):
            out = F.FullyConnected(x, weight, num_hidden=3, no_bias=True)
            return F.tanh(out), F.sigmoid(F.FullyConnected(x, weight * 2, num_hidden=3, no_bias=True))

    found = []
    for hybridized in (True, False):
        net, weight = Powers(), mx.nd.ones((3, 6)) / 4
        net.hybridize(hybridized)
        weight.attach_grad()
        with autograd.record():
            first, second = net(X, weight)
            gradient, = autograd.grad(first.sum() + (second * second).sum(), [weight], create_graph=True)
            penalty = (gradient ** 2).sum() + second.sum()
        penalty.backward()
        found.append([penalty.asscalar(), weight.grad.asnumpy()])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
