"""The race of a compiled graph and a rival: when it starts, what it costs a call, who wins, and what ends it. No clock of the machine is read."""
import gc
import threading
import weakref

import numpy as np
import pytest
import torch

import mxnet as mx
from kernel_limits import forget_choices, used_from
from mxnet import kernels, nd
from mxnet.gluon import nn
from mxnet.graph import GraphRunner, register_backend
from mxnet.graph.backends import registry
from mxnet.graph.backends.cpu import backend as own
from mxnet.graph.program import Program
from mxnet.graph.tuning import comparison, inference_states, policy
from mxnet.kernels.conv import convolution, prepacked_conv
from mxnet.ndarray import dispatch

CPU = torch.device("cpu")
HOLDER = 10.0  # what a call of the holder takes


class Clock:
    """Time that passes only where a test says so."""

    now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(comparison, "time", found)
    return found


class Race:
    """A holder and a rival of ``x * w + w``, which take what the clock is told."""

    def __init__(self, clock, takes=5.0, budget=0.0, adds=0.0):
        weight = mx.sym.var("w")
        runner = GraphRunner(mx.sym.var("x") * weight + weight, weights=[1])
        self.clock, self.takes, self.adds, self.compiled, self.ran = clock, takes, adds, 0, []
        self.inputs = [torch.ones(2), torch.full((2,), 3.0)]
        self.module = runner.lowered(False, CPU, self.inputs)
        holder = self.frozen("holder", lambda x, w: self.run("holder", HOLDER, (x * w + w,)))
        self.state = comparison.Comparing(holder, "rival", budget, self.compile, policy._agree)

    def frozen(self, name, function):
        return inference_states.Compiled(function, self.inputs, [1], Program(self.module, self.inputs, [1]), name)

    def run(self, who, seconds, found):
        self.ran.append(who)
        self.clock.now += seconds
        return found

    def compile(self, inputs):
        self.compiled += 1
        rival = self.frozen("rival", lambda x, w: self.run("rival", self.takes, (x * w + w,)))
        for node in rival.program.graph.nodes:
            if node.op == "call_function":
                node.target = self.layer(node.target)
        return rival

    def layer(self, target):
        def run(*args, **kwargs):
            return self.run("layer", 8.0, target(*args, **kwargs) + self.adds)
        return run

    def call(self, times=1):
        for _ in range(times):
            assert self.state.function(*self.inputs)[0].tolist() == [6, 6]

    def through(self):
        """Call until it is decided; returns how many calls that took, from the first turn on."""
        while self.state.choice is None and self.state._calls == 0:
            self.call()
        while self.state.choice is None:
            self.call()
        return self.state._calls


def test_the_rival_is_not_compiled_before_the_holder_has_spent_what_that_costs(clock):
    race = Race(clock, budget=25.0)
    race.call(2)
    assert race.compiled == 0 and race.state.explain()[0] == "holder, until it has taken 25.00 s (20.00 s so far); then rival races with it"
    race.call()
    assert race.compiled == 1 and race.state.explain()[0] == "holder, racing with rival: 0 calls in turns"
    assert race.ran == ["holder"] * 3


def test_layers_run_beside_calls_which_take_twice_as_long(clock):
    race = Race(clock)
    race.call()
    before = clock.now
    race.call()  # 10 s, and layers of 8 s until as many have passed: two
    assert clock.now - before == 26.0 and race.ran[1:] == ["holder", "layer", "layer"]
    race.call()
    assert race.state._first_run is None and race.state.choice is None and race.ran[4:] == ["holder"]


@pytest.mark.parametrize("takes, waits, calls, winner, said", [
    (9.0, 0.12, 12, "rival", "rival: 9e+03 ms a call, holder 1e+04 (medians of 3)"),
    (9.7, 0.0, 12, "rival", "rival: 9.7e+03 ms a call, holder 1e+04 (medians of 3)"),
    (9.7, 0.12, 12, "holder", "rival: 9.7e+03 ms a call, holder 1e+04 (medians of 3), not clearly ahead"),  # by which other programs may explain
    (10.2, 0.0, 12, "holder", "rival: 1.02e+04 ms a call, holder 1e+04 (medians of 3)"),  # after one turn it could have been by chance
    (8.6, 0.0, 12, "rival", "rival: 8.6e+03 ms a call, holder 1e+04 (medians of 3)"),
    (8.4, 0.0, 2, "rival", "rival: 8.4e+03 ms a call, holder 1e+04 (medians of 1)"),  # than all calls of the holder before
    (10.9, 0.0, 12, "holder", "rival: 1.09e+04 ms a call, holder 1e+04 (medians of 3)"),
    (11.1, 0.0, 4, "holder", "rival: 1.11e+04 ms a call, holder 1e+04 (medians of 1)"),
])
def test_who_wins(takes, waits, calls, winner, said, clock, monkeypatch):
    monkeypatch.setattr(comparison.processor, "waited", lambda: waits * clock.now)
    race = Race(clock, takes)
    assert race.through() == calls
    assert race.state.choice.name == winner and said in race.state.choice.explain()
    assert not race.state.holds(race.inputs) and race.state.choice.holds(race.inputs)
    assert race.ran[-calls:] == (["rival", "rival", "holder", "holder"] * 3)[:calls]  # turns of two: these calls are long


