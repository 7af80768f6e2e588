"""Who won a graph, kept on disk: what belongs together, who is believed, and what a file can do wrong."""
import itertools
import json
import logging
import os
import subprocess
import textwrap

import numpy as np
import pytest
import torch
from torch import fx

import mxnet as mx
from backend_checks import Counting
from forked import python
from mxnet import kernels, nd
from mxnet.gluon import nn
from mxnet.graph import GraphRunner, register_backend
from mxnet.graph.backends import registry as backends
from mxnet.graph.backends.cpu import backend as own
from mxnet.graph.program import operator_of
from mxnet.graph.tuning import cache, comparison, inference_states, policy
from mxnet.graph.tuning.cache import NATIVE, CachedChoice, CacheEntry
from mxnet.kernels.runtime import measurement, tuning
from mxnet.kernels.runtime.measurement import Policy
from mxnet.ops import registry

CPU = torch.device("cpu")
PROMISED = {"static_alloc": True, "static_shape": True}
needs_kernels = pytest.mark.skipif(kernels.load("conv/prepacked_conv") is None, reason="no C++ compiler")


class Here(tuning.TuningCache):
    """A store in a folder of its own."""

    def __init__(self, folder):
        super().__init__("graphs", "gemm/prepacked_skinny")
        self.folder = folder

    @property
    def path(self):
        return self.folder / self._file

    def content(self):
        return json.loads(self.path.read_text())


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Where winners are kept in this test, which is switched on again."""
    def another():  # as another process has it
        monkeypatch.setattr(cache, "tuning_cache", Here(tmp_path))
        return cache.tuning_cache
    found = another()
    found.another = another
    return found


@pytest.fixture
def backend(monkeypatch, store):
    """The one challenger. It takes half of the time of `native`; `timed` tells how often anybody looked."""
    backend = register_backend(Counting(seconds=0.5))
    backend.timed = 0

    def timed(function, inputs):
        backend.timed += 1
        return backend.seconds if function is backend.function else 1.0, function(*inputs)
    monkeypatch.setattr(policy, "candidate_backends", lambda device, all_backends=False: [backend])
    monkeypatch.setattr(policy, "mlp_candidates", lambda *args: [])
    monkeypatch.setattr(policy, "timed", timed)
    monkeypatch.setattr(measurement.processor, "waited", lambda: 0.0)
    yield backend
    backends.BACKENDS.pop("test_counting", None)


def network(weight="ones", **flags):
    net = nn.Dense(2, in_units=3, weight_initializer=weight, activation="tanh")
    net.initialize()
    net.hybridize(**flags or PROMISED)
    return net


def state_of(net):
    state, = net._cached_op.handle.states.values()
    return state


def spend(net):
    """Let it have spent the time that it has on `native`."""
    state_of(net).spent = state_of(net).budget


def data():
    return nd.array([[0.1, 0.2, 0.3]])


def right(net, x=None):
    """Whether the network gives what it does step by step."""
    x = data() if x is None else x
    found = net(x).asnumpy()
    return np.allclose(found, np.tanh(x.asnumpy() @ net.weight.data().asnumpy().T + net.bias.data().asnumpy()), rtol=1e-5)


# -- what belongs together ---------------------------------------------------------------------------------------------


def lowered(symbol, inputs):
    return GraphRunner(symbol).lowered(False, CPU, inputs)


def key(symbol=None, inputs=None, weights=(1,), exact=False):
    x, w = mx.sym.var("x"), mx.sym.var("w")
    symbol = mx.sym.FullyConnected(x, w, num_hidden=2, no_bias=True) if symbol is None else symbol(x, w)
    inputs = [torch.ones(4, 3), torch.ones(2, 3)] if inputs is None else inputs
    return CacheEntry(lowered(symbol, inputs), inputs, weights, exact)._key


def test_other_weights_and_names_are_the_same_graph():
    other = mx.sym.FullyConnected(mx.sym.var("image"), mx.sym.var("filter"), num_hidden=2, no_bias=True, name="last")
    inputs = [torch.zeros(4, 3), torch.randn(2, 3)]
    assert key() is not None and key() == key(lambda x, w: other, inputs)


@pytest.mark.parametrize("what", [
    {"inputs": [torch.ones(5, 3), torch.ones(2, 3)]},
    {"inputs": [torch.ones(4, 3).double(), torch.ones(2, 3).double()]},
    {"weights": ()},
    {"exact": True},
    {"symbol": lambda x, w: mx.sym.FullyConnected(x, w, num_hidden=2, no_bias=True, flatten=False)},
    {"symbol": lambda x, w: mx.sym.relu(mx.sym.FullyConnected(x, w, num_hidden=2, no_bias=True))},
    {"symbol": lambda x, w: mx.sym.dot(x, w, transpose_b=True)},
    {"symbol": lambda x, w: mx.sym.Group([mx.sym.FullyConnected(x, w, num_hidden=2, no_bias=True), x])},
], ids=["shape", "type", "not fixed", "exact", "attribute", "one more", "operator", "outputs"])
def test_another_graph_has_another_key(what):
    assert key(**what) is not None and key(**what) != key()


def test_the_order_of_inputs_counts():
    inputs = [torch.ones(2), torch.ones(2)]
    keys = {key(f, inputs, ()) for f in (lambda x, w: x - w, lambda x, w: mx.sym.Group([x, w])[0] - w * x, lambda x, w: (x - w) - w,
                                         lambda x, w: (x - w) - x)}
    assert len(keys) == 4 and None not in keys


def test_settings_and_the_number_of_threads_have_another_key(monkeypatch):
    before = key()
    with monkeypatch.context() as patch:
        patch.setattr(torch, "get_num_threads", lambda: 77)
        assert "77 threads" in key()
    for name, value in (("MXNET_USE_FUSION", "0"), ("MXNET_CONVOLUTION_ALGORITHM", "exact"), ("MXNET_CUDNN_AUTOTUNE_DEFAULT", "0")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert key() not in (None, before), name
    monkeypatch.setattr(cache, "_openvino", lambda: "1.0")
    assert key() not in (None, before)


class Doubled(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)


@mx.operator.register("test_winners_doubled")
class DoubledProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Doubled()


@pytest.mark.parametrize("symbol", [
    lambda x, w: x + mx.sym.random.uniform(shape=(4, 3)),
    lambda x, w: mx.sym.Custom(x, op_type="test_winners_doubled"),
    lambda x, w: mx.sym.contrib.foreach(lambda a, s: (a + s, s), x, mx.sym.ones((3,)))[0],
    lambda x, w: mx.sym.sgd_mom_update(x, x * 2, w, lr=0.1),
], ids=["random", "the user's code", "a loop", "it writes"])
def test_what_a_text_does_not_tell_has_none(symbol):
    assert key(symbol, [torch.ones(4, 3)] * 2, ()) is None


class Adding:
    def __init__(self, number):
        self.number = number

    def add(self, x):
        return x + self.number

    __call__ = add


def plain(x):
    return x


def made(number):
    def adding(x):
        return x + number
    adding.__qualname__ = adding.__name__ = "adding"  # as functools.wraps has it
    adding.__module__ = "mxnet.graph.program"
    return adding


@pytest.mark.parametrize("target", [Adding(1), Adding(1).add, plain, made(1), lambda x: x, torch.relu], ids=lambda t: type(t).__name__)
def test_functions_that_are_no_operators_have_none(target):
    module = lowered(mx.sym.relu(mx.sym.var("x")), [torch.ones(2)])
    node = next(n for n in module.graph.nodes if n.op == "call_function")
    assert CacheEntry(module, [torch.ones(2)], (), False)._key is not None and operator_of(node) is not None
    node.target = target
    assert CacheEntry(module, [torch.ones(2)], (), False)._key is None


def test_an_operator_that_a_program_registered_has_none(monkeypatch):
    assert key(lambda x, w: mx.sym.relu(x), [torch.ones(2)], ()) is not None
    monkeypatch.setattr(registry.OPERATORS["relu"], "raw", plain)
    assert key(lambda x, w: mx.sym.relu(x), [torch.ones(2)], ()) is None


def test_methods_have_none():
    graph = fx.Graph()
    graph.output((graph.call_method("neg", (graph.placeholder("x"),)),))
    assert CacheEntry(fx.GraphModule(torch.nn.Module(), graph), [torch.ones(2)], (), False)._key is None


def test_outputs_of_an_operator_with_several_are_told():
    keys = [key(lambda x, w, i=i: mx.sym.split(x, num_outputs=2, axis=0)[i], [torch.ones(4, 3)], ()) for i in (0, 1)]
    assert None not in keys and keys[0] != keys[1]


def test_a_record_without_a_key_keeps_nothing(store):
    inputs = [torch.ones(4, 3)]
    record = CacheEntry(lowered(mx.sym.var("x") + mx.sym.random.uniform(shape=(4, 3)), inputs), inputs, (), False)
    assert record.choice is None
    assert record.store("somebody", 1.0, 0.0) == "not kept, since it is not known whether another graph is the same"
    record.forget()
    assert not store.path.exists()


# -- from process to process -------------------------------------------------------------------------------------------


def test_the_next_one_goes_straight_to_the_winner(backend, store):
    first = network()
    assert right(first) and backend.compiled == 1 and backend.timed > 0
    assert list(store.content().values()) == ["test_counting"] and f"  test_counting: kept in {store.path}" in first.explain().splitlines()
    backend.timed, store = 0, store.another()
    second = network("zeros")
    assert right(second) and backend.compiled == 2 and type(state_of(second)) is CachedChoice
    assert state_of(second).explain() == ["test_counting, whose results are compared with those of native in the first call",
                                          f"test_counting won before: kept in {store.path}"]
    assert right(second) and type(state_of(second)) is inference_states.Compiled and backend.timed == 0
    assert f"test_counting won before: kept in {store.path}" in second.explain()


def test_native_is_kept_and_nobody_compiles(backend, store):
    backend.seconds = 2.0
    assert right(network()) and list(store.content().values()) == [NATIVE]
    store = store.another()
    net = network()
    assert right(net) and type(state_of(net)) is inference_states.Native and backend.compiled == 1
    assert f"  native, which proved the fastest before, kept in {store.path}" in net.explain().splitlines()


def test_a_graph_whose_shapes_may_change_spends_its_time_first(backend):
    assert right(network())
    backend.timed = 0
    net = network(static_alloc=False)
    assert right(net) and type(state_of(net)) is inference_states.Warmup and backend.compiled == 1
    spend(net)
    assert right(net) and type(state_of(net)) is CachedChoice and not net._cached_op.handle.settled
    assert right(net) and type(state_of(net)) is inference_states.Compiled and net._cached_op.handle.settled and backend.timed == 0


@pytest.mark.parametrize("seconds, name", [(0.5, "test_counting"), (2.0, NATIVE)])
def test_who_won_a_trial_is_kept(backend, store, monkeypatch, seconds, name):
    monkeypatch.setattr(policy, "GRAPH", Policy(least=1, most=1))
    net = network(static_alloc=False)
    net(data())
    spend(net)
    net(data())
    trial = state_of(net)
    assert type(trial) is inference_states.Validating and not store.path.exists()
    trial._native_seconds, trial._seconds = 1.0, [seconds]
    trial.agrees = True
    assert right(net) and list(store.content().values()) == [name]
    assert (f"test_counting: kept in {store.path}" in net.explain()) is (seconds < 1)


def test_a_trial_that_gives_other_results_decides_for_this_process_alone(backend, store):
    net, backend.scale = network(static_alloc=False), 1.5
    net(data())
    spend(net)
    with pytest.warns(UserWarning, match="backend 'test_counting' gives other results than 'native'"):
        net(data())
    assert right(net) and type(state_of(net)) is inference_states.Native and not store.path.exists()


def test_who_won_a_trial_among_other_programs_is_not_kept(backend, store):
    net = network(static_alloc=False)
    net(data())
    spend(net)
    net(data())
    trial = state_of(net)
    trial._native_seconds, trial._seconds, trial.waited, trial.agrees = 1.0, [0.5] * 50, 25 * 0.12, True
    assert right(net) and type(state_of(net)) is inference_states.Compiled and not store.path.exists()
    assert "test_counting: not kept, since other programs ran meanwhile: threads waited 3e+03 of 2.5e+04 ms for a processor" in net.explain()


def test_a_trial_adds_up_what_its_calls_have_waited(backend, monkeypatch):
    now = [0.0]

    def waited():
        now[0] += 0.25
        return now[0]
    monkeypatch.setattr(inference_states.processor, "waited", waited)
    monkeypatch.setattr(policy, "GRAPH", Policy(least=99, most=99))  # however long they take
    net = network(static_alloc=False)
    net(data())
    spend(net)
    for _ in range(4):
        net(data())
    assert state_of(net).agrees and state_of(net).waited == 0.25 * 3


@pytest.mark.parametrize("waited, is_kept", [(0.08, True), (0.12, False)])
def test_what_other_programs_had_a_part_in_is_not_kept(store, waited, is_kept):
    inputs = [torch.ones(2)]
    record = CacheEntry(lowered(mx.sym.relu(mx.sym.var("x")), inputs), inputs, (), False)
    said = record.store("somebody", 1.0, waited)
    if is_kept:
        assert said == f"kept in {store.path}" and record.choice == "somebody"
    else:
        assert said == "not kept, since other programs ran meanwhile: threads waited 120 of 1e+03 ms for a processor"
        assert record.choice is None and not store.path.exists()
        assert record.store("somebody", 1.0, waited, sure=True) == f"kept in {store.path}" and record.choice == "somebody"


def test_a_contest_among_other_programs_is_not_kept(backend, store, monkeypatch):
    now = [0.0]

    def waited():
        now[0] += 100.0
        return now[0]
    monkeypatch.setattr(measurement.processor, "waited", waited)
    net = network()
    assert right(net) and type(state_of(net)) is inference_states.Compiled and not store.path.exists()


def test_threads_that_ended_have_not_waited_less_than_nothing(backend, store, monkeypatch):
    told = []
    monkeypatch.setattr(CacheEntry, "store", lambda self, name, seconds, waited: told.append(waited))
    now = iter([50.0, 20.0])
    monkeypatch.setattr(measurement.processor, "waited", lambda: next(now))
    net = network()
    net(data())
    assert told == [0.0]


PROGRAM = """
import mxnet as mx
from mxnet.graph import register_backend
from mxnet.graph.tuning import policy
from mxnet.kernels.runtime import measurement
from mxnet.kernels.runtime.measurement import Outcome

