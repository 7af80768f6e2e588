import pytest

from mxnet.profiler.analysis import Analysis


def event(name, start, duration, category="operator", tid=1, pid=0, **args):
    return {"ph": "X", "name": name, "cat": category, "ts": start, "dur": duration, "pid": pid, "tid": tid, "args": args}


def test_time_of_its_own_is_without_what_lies_inside():
    found = Analysis([event("outer", 100, 100), event("inner", 120, 30), event("inner", 160, 10), event("next", 300, 50),
                      event("other", 110, 500, tid=2)])
    assert [(i.name, i.start, i.depth, i.own) for i in found.intervals] == [
        ("outer", 0, 0, 60), ("other", 10, 0, 500), ("inner", 20, 1, 30), ("inner", 60, 1, 10), ("next", 200, 0, 50)]
    assert [(r.name, r.calls, r.total, r.own) for r in found.operators()] == [
        ("other", 1, 0.5, 0.5), ("outer", 1, 0.1, 0.06), ("next", 1, 0.05, 0.05), ("inner", 2, 0.04, 0.04)]
    assert found.wall == 0.25


def test_intervals_that_cross_count_once():
    found = Analysis([event("outer", 0, 20), event("first", 0, 10), event("second", 5, 10), event("inner", 12, 2)])
    assert [(i.name, i.own) for i in found.intervals] == [("outer", 5), ("first", 5), ("second", 8), ("inner", 2)]
    assert sum(i.own for i in found.intervals) == 20


def test_neighbours_stay_neighbours_though_numbers_are_coarse():
    """Microseconds since 1970 lie a quarter apart: what follows seems to begin before the end."""
    start = 1.79e15
    found = Analysis([event("outer", start, 100), *(event(str(i), start + 10.25 * i, 10.5) for i in range(9)), event("short", start + 99.75, 0.25)])
    assert [(i.depth, i.own) for i in found.intervals[1:]] == [(1, 10.5)] * 9 + [(1, 0.25)]
    assert found.intervals[0].own == pytest.approx(100 - 9 * 10.5 - 0.25, abs=0.3)


class Counted(list):
    walks = 0

    def __iter__(self):
        Counted.walks += 1
        return super().__iter__()


def test_a_page_walks_over_its_events_a_few_times_however_many_they_are():
    found = Analysis([event(f"op{i % 5}", 10 * i, 8) for i in range(500)])
    found.intervals, Counted.walks = Counted(found.intervals), 0
    assert len(found.data()["intervals"]) == 500
    assert Counted.walks < 30


def test_layers_are_nodes_of_graphs_or_the_blocks_around_operators():
    found = Analysis([event("net", 0, 100, "layer"), event("dense0", 10, 40, "layer"), event("FullyConnected", 20, 25), event("exp", 60, 5),
                      event("Convolution", 200, 50, node="conv0")])
    assert [(r.name, r.own) for r in found.layers()] == [("conv0", 0.05), ("dense0", 0.025), ("net", 0.005)]


def test_pairs_of_begin_and_end_are_intervals():
    rows = [{"ph": p, "name": "exp", "cat": "operator", "ts": t, "pid": 0, "tid": 1} for p, t in (("B", 5), ("E", 9), ("E", 11))]
    assert [(i.name, i.duration) for i in Analysis([*rows, {"ph": "X", "name": "bad", "ts": "x"}]).intervals] == [("exp", 4)]


def test_shares_add_up_to_the_time_of_the_main_thread():
    found = Analysis([event("exp", 0, 300), event("CopyCPU2CPU", 300, 100), event("waiting for data", 400, 200, "io"), event("WaitForVar", 600, 50),
                      event("making a batch", 700, 100, "io"), event("log", 900, 100)])
    assert found.shares() == pytest.approx({"operators": 0.4, "communication": 0.1, "data": 0.1, "waiting for data": 0.2, "waiting for results": 0.05,
                                            "Python and the rest": 0.15})
    assert sum(found.shares().values()) == pytest.approx(found.wall)


def told(**facts):
    """A trace's record of the machine."""
    return {"ph": "M", "name": "machine", "pid": 0, "args": facts}