@pytest.mark.parametrize("seconds, most, calls", [(0.1, 50, 4), (75.0, 50, 8), (75.0, 5, 5)])
def test_short_calls_have_longer_turns(seconds, most, calls, clock, monkeypatch):
    for name, value in (("LONG", 60.0), ("_SECONDS", seconds), ("_MOST", most)):
        monkeypatch.setattr(comparison, name, value)
    race = Race(clock)
    assert race.through() == calls  # one turn: half of the time is beyond chance
    assert f"rival: 5e+03 ms a call, holder 1e+04 (medians of {calls - 1})" in race.state.choice.explain()


def test_the_first_call_of_a_turn_does_not_count(clock, monkeypatch):
    race = Race(clock)
    run, before = race.run, []

    def slow_after_another(who, seconds, found):
        seconds += 100.0 * (race.ran[-1:] != [who])
        before.append(seconds)
        return run(who, seconds, found)
    race.run = slow_after_another
    race.through()
    assert 110.0 in before and "rival: 5e+03 ms a call, holder 1e+04 (medians of 1)" in race.state.choice.explain()


def test_other_results_end_it(clock):
    race = Race(clock, adds=1.0)
    race.through()
    assert race.state.choice.name == "holder" and "rival: gives other results" in race.state.choice.explain()


def test_data_may_be_overwritten_between_calls(clock):
    race = Race(clock)
    race.call()
    race.inputs[0].fill_(5.0)
    assert race.state.function(*race.inputs)[0].tolist() == [18, 18]
    race.inputs[0].fill_(1.0)
    race.through()
    assert race.state.choice.name == "rival"


@pytest.mark.parametrize("where", ["compiling", "a layer", "a turn"])
def test_a_rival_that_fails_ends_it(where, clock):
    def fail(*args, **kwargs):
        raise ValueError("no such thing\nas this")
    race = Race(clock)
    if where == "compiling":
        race.state._compile = fail
    elif where == "a layer":
        race.layer = lambda target: fail
    else:
        compile = race.compile

        def compile_what_fails(inputs):
            rival = compile(inputs)
            rival.function = fail
            return rival
        race.state._compile = compile_what_fails
    race.through()
    assert race.state.choice.name == "holder" and "rival: fails, ValueError: no such thing" in race.state.choice.explain()


def interrupts_once(function, at):
    """A function that a Ctrl-C interrupts in one call."""
    calls = [0]

    def run(*args):
        calls[0] += 1
        if calls[0] == at:
            raise KeyboardInterrupt
        return function(*args)
    return run


@pytest.mark.parametrize("at", [1, 2])
def test_a_ctrl_c_beside_a_call_starts_it_anew(at, clock):
    race = Race(clock)
    race.run = interrupts_once(race.run, 2 + at)  # after a call of the holder, and another
    with pytest.raises(KeyboardInterrupt):
        race.call(4)
    race.through()
    assert race.compiled == 2 and race.state.choice.name == "rival"


@pytest.mark.parametrize("at", range(12))
def test_a_ctrl_c_in_a_turn_costs_a_time(at, clock):
    race = Race(clock)
    while race.state._candidate is None or race.state._first_run is not None:
        race.call()
    race.run = interrupts_once(race.run, 1 + at)
    with pytest.raises(KeyboardInterrupt):
        race.call(12)
    race.through()
    assert race.state.choice.name == "rival"


def test_what_is_observed_does_not_race(clock, monkeypatch):
    race, told = Race(clock), []
    monkeypatch.setattr(dispatch, "graph_observer", lambda *call: told.append(call))
    race.call(3)
    assert len(told) == 3 and race.compiled == 0 and race.state.spent == 0


def test_another_thread_runs_the_holder_meanwhile(clock):
    race, found = Race(clock), []
    compile = race.compile

    def in_the_middle(inputs):
        thread = threading.Thread(target=lambda: found.append(race.state.function(*inputs)[0].tolist()))
        thread.start()
        thread.join(30)
        return compile(inputs)
    race.state._compile = in_the_middle
    race.call()
    assert found == [[6, 6]] and race.compiled == 1 and race.ran == ["holder", "holder"]


def test_a_weight_that_is_written_to_ends_it(clock):
    race = Race(clock)
    race.call(2)
    assert race.state.holds(race.inputs) and not race.state.holds([race.inputs[0], race.inputs[1].clone()])
    mx.ndarray.mutation_tracking.written(race.inputs[1])
    assert not race.state.holds(race.inputs) and "out of date: a weight was written to" in race.state.explain()


