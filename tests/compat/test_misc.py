import logging

import pytest

import mxnet as mx


def test_rates(caplog):
    schedule = mx.misc.FactorScheduler(10, 0.5)
    schedule.base_lr = 0.4
    with caplog.at_level(logging.INFO):
        assert [schedule(i) for i in (0, 9, 10, 25)] == [0.4, 0.4, 0.2, 0.1]
    assert caplog.messages == ["Iteration [10]: the learning rate is 0.20000 now", "Iteration [25]: the learning rate is 0.10000 now"]


def test_what_is_no_schedule():
    with pytest.raises(ValueError, match="a step of at least 1 iteration expected, received 0"):
        mx.misc.FactorScheduler(0)
    with pytest.raises(ValueError, match="a factor below 1 expected, received 2"):
        mx.misc.FactorScheduler(1, 2.0)
    with pytest.raises(NotImplementedError, match="LearningRateScheduler must define"):
        mx.misc.LearningRateScheduler()(1)