class Somebody:
    name, specializes, trains, freezes, devices = "somebody", True, False, True, ("cpu",)
    def compile(self, program):
        return program.module.forward

backend = register_backend(Somebody())
timed = []
policy.candidate_backends = lambda device, all_backends=False: [backend]
policy.mlp_candidates = lambda *args: []
measurement.processor.waited = lambda: 0.0
policy.timed = lambda function, inputs: (timed.append(1), (1.0 if len(timed) % 2 else 0.5, function(*inputs)))[1]
policy.benchmark = lambda runs, clock, rules: (timed.append(1), Outcome({name: 1.0 if name == "native" else 0.5 for name in runs}, 1.0, 0.0))[1]
net = mx.gluon.nn.Dense(2, in_units=3, activation="tanh")
net.initialize(mx.init.Normal())
net.hybridize(static_alloc=True, static_shape=True)
for _ in range(2):
    net(mx.nd.ones((1, 3)))
state, = net._cached_op.handle.states.values()
print(type(state).__name__, len(timed))
"""


def test_another_process_goes_straight_to_the_winner(tmp_path):
    def run():
        return subprocess.run([*python(), "-c", textwrap.dedent(PROGRAM)], env={**os.environ, "MXNET_HOME": str(tmp_path)}, check=True,
                              capture_output=True, text=True).stdout.split()
    assert run() == ["Compiled", "1"]
    path, = (tmp_path / "kernels").glob("graphs-*.json")
    assert list(json.loads(path.read_text()).values()) == ["somebody"]
    assert run() == ["Compiled", "0"]


# -- who is not believed -----------------------------------------------------------------------------------------------


def test_wrong_results_are_noticed_once_and_forgotten(backend, store, recwarn):
    assert right(network())
    backend.scale, backend.timed, store = 1.5, 0, store.another()
    net = network()
    assert right(net) and type(state_of(net)) is CachedChoice and store.content() == {} and backend.timed == 0 and not recwarn.list
    with pytest.warns(UserWarning, match="backend 'test_counting' gives other results than 'native'"):
        assert right(net)  # as if nothing had been known
    assert type(state_of(net)) is inference_states.Native and backend.timed > 0 and store.content() == {}
    assert "since test_counting gives other results" in net.explain()


def test_what_fails_when_it_runs_is_forgotten(backend, store, monkeypatch):
    assert right(network())
    store = store.another()
    with monkeypatch.context() as patch:
        patch.setattr(backend, "compile", lambda program: lambda *inputs: 1 / 0)
        net = network()
        assert right(net) and store.content() == {}
    assert right(net) and type(state_of(net)) is inference_states.Compiled and list(store.content().values()) == ["test_counting"]


def test_what_does_not_compile_is_forgotten(backend, store, caplog):
    assert right(network())
    backend.fails, backend.compiled, store = True, 0, store.another()
    net = network()
    with caplog.at_level(logging.INFO):
        assert right(net) and type(state_of(net)) is inference_states.Native and store.content() == {}
    assert "graph: test_counting cannot compile it: out of luck" in caplog.messages
    assert right(net) and backend.compiled == 2  # for whom it was kept, and as if nothing had been known


@pytest.fixture
def shipped(monkeypatch, tmp_path):
    """Lets the package have known a winner of all graphs."""
    def know(name):
        monkeypatch.setattr(tuning, "_SHIPPED", tmp_path / "shipped")
        network()(data())
        (known, _), = cache.tuning_cache.content().items()
        file = tuning.shipped_file("graphs")
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({known.partition(", remex ")[0]: name}))
        cache.tuning_cache.path.unlink()
    return know


def test_a_winner_that_came_with_the_package_is_compared_once(backend, store, shipped):
    shipped("test_counting")
    backend.timed, store = 0, store.another()
    net = network()
    assert right(net) and type(state_of(net)) is CachedChoice and backend.timed == 0
    assert right(net) and type(state_of(net)) is inference_states.Compiled and "test_counting won before: as the package knows" in net.explain()
    assert not store.path.exists()


def test_layers_of_native_choose_no_algorithm_for_the_one_comparison(backend, store, shipped, monkeypatch):
    shipped("test_counting")
    store.another()
    postponed = []
    monkeypatch.setattr(tuning, "unreliable", lambda: False)  # whatever other programs do
    monkeypatch.setattr(cache, "run", lambda *args: postponed.append(tuning.postponed()) or inference_states.run(*args))
    assert right(network()) and postponed == [True] and not tuning.postponed()


def test_what_is_kept_counts_more_than_what_came_with_the_package(backend, store, shipped):
    shipped("test_counting")
    store = store.another()
    lowered_key = next(iter(json.loads(tuning.shipped_file("graphs").read_text())))
    store.keep(f"{lowered_key}, remex {cache.remex_version}, OpenVINO {cache._openvino()}", NATIVE)
    net = network()
    assert right(net) and type(state_of(net)) is inference_states.Native and "native, which proved the fastest before, kept in" in net.explain()


def test_a_winner_that_came_with_the_package_and_fails_is_not_asked_again(backend, store, shipped):
    shipped("test_counting")
    backend.scale, another = 1.5, store.another
    another()
    net = network()
    assert right(net) and list(cache.tuning_cache.content().values()) == [""]
    with pytest.warns(UserWarning, match="backend 'test_counting' gives other results than 'native'"):
        assert right(net)
    another()
    net = network()
    with pytest.warns(UserWarning, match="backend 'test_counting' gives other results than 'native'"):
        assert right(net)  # at once by a contest
    assert type(state_of(net)) is inference_states.Native


def test_a_weight_that_changes_after_the_comparison(backend):
    assert right(network())
    net = network()
    assert right(net)
    net.weight.set_data(nd.full((2, 3), 2))
    assert right(net)
    net.weight.data()[:] = 3
    assert all(right(net) for _ in range(3))


@pytest.mark.parametrize("content", [
    "", "{", "[1]", "7", "null", '{"KEY": 7}', '{"KEY": null}', '{"KEY": {"a": "b"}}', '{"KEY": "gone"}', '{"KEY": "NATIVE"}', '{"KEY": ""}',
    '{"KEY": "test_counting\\u0000"}', '{"KEY": "../../bin/sh"}', '{"KEY": "native"', "\udcff", "[" * 100_000, '{"KEY": ' + "9" * 5000 + "}",
    '{"KEY": "native", "other": "' + "x" * tuning._LARGEST + '"}'], ids=range(18))
def test_a_damaged_or_hostile_file_decides_nothing(backend, store, content):
    assert right(network())
    known, = store.content()
    store.path.write_bytes(content.replace("KEY", known).encode("utf-8", "surrogateescape"))
    backend.timed, store = 0, store.another()
    net = network()
    assert right(net) and backend.timed > 0 and type(state_of(net)) is inference_states.Compiled
    assert store.content() == {known: "test_counting"}


def test_a_folder_in_its_place_decides_nothing(backend, store):
    store.path.mkdir()
    net = network()
    assert right(net) and type(state_of(net)) is inference_states.Compiled
    assert right(network())  # this process knows all the same


def test_a_backend_that_is_not_for_this_machine_is_not_asked(backend, store, monkeypatch):
    assert right(network())
    monkeypatch.setattr(policy.registry, "can_run", lambda backend, device: False)
    store.another()
    net = network()
    assert right(net) and backend.timed > 0


# -- settings ----------------------------------------------------------------------------------------------------------


def test_a_backend_that_is_named_runs_whatever_is_kept(backend, store):
    backend.seconds = 2.0
    assert right(network()) and list(store.content().values()) == [NATIVE]
    net = network(backend="test_counting")
    assert right(net) and type(state_of(net)) is inference_states.Compiled and backend.compiled == 2
    backend.seconds, net = 0.5, network()
    net.hybridize(backend="native", **PROMISED)
    assert right(net) and backend.compiled == 2


def test_a_contest_of_all_asks_nobody_who_won_before_and_keeps_nothing(backend, store):
    backend.seconds = 2.0
    assert right(network())
    before, backend.timed, backend.seconds = store.content(), 0, 0.5
    net = network(backend="auto")
    assert right(net) and backend.timed > 0 and type(state_of(net)) is inference_states.Compiled and store.content() == before


@pytest.mark.parametrize("name, value", [("MXNET_SUBGRAPH_BACKEND", "NONE"), ("MXNET_EXEC_BULK_EXEC_INFERENCE", "0")])
def test_where_nothing_is_compiled_nobody_who_won_is_either(backend, monkeypatch, name, value):
    assert right(network())
    monkeypatch.setenv(name, value)
    net = network()
    assert right(net) and right(net) and backend.compiled == 1


def convolutional():
    net = nn.Conv2D(16, 3, in_channels=16)
    net.initialize()
    net.hybridize(**PROMISED)
    return net


@pytest.fixture
def races_with(backend, monkeypatch):
    """Small convolutions have a rival that takes so much of the holder's time, and a race begins at once."""
    def begin(takes):
        monkeypatch.setattr(own, "LEAST_WORK", 1)
        for cost in ("_COMPILE", "_COMPILE_OPERATOR", "_CANDIDATE_OPERATOR"):
            monkeypatch.setattr(policy, cost, 0.0)
        monkeypatch.setattr(comparison.processor, "waited", lambda: 0.0)
        monkeypatch.setattr(comparison, "_SECONDS", 0.0)  # turns as short as they may be
        medians = itertools.cycle([1.0, takes])
        monkeypatch.setattr(comparison.statistics, "median", lambda seconds: next(medians))
        return convolutional()
    return begin


