import sys
import threading

from mxnet.profiler.events import BYTES, Events, Kind


def rows(events):
    return [(e.kind.name, e.start, e.value) for e in events.decoded(events.copy())]


def test_events_of_all_kinds_come_back_as_they_were():
    events = Events()
    events.add(Kind("X", "exp", "operator"), 5, 7)
    events.add(Kind("C", "queue", "mine"), 6, 2.5)
    events.add(Kind("i", "here", "mine"), 8, "p")
    assert rows(events) == [("exp", 5, 7), ("queue", 6, 2.5), ("here", 8, "p")]
    assert [e.thread for e in events.decoded(events.copy())] == [threading.get_ident()] * 3
    assert events.threads == {threading.get_ident(): "MainThread"}


def test_taken_events_are_gone_and_can_be_put_back():
    events = Events()
    for i in range(3):
        events.add(Kind("X", str(i), "operator"), i, 1)
    taken = events.take()
    events.add(Kind("X", "later", "operator"), 9, 1)
    assert rows(events) == [("later", 9, 1)]
    events.put_back(taken)
    assert rows(events) == [("0", 0, 1), ("1", 1, 1), ("2", 2, 1), ("later", 9, 1)]
    assert [e.kind.name for e in events.decoded(events.take(3))] == ["0", "1", "2"] and rows(events) == [("later", 9, 1)]


def test_sums_are_kept_if_they_are_asked_for():
    events = Events()
    kind = events.number(Kind("X", "exp", "operator", node="a"))
    other = events.number(Kind("X", "exp", "operator", node="b"))
    events.append(kind, 0, 5)
    assert events.totals() == {}
    events.sums = True
    for number, value in ((kind, 2), (other, 6), (kind, 1)):
        events.append(number, 0, value)
    events.add(Kind("X", "exp", "operator", counts=-1), 0, 100)  # in the trace only
    events.append(events.continued(kind), 0, 3)  # the rest of one that was counted
    taken = events.take(3)
    events.put_back(taken)  # counts once
    events.add(Kind("C", "queue", "mine"), 0, 4)
    events.add(Kind("C", "queue", "mine"), 0, 2)
    assert events.totals() == {("operator", "exp"): (3, 12, 1, 6, False), ("mine", "queue"): (2, 2, 2, 4, True)}
    events.forget_sums()
    assert events.totals() == {} and len(events) == 8
    events.count("operator", "exp", 4)
    assert events.totals() == {("operator", "exp"): (1, 4, 4, 4, False)}
    events.sums = False
    events.append(kind, 0, 5)
    events.count("operator", "exp", 4)
    events.sums = True
    assert events.totals() == {("operator", "exp"): (1, 4, 4, 4, False)} and len(events) == 9


def test_threads_may_add_at_once():
    events = Events()
    events.sums = True

    def work(n):
        number = events.number(Kind("X", f"t{n % 2}", "operator"))
        for i in range(2000):
            events.append(number, i, 1)

    threads = [threading.Thread(target=work, args=(n,), name=f"worker {n}") for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(events) == 8000 and {k[1]: v[0] for k, v in events.totals().items()} == {"t0": 4000, "t1": 4000}
    assert "worker 0" in set(events.threads.values())


def test_a_million_events_take_32_mb():
    events = Events()
    number = events.number(Kind("X", "exp", "operator"))
    for i in range(100_000):
        events.append(number, i, 1)
    assert len(events.rows) == 100_000 * BYTES and BYTES * 1_000_000 == 32_000_000
    assert sys.getsizeof(events.rows) < 1.13 * len(events.rows)  # with what it keeps free to grow
