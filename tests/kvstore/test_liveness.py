import time
from unittest import mock

import pytest
from torch import distributed as dist

from mxnet.kvstore.liveness import Monitor


@pytest.fixture
def monitors(monkeypatch):
    monkeypatch.setenv("PS_HEARTBEAT_INTERVAL", "0.02")
    monkeypatch.setenv("PS_HEARTBEAT_TIMEOUT", "30")
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    nodes = ["worker 0", "worker 1", "server 0"]
    made = [Monitor(dist.PrefixStore("job", store), node, nodes) for node in nodes]
    yield made
    for monitor in made:
        if monitor._thread.is_alive():
            monitor.stop()


def until(condition):
    while not condition():
        time.sleep(0.01)


def fall_silent(monitor):
    monitor._stopping = True
    monitor._wake.set()


def test_nobody_is_silent_while_all_live(monitors):
    for monitor in monitors:
        monitor.start()
    until(lambda: all(set(monitor._table) == {"worker 0", "worker 1", "server 0"} for monitor in monitors))
    assert [monitor.silent(30) for monitor in monitors] == [{}, {}, {}]
    assert [monitor.trouble() for monitor in monitors] == [None, None, None]
    assert monitors[0].gone() == []


def test_silence_is_heard(monitors):
    monitors[0].start(), monitors[1].start()  # the server never says a word
    until(lambda: "server 0" in monitors[1].silent(0.3))
    assert monitors[1].silent(0.3)["server 0"].startswith("silent for ")
    monitors[1].limit = 0.3
    until(lambda: "server 0: silent for " in (monitors[1].trouble("server") or ""))


def test_the_environment_says_how_often_signs_of_life_come_and_for_how_long_one_waits(monitors, monkeypatch):
    monkeypatch.setenv("PS_HEARTBEAT_TIMEOUT", "0.3")
    impatient = Monitor(monitors[0]._store, "server 0", monitors[0].others)
    monkeypatch.setenv("PS_HEARTBEAT_INTERVAL", "1000")
    silent = Monitor(monitors[0]._store, "worker 1", monitors[0].others)
    for monitor in (monitors[0], impatient, silent):
        monitor.start()
    until(lambda: "worker 1: silent for " in (impatient.trouble() or ""))
    assert monitors[0].trouble() is None  # it would wait for 30 seconds
    silent.stop(), impatient.stop()


def test_whoever_ends_says_why(monitors):
    for monitor in monitors:
        monitor.start()
    monitors[1].stop()
    monitors[2].stop("failed with ValueError")
    until(lambda: monitors[0].gone() and monitors[0].silent(30))
    assert monitors[0].gone() == ["worker 1"]
    assert monitors[0].silent(30) == {"server 0": "failed with ValueError"}
    assert monitors[0].trouble() == "server 0: failed with ValueError"
    assert monitors[0].ended() == {"worker 1": "left", "server 0": "failed with ValueError"}
    monitors[0]._store = mock.Mock(check=mock.Mock(side_effect=RuntimeError), multi_get=mock.Mock(side_effect=RuntimeError))
    assert monitors[0].ended() == {}


def test_the_watcher_is_watched_too(monitors):
    monitors[0].start(), monitors[1].start()
    until(lambda: monitors[1]._table)
    fall_silent(monitors[0])
    until(lambda: "worker 0" in monitors[1].silent(1.0))
    monitors[1].limit = 1.0
    until(lambda: "worker 0: silent for " in (monitors[1].trouble() or ""))


def test_a_process_that_is_cut_off_knows(monitors):
    monitors[1].start()
    until(lambda: monitors[1]._counts is not None)
    fall_silent(monitors[1])
    monitors[1]._thread.join()
    monitors[1]._reached -= 31
    assert "this process (worker 1) has not reached the meeting point of the job for 31 s" in monitors[1].trouble()
