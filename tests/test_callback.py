"""Callbacks: the exact text of their log lines."""
import logging

import pytest

import mxnet as mx
from mxnet.model import BatchEndParam


class Metric:
    def __init__(self):
        self.resets = 0

    def get_name_value(self):
        return [("accuracy", .5), ("loss", 1.25)]

    def reset_local(self):
        self.resets += 1


def param(nbatch, metric=None, epoch=3):
    return BatchEndParam(epoch=epoch, nbatch=nbatch, eval_metric=metric, locals=None)


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 100.0

    monkeypatch.setattr("mxnet.callback.time.time", lambda: Clock.now)
    return Clock


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO)
    return lambda: [r.getMessage() for r in caplog.records]


def test_speedometer(clock, lines):
    metric = Metric()
    speedometer = mx.callback.Speedometer(32, 2)
    for n in range(5):
        speedometer(param(n, metric))
        clock.now += .5
    assert lines() == ["Epoch[3] Batch [0-2]\tSpeed: 64.00 samples/sec\taccuracy=0.500000\tloss=1.250000",
                       "Epoch[3] Batch [2-4]\tSpeed: 64.00 samples/sec\taccuracy=0.500000\tloss=1.250000"]
    assert metric.resets == 2


def test_speedometer_without_reset_reports_from_the_start(clock, lines):
    metric = Metric()
    speedometer = mx.callback.Speedometer(32, 2, auto_reset=False)
    for n in range(5):
        speedometer(param(n, metric))
        clock.now += .5
    assert lines()[1] == "Epoch[3] Batch [0-4]\tSpeed: 64.00 samples/sec\taccuracy=0.500000\tloss=1.250000"
    assert metric.resets == 0


def test_speedometer_without_metric_and_without_time_passing(clock, lines):
    speedometer = mx.callback.Speedometer(32, 1)
    speedometer(param(0))
    speedometer(param(1))
    assert lines() == ["Iter[3] Batch [1]\tSpeed: inf samples/sec"]


def test_speedometer_starts_again_with_each_epoch(clock, lines):
    speedometer = mx.callback.Speedometer(32, 1)
    speedometer(param(0))
    clock.now += 1
    speedometer(param(1))
    clock.now += 50
    speedometer(param(0, epoch=4))
    clock.now += 1
    speedometer(param(1, epoch=4))
    assert lines() == ["Iter[3] Batch [1]\tSpeed: 32.00 samples/sec", "Iter[4] Batch [1]\tSpeed: 32.00 samples/sec"]


def test_progress_bar(lines):
    bar = mx.callback.ProgressBar(total=3, length=10)
    for n in (0, 1, 3):
        bar(param(n))
    assert lines() == ["[----------] 0%\r", "[===-------] 34%\r", "[==========] 100%\r"]


def test_log_train_metric(lines):
    metric = Metric()
    callback = mx.callback.log_train_metric(2, auto_reset=True)
    for n in range(3):
        callback(param(n, metric))
    callback(param(4))
    assert lines() == ["Iter[3] Batch[0] Train-accuracy=0.500000", "Iter[3] Batch[0] Train-loss=1.250000",
                       "Iter[3] Batch[2] Train-accuracy=0.500000", "Iter[3] Batch[2] Train-loss=1.250000"]
    assert metric.resets == 2


def test_log_validation(lines):
    mx.callback.LogValidationMetricsCallback()(param(9, Metric()))
    mx.callback.LogValidationMetricsCallback()(param(9))
    assert lines() == ["Epoch[3] Validation-accuracy=0.500000", "Epoch[3] Validation-loss=1.250000"]


def test_do_checkpoint_saves_every_period(tmp_path, lines):
    prefix = str(tmp_path / "net")
    callback = mx.callback.do_checkpoint(prefix, period=2)
    net = mx.sym.var("data") * 2
    for epoch in range(4):
        callback(epoch, net, {"w": mx.nd.ones((1,))}, {})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net-0002.params", "net-0004.params", "net-symbol.json"]
    assert lines() == [f'Saved checkpoint to "{prefix}-0002.params"', f'Saved checkpoint to "{prefix}-0004.params"']


def test_module_checkpoint_passes_on_what_it_is_asked():
    calls = []

    class Module:
        def save_checkpoint(self, *args):
            calls.append(args)

    callback = mx.callback.module_checkpoint(Module(), "p", period=3, save_optimizer_states=True)
    for epoch in range(6):
        callback(epoch)
    assert calls == [("p", 3, True), ("p", 6, True)]