@needs_kernels
@pytest.mark.parametrize("takes, name", [(0.5, "kernels"), (2.0, "test_counting")])
def test_who_won_a_rivalry_is_kept(races_with, backend, store, takes, name):
    net = races_with(takes)
    x = nd.random.uniform(shape=(1, 16, 9, 9))
    expected = net(x).asnumpy()
    assert type(state_of(net)) is comparison.Comparing and not store.path.exists()
    for _ in range(200):
        np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
        if type(state_of(net)) is inference_states.Compiled:
            break
    assert list(store.content().values()) == [name] and f"{name}: kept in {store.path}" in net.explain()
    compiled, store = backend.compiled, store.another()
    net = convolutional()
    np.testing.assert_allclose(net(x).asnumpy(), net(x).asnumpy(), rtol=1e-4, atol=1e-5)
    assert type(state_of(net)) is inference_states.Compiled and state_of(net).name == name
    assert f"{name} won before: kept in {store.path}" in net.explain()
    assert backend.compiled == compiled + (name != "kernels")


def test_where_races_are_not_allowed_there_is_none_and_what_one_decided_does_not_count(races_with, backend, monkeypatch):
    x = nd.random.uniform(shape=(1, 16, 9, 9))
    net = races_with(0.5)
    net(x)
    record = CacheEntry(*arguments(net, x))
    record.store("kernels", 1.0, 0.0)
    monkeypatch.setenv("MXNET_CUDNN_AUTOTUNE_DEFAULT", "0")
    net = convolutional()
    net(x)
    assert type(state_of(net)) is inference_states.Compiled and state_of(net).name == "test_counting"
    monkeypatch.delenv("MXNET_CUDNN_AUTOTUNE_DEFAULT")
    assert CacheEntry(*arguments(net, x)).choice == "kernels"


def arguments(net, x):
    """What makes the record of a network."""
    runner = net._cached_op.handle
    inputs = [a._data for a in net._gathered.with_data([x])[0]]
    return runner.lowered(False, CPU, inputs), inputs, runner.weights, False
