"""Captures of training, on a stand-in for torch.cuda."""
import re
import types
from unittest import mock

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import mxnet as mx
from mxnet.graph import GraphRunner
from mxnet.graph.backends.cuda import training_capture
from mxnet.kernels.runtime import channel_kernels
from mxnet.ndarray import memory_format
from mxnet.ops import differentiation, random_state, sparse_input_linear
from recorded import record_of
from simulated_captures import installed

GPU = torch.device("cuda", 0)
# A context of a GPU, which mx.gpu() is not where there is none.
CONTEXT = types.SimpleNamespace(torch_device=GPU, device_id=0, device_typeid=2)


@pytest.fixture(autouse=True)
def cuda(monkeypatch):
    fake = installed(monkeypatch)
    with mock.patch.dict(random_state._generators, {("cuda", 0): torch.Generator()}):
        yield fake


def numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def network():
    """relu(x W + b), with the weights behind the data."""
    return mx.sym.relu(mx.sym.FullyConnected(mx.sym.var("x"), mx.sym.var("w"), mx.sym.var("b"), num_hidden=4))


def weights():
    return [numbers(4, 4, seed=100).requires_grad_(), numbers(4, seed=101).requires_grad_()]


def step(runner, x, own):
    """The output and the gradients of a pass."""
    out = runner([x, *own], is_train=True, ctx=CONTEXT)[0]
    return out.detach(), torch.autograd.grad(out, own, torch.ones_like(out))


def expected(x, w, b):
    out = torch.relu(x @ w.T + b)
    return out.detach(), torch.autograd.grad(out, [w, b], torch.ones_like(out))


def test_the_first_step_runs_as_ever_and_the_others_are_replays(cuda):
    runner, own = GraphRunner(network(), fixed_shape=True), weights()
    for i in range(4):
        x = numbers(3, 4, seed=i)
        torch.testing.assert_close(step(runner, x, own), expected(x, *own))
        assert len(cuda.graphs) == (2 if i else 0)
        with torch.no_grad():
            own[0] -= 0.1  # as an optimizer does, in place
    assert [g.replays for g in cuda.graphs] == [3, 3]
    assert "native, captured as CUDA graphs of the forward and the backward pass (1 x)" in runner.explain()
    assert "gradients on cuda:0 for (3, 4):" in runner.explain()


def test_nothing_is_captured_while_kernels_are_compiled(cuda, monkeypatch):
    runner, own = GraphRunner(network(), fixed_shape=True), weights()
    for compiling in (True, True, False, False):
        monkeypatch.setattr(channel_kernels, "compiling", lambda compiling=compiling: compiling)
        torch.testing.assert_close(step(runner, numbers(3, 4), own), expected(numbers(3, 4), *own))
        assert len(cuda.graphs) == (0 if compiling else 2)
    monkeypatch.setattr(channel_kernels, "compiling", lambda: True)  # for another network
    step(runner, numbers(3, 4), own)
    assert [g.replays for g in cuda.graphs] == [3, 3]


def test_results_and_gradients_are_not_overwritten_by_the_next_pass():
    runner, own = GraphRunner(network(), fixed_shape=True), weights()
    data = [numbers(3, 4, seed=i) for i in range(4)]
    found = [step(runner, x, own)[0] for x in data]
    torch.testing.assert_close(found, [expected(x, *own)[0] for x in data])


def test_gradients_lie_where_the_next_backward_pass_writes_them():
    runner, own = GraphRunner(network(), fixed_shape=True), weights()
    places, gradients = [], []  # all alive, so that no address is used twice
    for i in range(4):
        runner([numbers(3, 4, seed=i), *own], is_train=True, ctx=CONTEXT)[0].sum().backward()
        gradients += [w.grad for w in own]
        places.append([w.grad.data_ptr() for w in own])
        torch.testing.assert_close([w.grad for w in own], list(expected(numbers(3, 4, seed=i), *own)[1]))
        for w in own:
            w.grad = None
    assert places[1] == places[2] == places[3] != places[0]
    assert all(p in memory_format.lent for p in places[3])
    gradients.clear()
    del runner
    assert not any(p in memory_format.lent for p in places[3])


@pytest.mark.parametrize("uses", [1, 2])
def test_gradients_of_large_fully_connected_layers_are_computed_where_they_stay(cuda, monkeypatch, uses):
    monkeypatch.setattr(sparse_input_linear, "LARGE", 16)
    out, weight, bias = map(mx.sym.var, "xwb")
    for i in range(uses):
        out = mx.sym.FullyConnected(out, weight, bias, num_hidden=4, name=f"layer{i}")
    runner, own, x = GraphRunner(out, fixed_shape=True), weights(), numbers(3, 4)
    for _ in range(3):
        found = step(runner, x, own)
    result = x
    for _ in range(uses):
        result = result @ own[0].T + own[1]
    torch.testing.assert_close(found, (result.detach(), torch.autograd.grad(result, own, torch.ones_like(result))))
    names = [function.overloadpacket.__name__ + "." + function._overloadname for function, *_ in cuda.graphs[1].steps]
    copied = next(args[0] for (function, args, *_), name in zip(cuda.graphs[1].steps, names) if name.startswith("_foreach_copy_"))
    assert [t.dim() for t in copied] == ([1] if uses == 1 else [2, 1])  # with one use only the bias's gradient is copied
    assert names.count("mm.out") == 1