class Holder:
    """A backend that stands for OpenVINO, and takes its time on the clock."""

    name, specializes, trains, freezes, devices = "test_holder", True, False, True, ("cpu",)

    def __init__(self, clock):
        self.clock, self.compiled = clock, 0

    def compile(self, program):
        self.compiled += 1
        weights = {i: program.inputs[i].clone() for i in program.weights}
        forward = program.module.forward

        def run(*inputs):
            self.clock.now += 1.0
            return tuple(forward(*[weights.get(i, t) for i, t in enumerate(inputs)]))
        for node in program.graph.nodes:
            node.meta.pop("node", None)  # as where a graph is divided: nothing of it can be recognized
        return run


@pytest.fixture
def holder(clock, monkeypatch):
    """Small graphs of convolutions race, and `kernels` takes no time at all."""
    if kernels.load("conv/convolution") is None or kernels.load("conv/winograd") is None:
        pytest.skip("no C++ compiler")
    backend = register_backend(Holder(clock))
    monkeypatch.setattr(policy, "candidate_backends", lambda device, all_backends=False: [backend])
    monkeypatch.setattr(own, "LEAST_WORK", 0)
    monkeypatch.setattr(policy, "_COMPILE", 0.0)
    used_from(monkeypatch, 0, prepacked_conv, convolution)
    forget_choices(monkeypatch, prepacked_conv)
    monkeypatch.setattr(prepacked_conv.autotuner, "fastest", lambda key, runs: "Winograd F(4x4)" if "Winograd F(4x4)" in runs else "direct")
    yield backend
    registry.BACKENDS.pop(backend.name, None)


def network(*more, **flags):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(32, 3, padding=1, in_channels=16, activation="relu"), *more)
    net.initialize()
    rng = np.random.RandomState(0)
    for parameter in net.collect_params().values():
        parameter.set_data(nd.array(rng.uniform(-0.3, 0.3, parameter.shape)))
    net.hybridize(**flags)
    return net


def image():
    return nd.array(np.random.RandomState(1).uniform(-1, 1, (1, 16, 12, 12)))


def state_of(net):
    state, = net._cached_op.handle.states.values()
    return state


PROMISED = {"static_alloc": True, "static_shape": True}


def settle(net, x):
    for _ in range(60):
        found = net(x).asnumpy()
        if net._cached_op.handle.settled:
            return found
    raise AssertionError(net.explain())


@pytest.mark.parametrize("flags", [PROMISED, {}], ids=["promised", "tried"])
def test_kernels_take_over_and_the_loser_goes(flags, holder, monkeypatch):
    if not flags:
        monkeypatch.setattr(policy, "_COMPILE_OPERATOR", 0.0)
        monkeypatch.setattr(inference_states.Validating, "is_faster", True)
    net, x = network(**flags), image()
    while not net._cached_op or type(state_of(net)) is not comparison.Comparing:
        expected = net(x).asnumpy()
    before = weakref.ref(state_of(net).incumbent)
    assert not net._cached_op.handle.settled
    np.testing.assert_allclose(settle(net, x), expected, rtol=1e-4, atol=1e-5)
    gc.collect()
    state = state_of(net)
    assert type(state) is inference_states.Compiled and state.name == "kernels" and before() is None
    assert "kernels: 0 ms a call, test_holder 1e+03 (medians of 1)" in net.explain()
    assert "convolutions, forward: 1 x Winograd F(4x4)" in net.explain()


@pytest.mark.parametrize("calls", [0, 1, 2, 4, 8, 13])
def test_weights_that_change_in_the_middle(calls, holder):
    net, x = network(**PROMISED), image()
    for _ in range(1 + calls):
        before = net(x).asnumpy()
    net[0].weight.data()[:] *= 2
    after = net(x).asnumpy()
    assert holder.compiled == 2 and type(state_of(net)) is comparison.Comparing
    np.testing.assert_allclose(settle(net, x), after, rtol=1e-4, atol=1e-5)
    net.hybridize(False)
    assert not np.allclose(before, after)
    np.testing.assert_allclose(after, net(x).asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("why", ["exact", "variable", "small", "named", "draws"])
def test_where_nothing_races(why, holder, monkeypatch):
    flags, more = dict(PROMISED), ()
    if why == "exact":
        flags["exact"] = True
    elif why == "variable":
        monkeypatch.setenv("MXNET_CONVOLUTION_ALGORITHM", "exact")
    elif why == "small":
        monkeypatch.setattr(own, "LEAST_WORK", 1 << 28)
    elif why == "named":
        flags["backend"] = holder.name
    elif why == "draws":
        more = [nn.HybridLambda(lambda F, x: F.broadcast_add(x, F.random.uniform(shape=(1,))))]
    net, x = network(*more, **flags), image()
    net(x)
    assert type(state_of(net)) is inference_states.Compiled and state_of(net).name == holder.name and holder.compiled == 1


def test_without_kernels_the_holder_stays(holder, monkeypatch):
    monkeypatch.setattr(registry, "can_run", lambda backend, device: backend is holder)
    net, x = network(**PROMISED), image()
    settle(net, x)
    assert state_of(net).name == holder.name and "kernels: fails, Unavailable: there are no kernels for this machine" in net.explain()
