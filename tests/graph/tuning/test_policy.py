import math
import os
import warnings

import numpy as np
import pytest
import torch

import mxnet as mx
from backend_checks import Counting
from mxnet import gluon, nd
from mxnet.gluon import nn
from mxnet.graph import register_backend
from mxnet.graph.backends import registry
from mxnet.graph.tuning import cache, inference_states, policy
from mxnet.kernels.runtime import measurement

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def no_kernels_of_our_own(monkeypatch):
    """Networks of a fully connected layer serve here because they are small: these are about other candidate backends."""
    monkeypatch.setattr(policy, "mlp_candidates", lambda *args: [])


@pytest.fixture
def challenger(monkeypatch):
    def use(**settings):
        backend = register_backend(Counting(**settings))
        monkeypatch.setattr(policy, "candidate_backends", lambda device, all_backends=False: [backend])
        # `native` takes a second, this one `seconds`.
        monkeypatch.setattr(policy, "timed", lambda function, inputs: (
            backend.seconds if function is backend.function else 1.0, function(*inputs)))
        return backend
    yield use
    registry.BACKENDS.pop("test_counting", None)


def network(**flags):
    net = nn.Dense(2, in_units=3, weight_initializer="ones")
    net.initialize()
    net.hybridize(**flags)
    return net


class Clock:
    """Every look at it takes 10 ms."""

    now = 0.0

    def perf_counter(self):
        self.now += 0.01
        return self.now


def test_a_graph_is_compiled_when_it_has_spent_enough_time(challenger, monkeypatch):
    backend, net, x = challenger(), network(), nd.ones((1, 3))
    monkeypatch.setattr(inference_states, "time", Clock())
    monkeypatch.setattr(policy, "_COMPILE", 0.096)  # and 4 ms for the one operator: ten calls
    for _ in range(10):
        net(x)
    assert backend.compiled == 0
    for _ in range(2):
        assert net(x).asnumpy().tolist() == [[3, 3]]
    assert backend.compiled == 1


def test_a_promise_of_fixed_shapes_compiles_at_once(challenger):
    backend, net = challenger(), network(static_alloc=True, static_shape=True)
    net(nd.ones((1, 3)))
    assert backend.compiled == 1


def test_changed_weights_compile_anew(challenger):
    challenger()
    net, x = network(static_alloc=True, static_shape=True), nd.ones((1, 3))
    net(x)
    net(x)
    net.weight.set_data(nd.full((2, 3), 2))
    assert net(x).asnumpy().tolist() == [[6, 6]]
    net.bias.data()[:] = 1
    assert net(x).asnumpy().tolist() == [[7, 7]]


def test_the_slower_one_is_not_kept(challenger, monkeypatch):
    backend, net, x = challenger(seconds=2.0), network(static_alloc=True, static_shape=True), nd.ones((1, 3))
    for _ in range(3):
        net(x)
    assert backend.compiled == 1
    assert not any(isinstance(p, inference_states.Compiled) for p in net._cached_op.handle.states.values())


def test_wrong_results_are_not_kept(challenger):
    challenger(scale=1.5)
    net = network(static_alloc=True, static_shape=True)
    with pytest.warns(UserWarning, match="backend 'test_counting' gives other results than 'native'"):
        assert net(nd.ones((1, 3))).asnumpy().tolist() == [[3, 3]]
    assert net(nd.ones((1, 3))).asnumpy().tolist() == [[3, 3]]


def test_a_compiler_that_fails_leaves_the_graph_on_native(challenger, monkeypatch):
    backend = challenger()
    monkeypatch.setattr(backend, "compile", lambda program: 1 / 0)
    net = network(static_alloc=True, static_shape=True)
    assert net(nd.ones((1, 3))).asnumpy().tolist() == [[3, 3]]


def test_none_keeps_graphs_on_native(challenger, monkeypatch):
    monkeypatch.setenv("MXNET_SUBGRAPH_BACKEND", "NONE")
    backend, net = challenger(), network(static_alloc=True, static_shape=True)
    net(nd.ones((1, 3)))
    assert backend.compiled == 0