def test_gradients_of_ones_are_copied_once(cuda):
    runner, own = GraphRunner(network(), fixed_shape=True), weights()
    x, above = numbers(3, 4), numbers(3, 4, seed=7)
    plain = torch.relu(x @ own[0].T + own[1])
    wanted = {name: torch.autograd.grad(plain, own, seed, retain_graph=True) for name, seed in (("ones", torch.ones(3, 4)), ("others", above))}
    copies = []

    class Copies(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            copies[-1] += function.overloadpacket.__name__ == "copy_" and (differentiation.are_ones(args[1]) or args[1] is above)
            return function(*args, **(kwargs or {}))

    for kind in ("ones", "ones", "ones", "others", "others", "ones", "ones"):
        out = runner([x, *own], is_train=True, ctx=CONTEXT)[0]
        copies.append(0)
        with Copies():
            found = torch.autograd.grad(out, own, differentiation.ones(out) if kind == "ones" else above)
        del out
        torch.testing.assert_close(found, wanted[kind])
    assert copies[1:] == [1, 0, 1, 1, 1, 0]


def test_a_pass_that_waits_for_its_gradients_keeps_its_memory(cuda):
    runner, own = GraphRunner(network(), fixed_shape=True), weights()
    step(runner, numbers(3, 4), own)
    data = [numbers(3, 4, seed=i) for i in range(6)]
    outputs = [runner([x, *own], is_train=True, ctx=CONTEXT)[0] for x in data]  # of six, four are captures of their own, two run as ever
    assert len(cuda.graphs) == 8 and cuda.pools == 4
    for out, x in zip(outputs, data):
        torch.testing.assert_close(torch.autograd.grad(out, own, torch.ones_like(out)), expected(x, *own)[1])
    del outputs, out
    torch.testing.assert_close(step(runner, data[0], own), expected(data[0], *own))
    assert len(cuda.graphs) == 8


def test_one_network_twice_in_a_pass():
    runner, own = GraphRunner(network(), fixed_shape=True), weights()
    a, b = numbers(3, 4, seed=1), numbers(3, 4, seed=2)
    for _ in range(3):
        heads = [runner([x, *own], is_train=True, ctx=CONTEXT)[0].sum() for x in (a, b)]
        (heads[0] + heads[1]).backward()
        wanted = [p + q for p, q in zip(expected(a, *own)[1], expected(b, *own)[1])]
        torch.testing.assert_close([w.grad for w in own], wanted)
        for w in own:
            w.grad = None


def test_a_graph_may_be_differentiated_again():
    runner, own = GraphRunner(network(), fixed_shape=True), weights()
    for i in range(3):
        x = numbers(3, 4, seed=i)
        out = runner([x, *own], is_train=True, ctx=CONTEXT)[0]
        torch.testing.assert_close(torch.autograd.grad(out, own, torch.ones_like(out), retain_graph=True), expected(x, *own)[1])
        torch.testing.assert_close(torch.autograd.grad(out, own, 2 * torch.ones_like(out)), tuple(2 * g for g in expected(x, *own)[1]))


def test_gradients_of_gradients(cuda):
    net = mx.sym.tanh(mx.sym.FullyConnected(mx.sym.var("x"), mx.sym.var("w"), no_bias=True, num_hidden=4))
    runner, w = GraphRunner(net, fixed_shape=True), numbers(4, 4, seed=3).requires_grad_()
    for i in range(3):
        x = numbers(3, 4, seed=i).requires_grad_()

        def penalty(out, x=x):
            gradient, = torch.autograd.grad(out, x, torch.ones_like(out), create_graph=True)
            return torch.autograd.grad(gradient.square().sum(), w)[0]
        torch.testing.assert_close(penalty(runner([x, w], is_train=True, ctx=CONTEXT)[0]), penalty(torch.tanh(x @ w.T)))
    assert len(cuda.graphs) == 2 and "not as CUDA graphs: its gradients are differentiated" in runner.explain()


def norm():
    return mx.sym.BatchNorm(mx.sym.var("x"), mx.sym.var("gamma"), mx.sym.var("beta"), mx.sym.var("mean"), mx.sym.var("var"), fix_gamma=False,
                            momentum=0.5, name="bn")


def test_moving_statistics_move_once_a_step(cuda):
    runner, eager = GraphRunner(norm(), fixed_shape=True), GraphRunner(norm())
    states = [[torch.ones(2, requires_grad=True), torch.zeros(2, requires_grad=True), torch.zeros(2), torch.ones(2)] for _ in range(2)]
    for i in range(4):
        x = numbers(6, 2, 3, 3, seed=i)
        runner([x, *states[0]], is_train=True, ctx=CONTEXT)[0].sum().backward()
        eager([x, *states[1]], is_train=True)[0].sum().backward()
        torch.testing.assert_close(states[0][2:], states[1][2:])
    assert len(cuda.graphs) == 2


def test_without_a_promise_shapes_have_to_prove_that_they_stay(cuda):
    runner, own = GraphRunner(network()), weights()
    for i in range(training_capture.PATIENCE):
        step(runner, numbers(3, 4, seed=i), own)
    assert not cuda.graphs and "native, to be captured as CUDA graphs" in runner.explain()
    x = numbers(3, 4, seed=9)
    torch.testing.assert_close(step(runner, x, own), expected(x, *own))
    assert len(cuda.graphs) == 2


@pytest.mark.parametrize("variables, fixed, captures", [
    ({}, True, 2), ({"MXNET_ENABLE_CUDA_GRAPHS": "1"}, False, 2), ({"MXNET_ENABLE_CUDA_GRAPHS": "0"}, True, 0),
    ({"MXNET_EXEC_BULK_EXEC_TRAIN": "0"}, True, 0)])
def test_who_asks_for_captures(cuda, monkeypatch, variables, fixed, captures):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    runner, own = GraphRunner(network(), fixed_shape=fixed), weights()
    for i in range(2):
        torch.testing.assert_close(step(runner, numbers(3, 4, seed=i), own), expected(numbers(3, 4, seed=i), *own))
    assert len(cuda.graphs) == captures


def test_weights_that_move_are_captured_anew_and_in_the_end_no_more(cuda):
    runner = GraphRunner(network(), fixed_shape=True)
    for i in range(8):
        own, x = weights(), numbers(3, 4, seed=i)
        torch.testing.assert_close(step(runner, x, own), expected(x, *own))
    assert len(cuda.graphs) == 8 and "the weights moved after each of 4 captures" in runner.explain()


@pytest.mark.parametrize("make, reason", [
    (lambda x: mx.sym.contrib.foreach(lambda d, s: (d + s, s), x, mx.sym.sum(x, axis=0), name="op")[0], r"\(_foreach\) may depend on values"),
    (lambda x: mx.sym.contrib.boolean_mask(x, mx.sym.var("index"), name="op"), r"the shape of op \(_contrib_boolean_mask\) is not known"),
    (lambda x: x + mx.sym.zeros((2, 2), ctx="cpu(0)", name="_zeros"), r"_zeros \(_zeros\) is on another device")])
def test_what_is_never_captured(cuda, make, reason):
    runner = GraphRunner(make(mx.sym.var("x")), fixed_shape=True)
    values = {"x": numbers(2, 2).requires_grad_(), "index": torch.tensor([1.0, 0.0])}
    for _ in range(3):
        runner([values[name] for name in runner.input_names], is_train=True, ctx=CONTEXT)
    assert not cuda.graphs
    assert re.search(f"native, not as CUDA graphs: .*{reason}", runner.explain()), runner.explain()


def test_a_capture_that_fails_leaves_the_graph_on_native(cuda):
    runner, cuda.broken = GraphRunner(norm(), fixed_shape=True), "no end"
    own = [torch.ones(2, requires_grad=True), torch.zeros(2, requires_grad=True)]
    moving = [torch.zeros(2), torch.ones(2)]
    for i in range(3):
        runner([numbers(6, 2, 3, 3, seed=i), *own, *moving], is_train=True, ctx=CONTEXT)[0].sum().backward()
    assert "native, not as CUDA graphs: capturing failed: no end" in runner.explain()
    eager, other = GraphRunner(norm()), [torch.zeros(2), torch.ones(2)]
    for i in range(3):
        eager([numbers(6, 2, 3, 3, seed=i), *own, *other], is_train=True)
    torch.testing.assert_close(moving, other)


def test_arrays_take_over_the_gradients_memory_and_added_gradients_have_their_own():
    owner = type("Owner", (), {})()
    x = mx.nd.zeros((3,))
    x.attach_grad()
    memory = torch.full((3,), 2.0)
    kept = memory_format.lend([memory], owner)
    record_of(x).take(memory.detach())
    assert x.grad._data.data_ptr() == memory.data_ptr() and x.grad.asnumpy().tolist() == [2, 2, 2]
    memory.fill_(3)  # the next run
    record_of(x).take(memory.detach())
    assert x.grad.asnumpy().tolist() == [3, 3, 3]
    mx.autograd.mark_variables(x, x.grad, "add")
    memory.fill_(4)
    record_of(x).take(memory.detach())
    assert x.grad.asnumpy().tolist() == [7, 7, 7]
    kept()
    assert memory.data_ptr() not in memory_format.lent