MACHINE = told(threads=8, cores=2.0, bfloat16=True)


@pytest.mark.parametrize("events, number, words", [
    ([event("exp", 0, 300), event("waiting for data", 300, 700, "io")], "70% of the time", "waits for data"),
    ([event("exp", 0, 300), event("making a batch", 300, 700, "io")], "70% of the time", "num_workers"),
    ([event("exp", 100 * i, 20) for i in range(50)], "50 calls, 80% of the time between them", "hybridize"),
    ([event("exp", 0, 500), event("CopyCPU2GPU", 500, 500)], "50% of the time", "kvstore"),
    ([event("exp", 0, 600), event("ElementwiseSum", 600, 400)], "1 sums, 40% of the time for them and for copies", "one context"),
    ([event("exp", 10 * i, 9.5) for i in range(300)], "10 µs on average, 300 of them", "larger batches"),
    ([event("exp", 0, 500000), told(waited_ms=200.0)],
     "200 ms of waiting in 500 ms", "OMP_WAIT_POLICY=passive"),
    ([told(policy="OMP_NUM_THREADS says so", waited_ms=200.0), event("exp", 0, 500000)], "200 ms of waiting in 500 ms", "Set no number of threads"),
    ([told(threads=8, cores=2.0, waited_ms=200.0), event("exp", 0, 500000)], "8 threads, 2 cores, 200 ms of waiting in 500 ms", "OMP_NUM_THREADS=2"),
    ([told(threads=1, cores=4.0, idle_cores=2.7), event("exp", 0, 500)], "1 threads, 2.7 of 4 cores idle", "OMP_NUM_THREADS=4"),
    ([MACHINE, event("openvino", 0, 1000, "graph"), event("Convolution+BatchNorm", 0, 900, node="c")], "90% of the time", "precision='bfloat16'"),
    ([MACHINE, event("Convolution", 0, 500), event("_backward_Convolution", 500, 500)], "100% of the time", "contrib.amp")])
def test_advice_comes_with_its_number(events, number, words):
    found = [a for a in Analysis(events).advice() if words in a.text]
    assert [a.number for a in found] == [number]


@pytest.mark.parametrize("facts", [{"threads": 8, "cores": 2.0}, {"threads": 1, "cores": 2.0}, {"threads": 8, "cores": 2.0, "waited_ms": 40.0},
                                   {"threads": 1, "cores": 2.0, "idle_cores": 0.6}, {"threads": 2, "cores": 2.0, "idle_cores": 1.9}])
def test_no_number_of_threads_is_advised_that_nothing_measured_speaks_for(facts):
    assert Analysis([told(**facts), event("exp", 0, 500000)]).advice() == []


def test_updates_and_copies_between_the_calls_of_a_graph_are_not_to_be_hybridized():
    events = [event(name, 100 * i, 90, **({"node": "fc"} if name == "dot" else {}))
              for i, name in enumerate(["dot", "adam_update", "CopyCPU2CPU"] * 30)]
    assert not [a for a in Analysis(events).advice() if "hybridize" in a.text]
    assert [a for a in Analysis([e for e in events if e["args"]] + [event("exp", 10_000 + 100 * i, 90) for i in range(60)]).advice()
            if "hybridize" in a.text]


def test_there_is_no_advice_where_nothing_stands_out():
    assert Analysis([event("exp", 0, 900), event("log", 900, 100)]).advice() == [] == Analysis([]).advice()


def test_at_most_five():
    many = [event("Convolution", 10 * i, 3) for i in range(300)]
    found = Analysis([MACHINE, *many, event("making a batch", 3000, 700, "io"), event("waiting for data", 4000, 900, "io"),
                      event("ElementwiseSum", 5000, 1500), event("_backward_exp", 6500, 1)])
    assert len(found.advice()) == 5


def test_workers_have_threads_of_their_own():
    found = Analysis([event("exp", 0, 10), event("making a batch", 0, 10, "io", pid=3),
                      {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "DataLoader worker 77"}},
                      {"ph": "M", "name": "thread_name", "pid": 3, "tid": 1, "args": {"name": "MainThread"}}])
    assert sorted(found.threads.values()) == ["", "DataLoader worker 77, MainThread"]
