import json
import pathlib

import pytest
import torch

from mxnet.ndarray import dispatch
from mxnet.ndarray.dispatch import Call
from mxnet.profiler.recorder import Recorder, copy_name
from mxnet.profiler.tables import statistics

MS = 1_000_000


@pytest.fixture
def recorder(tmp_path):
    made = Recorder()
    made.settings.filename = str(tmp_path / "trace.json")
    made.settings.aggregate_stats = True
    made.settings.memory = False
    made.update()
    yield made
    made.running = False
    made.update()


def run(recorder):
    recorder.running = True
    recorder.update()


def rows(recorder):
    return [(e.kind.name, e.kind.category, e.start, e.value) for e in recorder.events.decoded(recorder.events.copy())]


def test_the_operators_are_observed_only_while_it_runs(recorder):
    recorder.settings.symbolic = recorder.settings.api = False
    recorder.update()
    assert dispatch.observer is None
    run(recorder)
    assert dispatch.observer is not None and dispatch.graph_observer == recorder.unseen
    recorder.paused = True
    recorder.update()
    assert dispatch.observer is None and dispatch.call_observer is None and not recorder.active


def test_memory_alone_is_sampled_behind_operators(recorder):
    recorder.settings.symbolic = recorder.settings.api = recorder.settings.imperative = False
    recorder.settings.memory = recorder.running = True
    recorder.update()
    kept = [torch.empty(1 << 20)]
    dispatch.observer("exp", 0, MS, (), kept[0])
    dispatch.observer("exp", 0, MS, (), kept[0])  # nothing has changed
    kept.append(torch.empty(1 << 20))
    dispatch.graph_observer(Call("log"), 0, MS, (), kept[1])
    (name, category, _, first), (_, _, _, second) = rows(recorder)
    assert name.startswith("Memory: cpu/0") and category == "Device Storage"
    assert second - first >= 4190 or "resident" in name  # kB


def test_moments_are_in_the_trace_only(recorder):
    recorder.add("i", "here", "mine", 0, "p", aggregate=False)
    assert statistics(recorder.events) == {"Time": {}, "Memory": {}}
    recorder.write_trace()
    event = json.loads(pathlib.Path(recorder.settings.filename).read_text())["traceEvents"][-1]
    assert (event["ph"], event["name"], event["s"]) == ("i", "here", "p")


def test_what_was_written_takes_no_memory_and_what_comes_later_is_written_behind(recorder):
    for i in range(3):
        recorder.add("X", f"e{i}", "operator", i, MS)
        recorder.write_trace()
        assert len(recorder.events) == 0
    found = [e["name"] for e in json.loads(pathlib.Path(recorder.settings.filename).read_text())["traceEvents"] if e["ph"] == "X"]
    assert found == ["e0", "e1", "e2"]


def test_what_cannot_be_written_is_kept(recorder, tmp_path):
    recorder.settings.filename = str(tmp_path / "missing" / "trace.json")
    recorder.add("X", "exp", "operator", 0, MS)
    with pytest.raises(OSError):
        recorder.write_trace()
    assert [r[0] for r in rows(recorder)] == ["exp"]


def test_the_parts_of_a_graph_follow_one_another_inside_of_it(recorder):
    parts = [(Call("Convolution+BatchNorm", "a+b"), 1500), (Call("x"), 200)]
    run(recorder)
    dispatch.graph_observer(Call("openvino", note="n", graph=True), 1000, 5000, (), [], parts)
    assert rows(recorder) == [("openvino", "graph", 1000, 4000), ("Convolution+BatchNorm", "operator", 1000, 1500), ("x", "operator", 2500, 200)]
    found = statistics(recorder.events)["Time"]
    assert {c: {n: (row["Count"], round(row["Total"], 9)) for n, row in rows.items()} for c, rows in found.items()} == {
        "graph": {"openvino": (1, 0.004)}, "operator": {"Convolution+BatchNorm": (1, 0.0015), "x": (1, 0.0002)}}


def test_python_code_of_a_custom_operator_counts_without_the_operators_that_it_calls(recorder, monkeypatch):
    run(recorder)
    monkeypatch.setattr(dispatch.mode, "custom_operator", "Mine")
    dispatch.observer("exp", 100, 400, (), None)
    dispatch.observer("log", 500, 700, (), None)
    dispatch.observer("pure_python", 0, 1000, (), None)
    assert rows(recorder) == [("Mine::exp", "Custom Operator", 100, 300), ("Mine::log", "Custom Operator", 500, 200),
                              ("Mine::pure_python", "Custom Operator", 0, 1000)]
    found = statistics(recorder.events)["Time"]["Custom Operator"]
    assert sum(row["Total"] for row in found.values()) == pytest.approx(0.001) and found["Mine::pure_python"]["Total"] == pytest.approx(0.0005)


def test_copies_are_called_after_their_devices():
    assert copy_name(torch.ones(1), torch.ones(1)) == "CopyCPU2CPU"


def test_a_profile_tells_for_how_long_threads_waited_for_a_processor(monkeypatch):
    waits = iter([1.5, 1.75])
    monkeypatch.setattr("mxnet.processor.waited", lambda: next(waits))
    found = Recorder()
    for found.running in (True, False):
        found.update()
    assert found.waited_ms == 250


def test_a_profile_tells_how_many_cores_were_idle(monkeypatch):
    told = iter([(10.0, 0.0, 7.0), (12.0, 0.0, 10.0), (20.0, 0.0, 20.0), (21.0, 0.0, None)])
    monkeypatch.setattr(Recorder, "_waits", staticmethod(lambda: next(told)))
    found = Recorder()
    assert found.idle_cores == 0
    for found.running in (True, False, True, False):  # the second time the system does not say
        found.update()
    assert found.idle_cores == 1.5
