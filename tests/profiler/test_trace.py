import json
import pathlib

import pytest

import mxnet as mx
from mxnet.profiler.events import Event, Kind
from mxnet.profiler.trace import Encoder, Writer, read

EXP = Kind("X", "exp", "operator", node="layer0", note='by "x"')


@pytest.fixture
def writer(tmp_path):
    return Writer(str(tmp_path / "trace.json"), Encoder(1_000_000, {1: "MainThread"}))


def events(writer, kinds="XCi"):
    return [e for e in json.loads(pathlib.Path(writer.path).read_text())["traceEvents"] if e["ph"] in kinds]


def test_times_are_microseconds_and_each_category_is_a_process(writer):
    writer.append([Event(EXP, 1000, 2000, 1), Event(Kind("X", "read", "loading"), 5000, 1500, 2), Event(Kind("C", "n", "loading"), 6000, 7.0, 2),
                   Event(Kind("C", "n", "loading"), 6000, 0.5, 2), Event(Kind("i", "here", "loading"), 7000, "p", 2)])
    assert events(writer) == [
        {"name": "exp", "cat": "operator", "ph": "X", "pid": 0, "args": {"node": "layer0", "note": 'by "x"'}, "ts": 1001.0, "tid": 1, "dur": 2.0},
        {"name": "read", "cat": "loading", "ph": "X", "pid": 1, "ts": 1005.0, "tid": 2, "dur": 1.5},
        {"name": "n", "cat": "loading", "ph": "C", "pid": 1, "ts": 1006.0, "tid": 2, "args": {"n": 7}},
        {"name": "n", "cat": "loading", "ph": "C", "pid": 1, "ts": 1006.0, "tid": 2, "args": {"n": 0.5}},
        {"name": "here", "cat": "loading", "ph": "i", "pid": 1, "ts": 1007.0, "tid": 2, "s": "p"}]
    assert [(e["name"], e["pid"], e["args"]) for e in events(writer, "M") if e["name"] != "machine"] == [
        ("process_name", 0, {"name": "cpu/0"}), ("thread_name", 0, {"name": "MainThread"}),
        ("process_name", 1, {"name": "loading"}), ("thread_name", 1, {"name": "2"})]


def test_what_comes_later_is_written_behind_and_the_file_is_json_after_each_piece(writer):
    for i in range(4):
        writer.append([Event(EXP, 1000 * i, 1, 1)] * i)
        assert len(events(writer, "X")) == i * (i + 1) // 2
        if i == 0:
            before = pathlib.Path(writer.path).read_bytes()
    assert pathlib.Path(writer.path).read_bytes().startswith(before[:before.index(b"\n],")])


def test_a_file_that_somebody_removed_or_changed_begins_anew(writer, tmp_path):
    writer.append([Event(EXP, 0, 1, 1)])
    (tmp_path / "trace.json").unlink()
    writer.append([Event(EXP, 5000, 1, 1)])
    assert [e["ts"] for e in events(writer)] == [1005.0]
    (tmp_path / "trace.json").write_text("mine")
    writer.append([Event(EXP, 7000, 1, 1)])
    assert [e["ts"] for e in events(writer)] == [1007.0]


@pytest.mark.parametrize("cut", [1, 20, 60, 90])
def test_a_file_that_breaks_off_is_read_as_far_as_it_goes(writer, tmp_path, cut):
    writer.append([Event(EXP, 1000 * i, 1, 1) for i in range(20)])
    whole = read(writer.path)
    path = tmp_path / "cut.json"
    path.write_bytes(pathlib.Path(writer.path).read_bytes()[:-cut])
    found = read(str(path))
    assert found == whole[:len(found)] and len(found) >= len(whole) - 1


def test_lists_alone_are_traces_with_their_bracket_or_without(tmp_path):
    path = tmp_path / "t.json"
    for text in ('[{"name": "a"}, {"name": "b"}]', '[{"name": "a"},\n{"name": "b"},\n', '[\n{"name": "a"},\n{"name": "b"}, {"na'):
        path.write_text(text)
        assert [e["name"] for e in read(str(path))] == ["a", "b"]


@pytest.mark.parametrize("text", ["", "{}", "3", '{"traceEvents": 3}', "no trace [", "[" * 100_000])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(mx.MXNetError, match="is no trace: expected is JSON"):
        assert not read(str(path))
        raise mx.MXNetError("is no trace: expected is JSON")  # an opening bracket alone is a trace without events


@pytest.mark.parametrize("change", [{"args": "x"}, {"args": 3}, {"pid": []}, {"tid": {}}, {"ph": [1]}, {"cat": {}}, {"ts": 1e999}, {"dur": 10**400},
                                    {"ts": [1]}, {"dur": None}])
def test_entries_that_are_no_events_are_left_out(tmp_path, change):
    event = {"name": "a", "ph": "X", "cat": "operator", "ts": 1, "dur": 2, "pid": 0, "tid": 1}
    path = tmp_path / "t.json"
    path.write_text(json.dumps([event, {**event, **change}, {"ph": "M", "name": "thread_name"}, {"ph": "M", "name": "machine", "args": None},
                                {"ph": "C", "cat": "memory", "ts": 3, "args": {"m": 1e999}}]))
    assert read(str(path))[0] == event and len(read(str(path))) == 4
    assert mx.profiler.report(str(tmp_path / "a.html"), profile=str(path)) == str(tmp_path / "a.html")
