import pytest
import torch

import mxnet as mx
from mxnet.graph import GraphRunner
from mxnet.graph.program import Program
from mxnet.graph.tuning import inference_states
from mxnet.ndarray import writes


def double(*inputs):
    return tuple(2 * t for t in inputs)


@pytest.fixture
def frozen():
    """A product with the weight built in, and its inputs."""
    runner = GraphRunner(mx.sym.var("x") * mx.sym.var("w"), weights=[1])
    inputs = [torch.ones(3), torch.full((3,), 2.0)]
    program = Program(runner.lowered(False, torch.device("cpu"), inputs), inputs, [1])
    program.note("built for a test")
    return inference_states.Compiled(double, inputs, [1], program), inputs


def test_native_stays_whatever_comes():
    state = inference_states.Native(double, "which proved the fastest")
    assert state.holds([]) and state.function is double
    assert state.explain() == ["native, which proved the fastest"] and inference_states.Native(double).explain() == ["native"]


def test_a_candidate_holds_until_its_time_is_spent(monkeypatch):
    class Clock:
        now = 0.0

        def perf_counter(self):
            self.now += 0.25
            return self.now

    monkeypatch.setattr(inference_states, "time", Clock())
    state = inference_states.Warmup(double, budget=0.5)
    assert state.holds([]) and state.function(torch.ones(1))[0].tolist() == [2]
    assert state.holds([]) and state.explain() == ["native, until it has taken 0.50 s (0.25 s so far)"]
    state.function()
    assert not state.holds([]) and state.spent == 0.5


def test_a_frozen_graph_holds_for_the_weights_it_was_compiled_with(frozen):
    state, (x, w) = frozen
    assert state.holds([x, w]) and state.holds([torch.zeros(3), w]) and state.holds([x, w.detach()])
    assert not state.holds([x, w.clone()])
    assert not state.holds([x, w.view(torch.int32)])  # at the same address
    assert state.explain() == ["built for a test"]


def test_a_frozen_graph_is_over_when_a_weight_is_written_to(frozen):
    state, inputs = frozen
    writes.written(inputs[0])
    assert state.holds(inputs)
    writes.written(inputs[1])
    assert not state.holds(inputs) and state.explain() == ["built for a test", "out of date: a weight was written to"]


def test_versions_of_tensors_count_once_somebody_else_may_write(frozen):
    state, inputs = frozen
    assert not state.weights.compares
    writes.share(inputs[1])
    assert state.weights.compares and state.holds(inputs)
    inputs[1].add_(1)
    assert not state.weights.stale and not state.holds(inputs)
