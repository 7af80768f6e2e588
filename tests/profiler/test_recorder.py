import json
import pathlib

import pytest
import torch

import mxnet as mx
from mxnet.ndarray import dispatch
from mxnet.profiler.recorder import MEMORY, Recorder, format_json, format_table

MS = 1_000_000


@pytest.fixture
def recorder(tmp_path):
    made = Recorder()
    made.settings.filename = str(tmp_path / "trace.json")
    made.settings.aggregate_stats = True
    yield made
    made.running = False
    made.update()


def test_the_operators_are_observed_only_while_it_runs(recorder):
    recorder.settings.imperative = True
    recorder.update()
    assert dispatch.observer is None
    recorder.running = True
    recorder.update()
    assert dispatch.observer == recorder.operator and dispatch.graph_observer is None and dispatch.call_observer is None
    recorder.paused = True
    recorder.update()
    assert dispatch.observer is None and not recorder.active


def test_times_are_summed_up_by_name(recorder):
    for duration in (2, 6, 1):
        recorder.add("X", "exp", "operator", 0, duration * MS)
    recorder.add("X", "log", "operator", 0, 4 * MS)
    rows = recorder.statistics("total", False)["Time"]["operator"]
    assert list(rows) == ["exp", "log"] and rows["exp"] == {"Count": 3, "Total": 9.0, "Min": 1.0, "Max": 6.0, "Avg": 3.0}
    assert list(recorder.statistics("count", True)["Time"]["operator"]) == ["log", "exp"]
    assert list(recorder.statistics("min", False)["Time"]["operator"]) == ["log", "exp"]
    with pytest.raises(mx.MXNetError, match="sort_by must be one of total, avg, min, max, count, received 'name'"):
        recorder.statistics("name", False)


def test_memory_has_no_total_and_the_mean_of_its_extremes(recorder):
    for used in (100.0, 300.0, 200.0):
        recorder.add("C", "Memory: cpu/0", MEMORY, 0, used)
    assert recorder.statistics("total", False)["Memory"][MEMORY]["Memory: cpu/0"] == {"Count": 3, "Min": 100.0, "Max": 300.0, "Avg": 200.0}


def test_counters_show_their_numbers(recorder):
    for value in (5, 7, 2):
        recorder.add("C", "queue", "mine", 0, value)
    assert recorder.statistics("total", False)["Time"]["mine"]["queue"] == {"Count": 3, "Total": 2, "Min": 2, "Max": 7, "Avg": 2 / 3}


def test_moments_are_in_the_trace_only(recorder):
    recorder.add("i", "here", "mine", 0, "p", aggregate=False)
    assert recorder.statistics("total", False) == {"Time": {}, "Memory": {}}
    recorder.write_trace()
    event = json.loads(pathlib.Path(recorder.settings.filename).read_text())["traceEvents"][-1]
    assert (event["ph"], event["name"], event["s"]) == ("i", "here", "p")


def test_the_trace_is_in_microseconds_and_names_a_process_for_each_category(recorder):
    recorder.add("X", "exp", "operator", 1000, 2000)
    recorder.add("X", "read", "loading", 5000, 1500)
    recorder.add("C", "queue", "loading", 6000, 7)
    recorder.write_trace()
    events = json.loads(pathlib.Path(recorder.settings.filename).read_text())["traceEvents"]
    assert [(e["args"]["name"], e["pid"]) for e in events if e["ph"] == "M"] == [("cpu/0", 0), ("loading", 1)]
    by_name = {e["name"]: e for e in events}
    assert (by_name["exp"]["pid"], by_name["exp"]["dur"], by_name["read"]["pid"], by_name["read"]["dur"]) == (0, 2.0, 1, 1.5)
    assert by_name["read"]["ts"] - by_name["exp"]["ts"] == pytest.approx(4, abs=0.5) and by_name["queue"]["args"] == {"queue": 7}


def test_sums_are_forgotten_and_the_trace_stays(recorder):
    recorder.add("X", "exp", "operator", 0, MS)
    recorder.reset_statistics()
    assert recorder.statistics("total", False) == {"Time": {}, "Memory": {}}
    recorder.write_trace()
    assert "exp" in pathlib.Path(recorder.settings.filename).read_text()


def test_without_statistics_only_the_trace_is_kept(recorder):
    recorder.settings.aggregate_stats = False
    recorder.add("X", "exp", "operator", 0, MS)
    assert recorder.statistics("total", False)["Time"] == {} and len(recorder._events) == 1


def test_the_backward_of_an_operator_has_a_name_of_its_own(recorder):
    recorder.running = True
    x = torch.ones(2, requires_grad=True)
    recorder.operator("exp", 5, 5 + MS, (x,), x.exp())
    recorder.call("step", 7, 7 + 2 * MS)
    assert [(e.name, e.category, e.start, e.value) for e in recorder._events] == [("exp", "operator", 5, MS), ("step", "API", 7, 2 * MS)]
    y = x.exp()
    recorder.operator("exp", 0, MS, (x,), y)
    y.sum().backward()
    assert recorder._events[-1].name == "_backward_exp" and recorder._events[-1].value > 0


def test_memory_is_sampled_if_asked_for(recorder):
    recorder.settings.memory = True
    recorder.operator("exp", 0, MS, (), torch.ones(1))
    phase, name, category, _, used, _ = recorder._events[-1]
    assert (phase, name, category) == ("C", "Memory: cpu/0", "Device Storage") and used > 10_000  # kB of a process with torch


def test_tables(recorder):
    recorder.add("X", "exp", "operator", 0, 2 * MS)
    recorder.add("C", "Memory: cpu/0", MEMORY, 0, 512.0)
    tables = recorder.statistics("total", False)
    lines = format_table(tables).splitlines()
    assert [line.split() for line in lines if line.startswith(("exp", "Memory:"))] == [
        ["Memory:", "cpu/0", "1", "512.0000", "512.0000", "512.0000"], ["exp", "1", "2.0000", "2.0000", "2.0000", "2.0000"]]
    assert json.loads(format_json(tables)) == {**tables, "Unit": {"Time": "ms", "Memory": "kB"}}
