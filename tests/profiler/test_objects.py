import threading
import time

import pytest

import mxnet as mx
from mxnet import profiler


class Found(list):
    recorder = None


@pytest.fixture
def recorded(monkeypatch):
    """What is recorded: (phase, name, category, value, whether it is in the table)."""
    from mxnet.profiler import objects
    found = Found()

    class Recorder:
        active = True
        listening = ()

        def add(self, phase, name, category, start, value, aggregate=True):
            found.append((phase, name, category, value, aggregate))

    found.recorder = Recorder()
    monkeypatch.setattr(objects, "recorder", found.recorder)
    return found


@pytest.mark.parametrize("make, category", [
    (lambda: profiler.Domain("d").new_task("x"), "d"), (lambda: profiler.Domain("d").new_frame("x"), "d"),
    (lambda: profiler.Task(profiler.Domain("d"), "x"), "d"), (lambda: profiler.Event("x"), "event")])
def test_intervals(recorded, make, category):
    span = make()
    assert str(span) == "x"
    span.start()
    time.sleep(0.002)
    span.stop()
    (phase, name, found, duration, aggregate), = recorded
    assert (phase, name, found, aggregate) == ("X", "x", category, True) and 2e6 <= duration < 2e9
    span.stop()  # not started again
    assert len(recorded) == 1


def test_nothing_is_recorded_while_nobody_profiles(recorded):
    recorded.recorder.active = False
    task, counter = profiler.Task("d", "x"), profiler.Counter("d", "n", 3)
    task.start()
    task.stop()
    counter += 2
    profiler.Marker("d", "m").mark()
    assert recorded == []
    recorded.recorder.active = True
    counter.increment()
    assert recorded == [("C", "n", "d", 6, True)]  # it has counted on


def test_counters(recorded):
    counter = profiler.Domain("d").new_counter("n", 5)
    counter.increment(2)
    counter.decrement()
    counter += 10
    counter -= 3
    counter.set_value(1)
    assert [e[3] for e in recorded] == [5, 7, 6, 16, 13, 1] and {e[:3] for e in recorded} == {("C", "n", "d")}
    assert str(counter) == "n" and isinstance(counter, profiler.Counter)


def test_threads_may_share_a_counter(recorded):
    counter = profiler.Counter("d", "n")
    threads = [threading.Thread(target=lambda: [counter.increment() for _ in range(500)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(e[3] for e in recorded) == list(range(1, 2001))


@pytest.mark.parametrize("scope, letter", [("global", "g"), ("process", "p"), ("thread", "t"), ("task", "t"), ("marker", "t")])
def test_moments(recorded, scope, letter):
    profiler.Domain("d").new_marker("m").mark(scope)
    assert recorded == [("i", "m", "d,instant_marker", letter, False)]


def test_unknown_scopes(recorded):
    with pytest.raises(mx.MXNetError, match="scope must be one of global, process, thread, task, marker, received 'world'"):
        profiler.Marker("d", "m").mark("world")
