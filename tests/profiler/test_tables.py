import json

import pytest

import mxnet as mx
from mxnet.profiler.events import MEMORY, Events, Kind
from mxnet.profiler.tables import format_json, format_table, statistics

MS = 1_000_000


@pytest.fixture
def events():
    made = Events()
    made.sums = True
    return made


def test_times_are_summed_up_by_name(events):
    for duration in (2, 6, 1):
        events.add(Kind("X", "exp", "operator"), 0, duration * MS)
    events.add(Kind("X", "log", "operator"), 0, 4 * MS)
    found = statistics(events, "total", False)["Time"]["operator"]
    assert list(found) == ["exp", "log"] and found["exp"] == {"Count": 3, "Total": 9.0, "Min": 1.0, "Max": 6.0, "Avg": 3.0}
    assert list(statistics(events, "count", True)["Time"]["operator"]) == ["log", "exp"]
    assert list(statistics(events, "min", False)["Time"]["operator"]) == ["log", "exp"]
    with pytest.raises(mx.MXNetError, match="sort_by must be one of total, avg, min, max, count, received 'name'"):
        statistics(events, "name", False)


def test_memory_has_no_total_and_the_mean_of_its_extremes(events):
    for used in (100.0, 300.0, 200.0):
        events.add(Kind("C", "Memory: cpu/0", MEMORY), 0, used)
    assert statistics(events)["Memory"][MEMORY]["Memory: cpu/0"] == {"Count": 3, "Min": 100.0, "Max": 300.0, "Avg": 200.0}


def test_counters_show_their_numbers(events):
    for value in (5, 7, 2):
        events.add(Kind("C", "queue", "mine"), 0, value)
    assert statistics(events)["Time"]["mine"]["queue"] == {"Count": 3, "Total": 2, "Min": 2, "Max": 7, "Avg": 2 / 3}


def test_operators_called_one_by_one_count_as_calls_of_the_api_too(events):
    for node, call in (("", "MXImperativeInvokeEx"), ("", "MXImperativeInvokeEx"), ("a", "")):
        events.add(Kind("X", "exp", "operator", node=node, call=call), 0, 2 * MS)
    events.add(Kind("X", "MXNDArrayWaitAll", "MXNET_C_API"), 0, MS)
    found = statistics(events)["Time"]
    assert found["operator"]["exp"]["Count"] == 3 and len(events) == 4
    assert {name: (row["Count"], row["Total"]) for name, row in found["MXNET_C_API"].items()} == {
        "MXImperativeInvokeEx": (2, 4.0), "MXNDArrayWaitAll": (1, 1.0), "MXNet C API Calls": (3, 3)}


def test_tables(events):
    events.add(Kind("X", "exp", "operator"), 0, 2 * MS)
    events.add(Kind("C", "Memory: cpu/0", MEMORY), 0, 512.0)
    tables = statistics(events)
    lines = format_table(tables).splitlines()
    assert [line.split() for line in lines if line.startswith(("exp", "Memory:"))] == [
        ["Memory:", "cpu/0", "1", "512.0000", "512.0000", "512.0000"], ["exp", "1", "2.0000", "2.0000", "2.0000", "2.0000"]]
    assert json.loads(format_json(tables)) == {**tables, "Unit": {"Time": "ms", "Memory": "kB"}}
