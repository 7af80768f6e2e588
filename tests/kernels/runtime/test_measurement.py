"""Benchmarks and the thresholds of choices, on a clock that the tests move."""
import pytest

from mxnet.kernels.runtime import measurement
from mxnet.kernels.runtime.measurement import CALL, CALL_BESIDE_OTHERS, GPU_LAYER, GRAPH, LAYER, STEP, Policy, benchmark, is_quiet


@pytest.mark.parametrize("policy, seconds, enough", [
    (GRAPH, [0.4], True), (GRAPH, [0.1, 0.1], False), (GRAPH, [0.04] * 3, True), (GRAPH, [1e-4] * 49, False), (GRAPH, [1e-4] * 50, True),
    (LAYER, [], False), (LAYER, [0.029], False), (LAYER, [0.031], True), (LAYER, [1e-6] * 3, True),
    (STEP, [9.0, 9.0], False), (STEP, [0.1] * 3, True), (GPU_LAYER, [1.0], False), (GPU_LAYER, [1.0, 1.0], True)])
def test_the_number_of_measurements_depends_on_their_length(policy, seconds, enough):
    assert policy.suffices(seconds) is enough


@pytest.mark.parametrize("policy, times, name", [
    (LAYER, {"first": 1.0, "second": 0.94}, "first"), (LAYER, {"first": 1.0, "second": 0.92}, "second"),
    (GPU_LAYER, {"first": 1.0, "second": 0.98}, "first"), (GPU_LAYER, {"first": 1.0, "second": 0.96, "third": 0.95}, "third"),
    (GRAPH, {"first": 1.0, "second": 0.99}, "second"), (GRAPH, {"first": 1.0, "second": 1.0}, "first"),
    (CALL, {"first": 1.0, "second": 0.99}, "second"), (CALL_BESIDE_OTHERS, {"first": 1.0, "second": 0.97}, "first")])
def test_the_first_stays_unless_another_one_leads_by_enough(policy, times, name):
    assert policy.fastest(times) == name


@pytest.mark.parametrize("other, sure", [(1.19, False), (1.22, True)])
def test_a_large_lead_is_sure(other, sure):
    assert LAYER.is_sure("a", {"a": 1.0, "b": other, "c": 2.0}) is sure and not GRAPH.is_sure("a", {"a": 1.0, "b": 100.0})


def test_a_tenth_of_waiting_is_quiet():
    assert is_quiet(2.0, 0.19) and not is_quiet(2.0, 0.21)


@pytest.fixture
def now(monkeypatch):
    now = [0.0]
    for clock in ("perf_counter", "thread_time"):
        monkeypatch.setattr(measurement.time, clock, lambda: now[0])
    monkeypatch.setattr(measurement.processor, "waited", lambda: 7.0 - 0.25 * now[0])  # threads that end take along what they have waited
    return now


def test_candidates_run_in_turns_and_the_least_time_counts(now):
    order, seconds = [], {"one": iter([3.0, 1.0, 2.0]), "other": iter([1.5, 2.5, 2.0]), "slow": iter([4.6])}

    def clock(name):
        order.append(name)
        now[0] += 1
        return [next(seconds[name])]
    outcome = benchmark({name: name for name in seconds}, clock, Policy(least=3, most=3, hopeless=3.0))
    assert order == ["one", "other", "slow", "one", "other", "one", "other"]
    assert outcome.times == {"one": 1.0, "other": 1.5, "slow": 4.6} and (outcome.seconds, outcome.waited) == (7.0, 0.0) and outcome.is_quiet


def test_a_clock_may_measure_several_runs_at_once(now):
    outcome = benchmark({"a": None, "b": None}, lambda run: [0.3, 0.2, 0.4], Policy(least=5, most=9, enough=0.0))
    assert outcome.times == {"a": 0.2, "b": 0.2}


@pytest.mark.parametrize("policy", [LAYER, GPU_LAYER, STEP])
def test_a_clock_that_is_too_coarse_ends_the_benchmark(now, policy):
    assert benchmark({"a": None, "b": None}, lambda run: [0.0], policy).times == {"a": 0.0, "b": 0.0}


def test_the_clocks(now):
    def run(*inputs):
        now[0] += 0.5
        return inputs
    assert measurement.timed(run, (1, 2)) == (0.5, (1, 2)) and measurement.thread_seconds(run) == 0.5
