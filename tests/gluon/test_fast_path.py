"""Calls of a traced block like the one before: they go the short way where they may, and nobody can tell but by the time."""
import copy
import pickle
import threading

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import autograd, nd
from mxnet.gluon import nn
from mxnet.gluon.cached_op import CachedOp
from mxnet.graph.tuning import policy
from mxnet.graph.weight_guard import WeightGuard
from mxnet.ndarray import dispatch
from recorded import record_of


@pytest.fixture
def long_calls(monkeypatch):
    """The calls that went the long way."""
    calls, way = [], CachedOp.__call__

    def counted(op, *args, **kwargs):
        calls.append(args)
        return way(op, *args, **kwargs)
    monkeypatch.setattr(CachedOp, "__call__", counted)
    return calls


@pytest.fixture(params=[{"backend": "kernels"}, {"backend": "openvino"}, {"static_alloc": True, "static_shape": True}],
                ids=["kernels", "openvino", "contest"])
def net(request):
    if request.param.get("backend") == "openvino":
        pytest.importorskip("openvino")
    return settled(network(), **request.param)


def network():
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=3, activation="relu"), nn.Dense(2, in_units=4))
    net.initialize(mx.init.Normal(1))
    return net


def settled(net, *inputs, **flags):
    net.hybridize(**flags)
    for _ in range(2):
        net(*inputs or (data(),))
    return net


def data(rows=2, dtype="float32"):
    return nd.array(np.random.RandomState(rows).uniform(-1, 1, (rows, 3)), dtype=dtype)


def expected(net, x):
    hidden = np.maximum(x.asnumpy() @ net[0].weight.data().asnumpy().T + net[0].bias.data().asnumpy(), 0)
    return hidden @ net[1].weight.data().asnumpy().T + net[1].bias.data().asnumpy()


