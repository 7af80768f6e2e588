"""Calls that wait for one another: in turn, and in threads that run freely."""
import threading

import pytest
import torch

from mxnet import MXNetError
from mxnet.ops import random_state, rendezvous


def in_threads(*calls):
    """What calls return, or raise, each in a thread of its own."""
    found = [None] * len(calls)

    def run(i):
        try:
            found[i] = calls[i]()
        except MXNetError as error:
            found[i] = error
    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def bring(key, count, *values):
    return [t.tolist() for t in rendezvous.place()(key, count, [torch.tensor(v) for v in values])]


def test_the_main_thread_has_no_place():
    assert rendezvous.place() is None


def test_threads_get_the_averages_of_what_all_brought():
    for _ in range(20):  # one meeting after another under the same key
        found = in_threads(lambda: bring("k", 3, [1.0, 2], [0.0]), lambda: bring("k", 3, [3.0, 2], [6.0]), lambda: bring("k", 3, [5.0, 2], [0.0]))
        assert found == [[[3.0, 2.0], [2.0]]] * 3
    assert not rendezvous._rooms


def test_a_thread_gives_up_waiting(monkeypatch):
    monkeypatch.setattr(rendezvous, "_PATIENCE", 0.01)
    (error,) = in_threads(lambda: bring("k", 2, [1.0]))
    assert "'k' joins 2 devices, of which 1 came: run each device's forward and backward in a thread of its own" in str(error)
    assert not rendezvous._rooms


def test_calls_in_turn_meet_and_never_run_at_once():
    said = []

    def call(name, value):
        said.append(name)
        said.append((name, bring("a", 2, value)))
        said.append((name, bring("b", 2, [0.0])))
    rendezvous.in_order_of_devices([lambda: call("first", [1.0]), lambda: call("second", [2.0])])
    assert said == ["first", "second", ("first", [[1.5]]), ("second", [[1.5]]), ("first", [[0.0]]), ("second", [[0.0]])]


def test_calls_in_turn_draw_from_the_callers_generators():
    random_state.seed(7)
    expected = random_state.bank().words(4).tolist()
    random_state.seed(7)
    found = []
    rendezvous.in_order_of_devices([lambda: found.extend(random_state.bank().words(2).tolist())] * 2)
    assert found == expected


def test_calls_in_turn_that_wait_for_too_many_are_told():
    with pytest.raises(MXNetError, match="'k' joins 3 devices, of which 2 came"):
        rendezvous.in_order_of_devices([lambda: bring("k", 3, [1.0])] * 2)
    with pytest.raises(MXNetError, match="'k' joins 2 devices, of which 1 came"):
        rendezvous.in_order_of_devices([lambda: bring("k", 2, [1.0]), lambda: None])


def test_an_error_of_one_ends_the_others():
    ended = []

    def waits():
        try:
            bring("k", 2, [1.0])
        finally:
            ended.append(True)

    def fails():
        raise ValueError("no")
    before = threading.active_count()
    with pytest.raises(ValueError, match="no"):
        rendezvous.in_order_of_devices([waits, fails, lambda: ended.append("never")])
    for thread in threading.enumerate():
        if getattr(thread, "_target", None) is not None and thread.daemon and thread.name.endswith("(_run)"):
            thread.join(60)
    assert ended == [True] and threading.active_count() <= before