def test_executors_know_weights_by_what_operators_call_them(challenger, monkeypatch):
    challenger()
    monkeypatch.setattr(policy, "_COMPILE", 0.0)
    monkeypatch.setattr(policy, "_COMPILE_OPERATOR", 0.0)
    out = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    exe = out.simple_bind(mx.cpu(), grad_req="null", data=(1, 3))
    runner = exe._runner
    assert [runner.input_names[i] for i in runner.weights] == ["fc_weight", "fc_bias"]
    exe.arg_dict["fc_weight"][:] = 1
    exe.arg_dict["data"][:] = 1
    for _ in range(3):
        exe.forward()
    assert exe.outputs[0].asnumpy().tolist() == [[3, 3]]
    exe.forward(data=nd.full((1, 3), 2))
    assert exe.outputs[0].asnumpy().tolist() == [[6, 6]]
    exe.copy_params_from({"fc_weight": nd.full((2, 3), 5), "fc_bias": nd.ones(2)})
    exe.forward()
    assert exe.outputs[0].asnumpy().tolist() == [[31, 31]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_runs_on_native(challenger):
    challenger()
    net, x = network(static_alloc=True, static_shape=True), nd.ones((1, 3))
    net(x)
    plan, = net._cached_op.handle.states.values()
    assert isinstance(plan, inference_states.Compiled)
    child = os.fork()
    if not child:
        plan.function = None  # not to be called here
        try:
            ok = np.array_equal(net(x).asnumpy(), [[3, 3]])
        except BaseException:
            ok = False
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_auto_compares_all_backends_for_inference(challenger):
    backend, net = challenger(), network(backend="auto")
    net(nd.ones((1, 3)))
    assert backend.compiled == 1
    assert isinstance(*net._cached_op.handle.states.values(), inference_states.Compiled)


@pytest.mark.parametrize("seconds, winner", [(0.5, "challenger"), (2.0, "native")])
def test_auto_compares_steps_of_training(challenger, monkeypatch, seconds, winner):
    backend = challenger(seconds=seconds)
    backend.trains = True
    monkeypatch.setattr(policy, "benchmark", lambda runs, clock, rules: measurement.Outcome({"native": 1.0, "test_counting": seconds}, 1.0, 0.0))
    net, x = network(backend="auto"), nd.ones((1, 3))
    with mx.autograd.record():
        net(x)
    chosen, = (f for k, f in net._cached_op.handle._compiled.items() if k[0] == "fastest")
    assert (chosen is backend.function) is (winner == "challenger")


def test_explain_says_who_runs_what(challenger, monkeypatch):
    backend, net = challenger(), network()
    with pytest.raises(RuntimeError, match="explain: call hybridize"):
        net.explain()
    monkeypatch.setattr(inference_states, "time", Clock())
    monkeypatch.setattr(policy, "_COMPILE", 0.5)
    monkeypatch.setattr(cache.CacheEntry, "store", lambda self, name, seconds, waited: f"kept for {name}")
    net(nd.ones((1, 3)))
    assert net.explain() == ("1 operators\ninference on cpu: native\ninference on cpu for data float32(1, 3):\n"
                             "  native, until it has taken 0.50 s (0.01 s so far)")
    net.hybridize(static_alloc=True, static_shape=True)
    net(nd.ones((1, 3)))
    assert net.explain().splitlines()[2:] == ["inference on cpu for data float32(1, 3):", "  test_counting: kept for test_counting"]
    backend.seconds = 3
    net(nd.ones((2, 3)))
    assert net.explain().splitlines()[-1] == "  native, which proved the fastest"


def test_bulk_execution_can_be_turned_off(challenger, monkeypatch):
    monkeypatch.setenv("MXNET_EXEC_BULK_EXEC_INFERENCE", "0")
    backend, net = challenger(), network(static_alloc=True, static_shape=True)
    net(nd.ones((1, 3)))
    assert backend.compiled == 0


def spent(monkeypatch, net, x):
    """Let the network spend its time on `native`."""
    monkeypatch.setattr(policy, "_COMPILE", 0.0)
    monkeypatch.setattr(policy, "_COMPILE_OPERATOR", 0.0)
    net(x)


def state_of(net):
    state, = net._cached_op.handle.states.values()
    return state


@pytest.mark.parametrize("slower, kept", [(0.5, inference_states.Compiled), (2, inference_states.Native)])
def test_what_was_compiled_is_tried_in_the_programs_own_calls(challenger, monkeypatch, slower, kept):
    backend, net, x = challenger(), network(), nd.ones((1, 3))
    spent(monkeypatch, net, x)
    runs = []

    class Clock:
        now = 0.0

        def perf_counter(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(inference_states, "time", clock)
    monkeypatch.setattr(policy, "GRAPH", policy.GRAPH._replace(enough=0, plenty=10))
    net(x)  # compiled, and compared: the graph runs both ways
    trial = state_of(net)
    assert isinstance(trial, inference_states.Validating) and backend.compiled == 1 and trial.explain()[0] == "test_counting, on trial: 0 calls"
    function = trial.frozen.function

    def timed(*inputs):
        runs.append(1)
        clock.now += slower
        return function(*inputs)

    trial.frozen.function, trial._native_seconds = timed, 1.0
    for count in (1, 2, 3):
        assert net(x).asnumpy().tolist() == [[3, 3]] and len(runs) == count
    net(x)
    assert isinstance(state_of(net), kept) and backend.compiled == 1 and len(runs) == 3 + (kept is inference_states.Compiled)


@pytest.mark.parametrize("length, calls, least", [(1, 2, (1, 1.5)), (0.02, 7, (0.02, 0.03)), (1e-3, 10, (1e-3, 1.5e-3))])
def test_calls_behind_the_other_ones_do_not_count(length, calls, least, monkeypatch):
    now, made, outcomes = [0.0], [], []

    def runs(name, seconds):
        def function(*inputs):
            now[0] += seconds * (1 if made and made[-1] == name or length == 1 else 5)  # what the other one has left costs time
            made.append(name)
            return (torch.ones(1),)
        return function

    def benchmark(*args):
        outcomes.append(measurement.benchmark(*args))
        return outcomes[-1]
    monkeypatch.setattr(measurement.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(policy, "benchmark", benchmark)
    backend = register_backend(Counting())
    try:
        backend.compile = lambda program: runs("test_counting", 1.5 * length)
        monkeypatch.setattr(policy, "candidate_backends", lambda device, all_backends=False: [backend])
        best, why = policy.compare_backends(torch.fx.symbolic_trace(torch.nn.Identity()), runs("native", length), [torch.ones(1)], (), CPU)
    finally:
        registry.BACKENDS.pop("test_counting", None)
    assert best is None and why == inference_states.FASTEST
    assert outcomes[0].times == pytest.approx({"native": least[0], "test_counting": least[1]}, rel=1e-6)
    assert made.count("native") == calls


def test_a_trial_ends_with_a_changed_weight(challenger, monkeypatch):
    challenger()
    net, x = network(), nd.ones((1, 3))
    spent(monkeypatch, net, x)
    net(x)
    assert isinstance(state_of(net), inference_states.Validating)
    net.weight.set_data(nd.full((2, 3), 2))
    assert net(x).asnumpy().tolist() == [[6, 6]] and isinstance(state_of(net), inference_states.Warmup)


def test_a_trial_that_gives_other_results_or_fails_is_lost(challenger, monkeypatch):
    for wrong in (lambda *inputs: (torch.full((1, 2), 4.0),), lambda *inputs: 1 / 0):
        backend, net, x = challenger(), network(), nd.ones((1, 3))
        monkeypatch.setattr(backend, "compile", lambda program, wrong=wrong: wrong)
        spent(monkeypatch, net, x)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                assert net(x).asnumpy().tolist() == [[3, 3]]
        assert isinstance(state_of(net), inference_states.Native)
        assert [str(w.message)[:46] for w in caught] == ["backend 'test_counting' gives other results tha"[:46]] * (len(caught))
    assert not caught


def test_what_draws_is_in_no_contest():
    x = mx.sym.var("x")
    net = gluon.SymbolBlock(mx.sym.broadcast_add(x, mx.sym.random.uniform(shape=(1, 2))), [x])
    net.hybridize(static_alloc=True, static_shape=True)
    mx.random.seed(5)
    found = net(nd.zeros((2, 2))).asnumpy().tolist()
    mx.random.seed(5)
    assert found == [nd.random.uniform(shape=(2,)).asnumpy().tolist()] * 2
    assert "native, since it draws random numbers, which must not be drawn twice" in net.explain()


def test_what_draws_is_not_run_twice(challenger, monkeypatch):
    backend = challenger()
    net = nn.HybridLambda(lambda F, x: x + F.random.normal(shape=(1, 3)))
    net.hybridize()
    spent(monkeypatch, net, nd.ones((1, 3)))
    for _ in range(3):
        net(nd.ones((1, 3)))
    assert backend.compiled == 0 and isinstance(state_of(net), inference_states.Native)


@pytest.mark.parametrize("found, expected, agree", [
    ([1.0, 2.0], [1.0, 2.0005], True), ([1.0, 2.0], [1.0, 2.1], False),
    ([1.0, math.nan], [1.0, math.nan], True), ([1.0, math.inf], [1.0, math.inf], True),
    ([5.0, math.inf], [1.0, math.inf], False), ([1.0, -math.inf], [1.0, math.inf], False), ([1.0, math.nan], [1.0, math.inf], False),
    ([1.0, math.nan], [1.0, 2.0], False), ([1.0, 2.0], [1.0, math.nan], False), ([math.nan], [math.nan], True), ([], [], True)])
def test_results_with_infinite_ones_and_no_numbers(found, expected, agree):
    assert policy._agree([torch.tensor(found)], [torch.tensor(expected)]) is agree


def test_a_network_of_no_numbers_goes_on(challenger, monkeypatch):
    challenger()
    net = nn.HybridLambda("sqrt")
    net.hybridize()
    x = nd.array([-1, 4])
    spent(monkeypatch, net, x)
    for _ in range(5):
        assert str(net(x).asnumpy().tolist()) == "[nan, 2.0]"