def test_calls_like_the_one_before_go_the_short_way(net, long_calls):
    first = net(data())
    values = first.asnumpy()
    second = net(data() * 2)
    assert not long_calls and type(second) is nd.NDArray and second.context == mx.cpu(0)
    np.testing.assert_allclose(second.asnumpy(), expected(net, data() * 2), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(first.asnumpy(), values)  # each call has an array of its own


def as_gradient(parameter):
    x = nd.ones(parameter.shape)
    autograd.mark_variables([x], [parameter.data()])
    with autograd.record():
        out = (x * 5).sum()
    out.backward()


def as_recorded_result(parameter):
    x = nd.ones(parameter.shape)
    x.attach_grad()
    with autograd.record():
        nd.broadcast_mul(x, nd.array([3]), out=parameter.data())


def as_pickled(parameter):
    parameter.data().__setstate__((nd.ones(parameter.shape) * 6).__getstate__())


def as_recorded_copy(parameter):
    x = nd.ones(parameter.shape)
    x.attach_grad()
    with autograd.record():
        parameter.data()[:] = x * 4


@pytest.mark.parametrize("shared", [False, True], ids=["", "shared with torch"])
@pytest.mark.parametrize("write", [
    lambda p: p.set_data(p.data() * 2), lambda p: p.data().__setitem__(slice(None), 3), lambda p: p.data().as_torch().mul_(-1),
    lambda p: p.initialize(mx.init.Constant(2), force_reinit=True), lambda p: setattr(p, "_data", [p.data() + 1]),
    as_gradient, as_recorded_result, as_recorded_copy, as_pickled],
    ids=["set_data", "in place", "by torch", "anew", "another array", "as a gradient", "as a recorded result", "as a recorded copy", "as pickled"])
def test_a_changed_weight_is_noticed(net, write, shared, long_calls):
    net[0].weight.grad_req = "null"
    if shared:
        net[0].weight.data().as_torch()
    for _ in range(3):
        net(data())
    before = net[0].weight.data().asnumpy()
    long_calls.clear()
    write(net[0].weight)
    assert (net[0].weight.data().asnumpy() != before).any()
    np.testing.assert_allclose(net(data()).asnumpy(), expected(net, data()), rtol=1e-5, atol=1e-6)
    assert len(long_calls) == 1
    for _ in range(60):  # where there is a contest, it begins anew
        np.testing.assert_allclose(net(data()).asnumpy(), expected(net, data()), rtol=1e-5, atol=1e-6)


def test_weights_are_not_read_one_by_one_in_each_call(net, long_calls, monkeypatch):
    read = []
    monkeypatch.setattr(WeightGuard, "holds", lambda guard, current, holds=WeightGuard.holds: read.append(len(current)) or holds(guard, current))
    net(data())
    before = len(read)
    net(data())
    assert len(read) == before and not long_calls
    nd.ones(1).attach_grad()  # some array has got another tensor: it might be a weight
    net(data())
    assert len(read) == before + 1 and not long_calls
    net(data())
    assert len(read) == before + 1
    net[0].weight.data().as_torch()  # from here on torch may write to it
    for _ in range(2):
        net(data())
    assert len(read) == before + 3 and not long_calls


def test_other_shapes_and_types_go_the_long_way(net, long_calls):
    np.testing.assert_allclose(net(data(5)).asnumpy(), expected(net, data(5)), rtol=1e-5, atol=1e-6)
    assert len(long_calls) == 1
    with pytest.raises(mx.MXNetError, match="FullyConnected"):
        net(nd.ones((2, 4)))
    with pytest.raises(mx.MXNetError, match="float64"):
        net(data(dtype="float64")).wait_to_read()
    np.testing.assert_allclose(net(data()).asnumpy(), expected(net, data()), rtol=1e-5, atol=1e-6)
    strided = nd.array(data().asnumpy().T).T
    np.testing.assert_allclose(net(strided).asnumpy(), expected(net, data()), rtol=1e-5, atol=1e-6)


def test_recording_and_training_go_the_long_way(net, long_calls):
    x = data()
    x.attach_grad()
    np.testing.assert_allclose(net(x).asnumpy(), expected(net, x), rtol=1e-5, atol=1e-6)
    assert not long_calls and torch.is_grad_enabled()
    with autograd.record():
        out = net(x).sum()
    out.backward()
    step = (x.asnumpy() @ net[0].weight.data().asnumpy().T + net[0].bias.data().asnumpy() > 0) * net[1].weight.data().asnumpy().sum(0)
    np.testing.assert_allclose(x.grad.asnumpy(), step @ net[0].weight.data().asnumpy(), rtol=1e-5, atol=1e-6)
    assert len(long_calls) == 1
    with autograd.train_mode():
        net(x)
    assert len(long_calls) == 2
    with autograd.record(train_mode=False):
        assert record_of(net(x)) is not None


def train(net, x, change=lambda net, x: None):
    """The results and gradients of four passes with steps between them; before the last one, something changes."""
    found, trainer = [], mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for i in range(4):
        if i == 3:
            x = x if (other := change(net, x)) is None else other
        with autograd.record():
            out = net(*x) if isinstance(x, list) else net(x)
        autograd.backward(out)
        found += [o.asnumpy() for o in (out if isinstance(out, (list, tuple)) else [out])]
        found += [p.grad().asnumpy() for p in net.collect_params().values() if p.grad_req != "null"]
        trainer.step(1, ignore_stale_grad=True)
    return found


def compared(make, x, long_calls, change=lambda net, x: None):
    """Train with and without graphs; return how many of the last pass's calls and of those before went the long way."""
    counts, ends = [], []
    for hybridized in (True, False):
        net = make()
        for parameter in net.collect_params().values():
            parameter.set_data(nd.array(np.cos(np.arange(parameter.data().size)).reshape(parameter.shape)))
        if hybridized:
            net.hybridize(static_alloc=True, static_shape=True)
        long_calls.clear()
        ends.append(train(net, x() if callable(x) else x, lambda net, x: counts.append(len(long_calls)) or change(net, x)))
        counts.append(len(long_calls))
    assert any(np.abs(value).max() > 1e-3 for value in ends[1])
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    return counts[0], counts[1] - counts[0]


def test_training_goes_the_short_way_from_the_second_pass_on(long_calls):
    assert compared(network, data(), long_calls) == (1, 0)


def with_gradient():
    x = data()
    x.attach_grad()
    return x


def test_so_does_what_has_a_gradient_for_its_argument(long_calls):
    assert compared(network, with_gradient, long_calls) == (1, 0)


def of_torch(net, x):
    """An argument that torch recorded."""
    with autograd.record():
        return x * 2


def watched(net, x):
    net.register_op_hook(lambda name, op, handle: None)


@pytest.mark.parametrize("change", [
    lambda net, x: net[0].weight.set_data(nd.ones((4, 3))), lambda net, x: net[0].weight.data().__setitem__(slice(None), 0.5),
    lambda net, x: data(2) * 3, lambda net, x: setattr(net[1].bias, "lr_mult", 0)],
    ids=["set_data", "in place", "other values", "another rate"])
def test_new_values_need_no_other_way(change, long_calls):
    assert compared(network, data(), long_calls, change) == (1, 0)


@pytest.mark.parametrize("change", [
    lambda net, x: data(5), lambda net, x: setattr(net[0].weight, "grad_req", "null"), lambda net, x: setattr(net[0].weight, "grad_req", "add"),
    lambda net, x: net[0].weight.initialize(mx.init.One(), force_reinit=True), lambda net, x: setattr(net[0].weight, "_data", [nd.ones((4, 3))]),
    lambda net, x: with_gradient(), watched],
    ids=["another shape", "no gradient", "gradients that add up", "anew", "another array", "a gradient for the argument", "watched"])
def test_what_changes_the_work_of_a_pass_goes_the_long_way(change, long_calls):
    assert compared(network, data(), long_calls, change) == (1, 1)


def test_arguments_that_torch_recorded_go_the_long_way(long_calls):
    assert compared(network, with_gradient, long_calls, of_torch) == (1, 1)


def test_training_and_inference_take_turns(long_calls):
    net = network()
    net.hybridize(static_alloc=True, static_shape=True)
    for _ in range(3):
        weight = net[1].weight.data().asnumpy()
        with autograd.record():
            out = net(data())
        out.backward()
        np.testing.assert_allclose(net(data()).asnumpy(), expected(net, data()), rtol=1e-5, atol=1e-6)
        net[1].weight.data()[:] -= net[1].weight.grad()
        np.testing.assert_allclose(net[1].weight.data().asnumpy(), weight - net[1].weight.grad().asnumpy(), rtol=1e-6)
        with autograd.record(train_mode=False):
            out = net(data())
        out.backward()
        np.testing.assert_allclose(out.asnumpy(), expected(net, data()), rtol=1e-5, atol=1e-6)


def test_contexts_and_modes_have_paths_of_their_own(long_calls):
    net, contexts = network(), [mx.cpu(0), mx.cpu(1)]
    net.collect_params().reset_ctx(contexts)
    net.hybridize(static_alloc=True, static_shape=True)
    for _ in range(4):
        for ctx in contexts:
            x = data().as_in_context(ctx)
            with autograd.record():
                out = net(x)
            out.backward()
            assert out.context == ctx
            np.testing.assert_allclose(out.asnumpy(), expected(net, data()), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(net(x).asnumpy(), expected(net, data()), rtol=1e-5, atol=1e-6)
    before = len(long_calls)
    for _ in range(3):
        for ctx in contexts:
            x = data().as_in_context(ctx)
            with autograd.record():
                net(x)
            net(x)
    assert len(long_calls) == before
    net.collect_params().reset_ctx(mx.cpu(0))
    net(data())
    assert len(net._shortcuts) == 1  # those for arrays that are gone have gone, too


class Branched(nn.HybridBlock):
    """Three results, the last of which has no gradient."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Dense(2, in_units=3), nn.Dense(4, in_units=3, activation="tanh"), nn.Dense(2, in_units=4)

    def hybrid_forward(self, F, x, y):
        return self.first(x), [self.third(self.second(y)), F.BlockGrad(self.second(x))]


def test_training_with_several_arguments_and_results(long_calls):
    net, found = Branched(), []
    net.initialize(mx.init.One())
    for hybridized in (True, False):
        net.hybridize(hybridized, static_alloc=True, static_shape=True)
        long_calls.clear()
        for _ in range(3):
            with autograd.record():
                one, (other, constant) = net(data(), data(4))
            autograd.backward([one, other])
            found.append([one.asnumpy(), other.asnumpy(), constant.asnumpy(), *[p.grad().asnumpy() for p in net.collect_params().values()]])
        assert len(long_calls) == hybridized
    for one, other in zip(found[2], found[5], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_dropout_drops_in_training_only(long_calls):
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=3), nn.Dropout(0.5))
    net.initialize(mx.init.One())
    settled(net, static_alloc=True, static_shape=True)
    x = nd.ones((2, 3))
    assert net(x).asnumpy().tolist() == [[3] * 4] * 2
    with autograd.train_mode():
        assert set(net(x).asnumpy().ravel().tolist()) <= {0, 6}
    assert net(x).asnumpy().tolist() == [[3] * 4] * 2


def test_who_watches_is_told(net):
    seen = []
    net.register_op_hook(lambda name, op, handle: seen.append(op))
    net(data())
    assert seen.count("FullyConnected") == 2
    net.register_op_hook(None)
    net(data())
    told = []
    try:
        dispatch.graph_observer = lambda call, *rest: told.append(call.name)
        net(data())
    finally:
        dispatch.graph_observer = None
    assert told


def test_hooks_of_the_block_are_called(net):
    seen = []
    net.register_forward_pre_hook(lambda block, inputs: seen.append("before"))
    net.register_forward_hook(lambda block, inputs, out: seen.append("after"))
    net(data())
    assert seen == ["before", "after"]


def test_switched_off_it_runs_step_by_step(net, long_calls):
    net.hybridize(False)
    np.testing.assert_allclose(net(data()).asnumpy(), expected(net, data()), rtol=1e-5, atol=1e-6)
    net.hybridize(False, clear=False)
    net(data())
    assert not long_calls


def test_another_context_goes_the_long_way():
    net = nn.Dense(2, in_units=3)
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    settled(net, static_alloc=True, static_shape=True)
    net(data())
    assert net(data().as_in_context(mx.cpu(1))).context == mx.cpu(1)
    assert net(data()).context == mx.cpu(0)
    with pytest.raises(RuntimeError, match="was not initialized on context"):
        net(data().as_in_context(mx.cpu(2)))


def test_the_scope_of_another_context_changes_nothing(net):
    x = data()
    with mx.cpu(1):
        found = net(x)
    assert found.context == mx.cpu(0)
    np.testing.assert_allclose(found.asnumpy(), expected(net, data()), rtol=1e-5, atol=1e-6)


def test_cast_begins_anew(net, long_calls):
    net.cast("float64")
    found = net(data(dtype="float64"))
    assert found.dtype == np.float64 and len(long_calls) == 1
    np.testing.assert_allclose(found.asnumpy(), expected(net, data(dtype="float64")), rtol=1e-12)


def test_a_running_profiler_is_told(net, long_calls, tmp_path):
    mx.profiler.set_config(profile_all=True, aggregate_stats=True, filename=str(tmp_path / "profile.json"))
    mx.profiler.set_state("run")
    try:
        net(data())
    finally:
        mx.profiler.set_state("stop")
    assert len(long_calls) == 1 and "MXInvokeCachedOpEx" in mx.profiler.dumps(reset=True)
    net(data())
    assert len(long_calls) == 1


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["copy", "deepcopy", "pickle"])
def test_copies_have_their_own(duplicate):
    net = settled(network(), static_alloc=True, static_shape=True)
    assert net._shortcuts
    twin, before = duplicate(net), net(data()).asnumpy()
    for _ in range(3):
        np.testing.assert_allclose(twin(data()).asnumpy(), before, rtol=1e-5, atol=1e-6)
    twin[0].weight.set_data(nd.ones((4, 3)))
    for each in (twin, net):
        np.testing.assert_allclose(each(data()).asnumpy(), expected(each, data()), rtol=1e-5, atol=1e-6)


class Varying(mx.gluon.Parameter):
    """A kind of parameter that gives another array each time."""

    calls = 0

    def data(self, ctx=None):
        self.calls += 1
        return super().data(ctx) * self.calls


def test_parameters_that_give_what_they_like_are_asked_each_time():
    class Scaled(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = Varying(f"{self.prefix}weight", shape=(3,), init="ones")
            self.params._params[self.weight.name] = self.weight

        def hybrid_forward(self, F, x, weight):
            return F.broadcast_mul(x, weight)
    block = Scaled()
    block.initialize()
    block.hybridize(backend="kernels")
    block(nd.ones((2, 3)))
    before = block.weight.calls
    assert [block(nd.ones((2, 3))).asnumpy()[0, 0] for _ in range(3)] == [before + 1, before + 2, before + 3]


class Several(nn.HybridBlock):
    """Its inputs come in another order than its graph's, one has no influence, and there are two results."""

    def hybrid_forward(self, F, a, unused, b):
        return b - a, b * 2


def test_several_arguments_and_results(long_calls):
    block, a, b = Several(), nd.array([1.0, 2]), nd.array([10.0, 20])
    with pytest.warns(UserWarning, match="its 1-th input has no influence"):
        settled(block, a, a, b, backend="kernels")
    long_calls.clear()
    difference, double = block(a, a, b)
    assert not long_calls and difference.asnumpy().tolist() == [9, 18] and double.asnumpy().tolist() == [20, 40]
    with pytest.raises(ValueError):
        block(a, b)
    with pytest.raises(mx.MXNetError):
        block(a, a, nd.ones((3,)))


class Nested(nn.HybridBlock):
    def hybrid_forward(self, F, x, states, more=None):
        first, second = states
        return (x + first, [second * x]) if more is None else (x + first, [second * more])


def test_lists_of_arguments(long_calls):
    block, a, b, c = Nested(), nd.array([1.0, 2]), nd.array([10.0, 20]), nd.array([3.0, 4])
    settled(block, a, [b, c], backend="kernels")
    long_calls.clear()
    for states in ([b, c], (b, c)):
        assert numbers(block(a, states)) == [[11, 22], [[3, 8]]]
    assert not long_calls
    for wrong in ((a, [b]), (a, [b, c, c]), (a, b), (a, [[b], c])):
        with pytest.raises(ValueError, match="traced with arguments of structure"):
            block(*wrong)
    assert numbers(block(a, [b, c], None)) == [[11, 22], [[3, 8]]]  # None at the end may stay away


def test_a_list_of_nothing_stays_one():
    class Sum(nn.HybridBlock):
        def hybrid_forward(self, F, x, others):
            return F.add_n(x, *others)
    block, x = Sum(), nd.ones((2,))
    settled(block, x, [], backend="kernels")
    with pytest.raises(ValueError, match="traced with arguments of structure"):
        block(x, [x])
    assert block(x, []).asnumpy().tolist() == [1, 1]


def test_layers_that_begin_with_zeros(long_calls):
    layer, x = mx.gluon.rnn.LSTM(4, input_size=3), nd.ones((2, 1, 3))
    layer.initialize(mx.init.One())
    plain = layer(x).asnumpy()
    settled(layer, x, backend="kernels")
    long_calls.clear()
    np.testing.assert_allclose(layer(x).asnumpy(), plain, rtol=1e-6)
    assert not long_calls
    out, states = layer(x, [nd.zeros((1, 1, 4)), nd.zeros((1, 1, 4))])
    np.testing.assert_allclose(out.asnumpy(), plain, rtol=1e-6)
    assert [s.shape for s in states] == [(1, 1, 4)] * 2


@pytest.mark.parametrize("wraps", [lambda parts: parts, lambda parts: [parts[0], parts[1]], lambda parts: [parts[1]],
                                   lambda parts: [[parts[0]], parts[1]]], ids=["parts", "list", "one in a list", "nested"])
def test_the_structure_of_the_result(wraps):
    class Parts(nn.HybridBlock):
        def hybrid_forward(self, F, x):
            return wraps(F.split(x, num_outputs=2, axis=1))
    block, x = Parts(), nd.array([[1.0, 2], [3, 4]])
    plain = numbers(block(x))
    block.hybridize(backend="kernels")
    assert [numbers(block(x)) for _ in range(3)] == [plain] * 3


def test_an_input_that_is_handed_on_is_copied():
    class Both(nn.HybridBlock):
        def hybrid_forward(self, F, x):
            return x, x * 2
    block, x = Both(), nd.ones((2,))
    block.hybridize(backend="kernels")
    for _ in range(3):
        same, double = block(x)
        same[:] = 7
        assert x.asnumpy().tolist() == [1, 1] and double.asnumpy().tolist() == [2, 2]


def numbers(found):
    return [numbers(f) for f in found] if isinstance(found, (list, tuple)) else None if found is None else found.asnumpy().tolist()


def test_blocks_of_symbols(long_calls):
    weight = mx.sym.var("weight", shape=(2, 3))
    block = mx.gluon.SymbolBlock(mx.sym.FullyConnected(mx.sym.var("data"), weight, num_hidden=2, no_bias=True), mx.sym.var("data"))
    block.initialize(mx.init.One())
    settled(block, static_alloc=True, static_shape=True)
    long_calls.clear()
    for _ in range(2):
        np.testing.assert_allclose(block(data()).asnumpy(), data().asnumpy().sum(1, keepdims=True).repeat(2, 1), rtol=1e-5, atol=1e-6)
    assert not long_calls
    assert [s.name for s in block(mx.sym.var("other")).get_internals()][0] == "other"


def test_arrays_of_np(long_calls):
    net = settled(network(), backend="kernels")
    long_calls.clear()
    with mx.util.np_shape(True), mx.util.np_array(True):
        for _ in range(2):
            assert type(net(data().as_np_ndarray())) is mx.np.ndarray and len(long_calls) == 1
    for _ in range(2):
        assert type(net(data())) is nd.NDArray and len(long_calls) == 2
    plain = data()
    with mx.util.np_shape(True), mx.util.np_array(True):
        assert type(net(plain)) is mx.np.ndarray and len(long_calls) == 3


def test_inside_of_a_block_that_is_traced_no_graph_of_its_own_runs():
    mx.npx.set_np()
    inner = mx.gluon.SymbolBlock(mx.sym.np.exp(mx.sym.var("data").as_np_ndarray()), mx.sym.var("data").as_np_ndarray())
    settled(inner, mx.np.ones((2,)), static_alloc=True, static_shape=True)
    assert inner._shortcuts

    class Outer(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x) * 2
    outer = Outer()
    outer.hybridize()
    with pytest.warns(UserWarning, match="runs step by step all the same: .* is a SymbolBlock, whose graph can't become a part of the traced one"):
        outer(mx.np.ones((2,)))
    for number in (1.0, 2.0):  # and not what it was while it was traced
        np.testing.assert_allclose(outer(mx.np.full((2,), number)).asnumpy(), [2 * np.exp(number)] * 2, rtol=1e-5, atol=1e-6)


def test_a_child_process_runs_no_threads_of_its_parent(net, monkeypatch, long_calls):
    monkeypatch.setattr(policy.process, "forked", True)
    np.testing.assert_allclose(net(data()).asnumpy(), expected(net, data()), rtol=1e-5, atol=1e-6)
    assert len(long_calls) == 1


def test_several_threads_call_at_once(net):
    wrong = []

    def run(rows):
        for _ in range(50):
            x = data(rows)
            if not np.allclose(net(x).asnumpy(), expected(net, x), rtol=1e-4):
                wrong.append(rows)
    threads = [threading.Thread(target=run, args=(rows,)) for rows in (2, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_failure_is_explained_by_the_long_way(net, long_calls, monkeypatch):
    state = net._shortcuts[0]._state

    def fails(*inputs):
        raise RuntimeError("out of luck")
    monkeypatch.setattr(state, "function", fails)
    with pytest.raises(mx.MXNetError, match="out of luck"):
        net(data())
    assert len(long_calls) == 1 and torch.is_grad_enabled()
