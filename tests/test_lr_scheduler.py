import logging

import pytest

import mxnet as mx
from mxnet import lr_scheduler

# (class, arguments, updates, rates), from MXNet 1.9.1
RATES = [
    (lr_scheduler.FactorScheduler, {"step": 3, "factor": 0.5, "stop_factor_lr": 0.1, "base_lr": 1.0, "warmup_steps": 2, "warmup_begin_lr": 0.5},
     [0, 1, 2, 3, 4, 6, 7, 10, 13, 20], [0.5, 0.75, 1.0, 1.0, 0.5, 0.5, 0.25, 0.125, 0.1, 0.1]),
    (lr_scheduler.FactorScheduler, {"step": 3, "factor": 0.5, "base_lr": 1.0}, [20], [0.015625]),
    (lr_scheduler.MultiFactorScheduler,
     {"step": [2, 5], "factor": 0.1, "base_lr": 1.0, "warmup_steps": 2, "warmup_begin_lr": 0.2, "warmup_mode": "constant"},
     [0, 1, 2, 3, 5, 6, 9], [0.2, 0.2, 1.0, 0.1, 0.1, 0.01, 0.01]),
    (lr_scheduler.PolyScheduler, {"max_update": 10, "base_lr": 1.0, "pwr": 3, "final_lr": 0.1, "warmup_steps": 2, "warmup_begin_lr": 0.2},
     [0, 1, 2, 4, 7, 10, 11], [0.2, 0.6, 1.0, 0.4796875, 0.14746094, 0.1, 0.1]),
    (lr_scheduler.CosineScheduler, {"max_update": 10, "base_lr": 1.0, "final_lr": 0.1, "warmup_steps": 2},
     [0, 1, 2, 4, 7, 10, 11], [0.0, 0.5, 1.0, 0.86819805, 0.37779246, 0.1, 0.1]),
]


@pytest.mark.parametrize("scheduler, kwargs, updates, expected", RATES)
def test_rates(scheduler, kwargs, updates, expected):
    schedule = scheduler(**kwargs)
    assert [schedule(n) for n in updates] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("make, message", [
    (lambda: lr_scheduler.FactorScheduler(0), "step must be at least 1, received 0"),
    (lambda: lr_scheduler.FactorScheduler(1, 2.0), "Factor must be no more than 1 to make lr reduce; received 2.0"),
    (lambda: lr_scheduler.MultiFactorScheduler([3, 2]), r"steps must increase, received \[3, 2\]"),
    (lambda: lr_scheduler.MultiFactorScheduler([0, 2]), "first step must be at least 1"),
    (lambda: lr_scheduler.MultiFactorScheduler((1, 2)), r"must be a list of at least one number of updates, received \(1, 2\)"),
    (lambda: lr_scheduler.PolyScheduler(0), "max_update must be an integer above 0, received 0"),
    (lambda: lr_scheduler.CosineScheduler(1.5), "max_update must be an integer above 0, received 1.5"),
    (lambda: lr_scheduler.LRScheduler(0.1, warmup_begin_lr=0.2), "warmup_begin_lr must be at most base_lr=0.1, received 0.2"),
    (lambda: lr_scheduler.LRScheduler(0.1, warmup_steps=-1), "warmup_steps must be an integer of at least 0, received -1"),
    (lambda: lr_scheduler.LRScheduler(0.1, warmup_mode="x"), "warmup_mode must be 'linear' or 'constant', received 'x'"),
    (lambda: lr_scheduler.LRScheduler().get_warmup_lr(0), "update 0 is not within the 0 updates"),
])
def test_wrong_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_base_class_has_no_rate():
    with pytest.raises(NotImplementedError, match="LRScheduler must define __call__"):
        lr_scheduler.LRScheduler()(1)


def test_log_lines_are_those_that_parsers_of_mxnets_logs_match(caplog):
    caplog.set_level(logging.INFO)
    for schedule in (lr_scheduler.FactorScheduler(2, 0.1, stop_factor_lr=1e-3, base_lr=0.1), lr_scheduler.MultiFactorScheduler([2, 4], 0.1, 1.0)):
        for update in range(9):
            schedule(update)
    assert caplog.messages == [
        "Update[3]: Change learning rate to 1.00000e-02", "Update[5]: Change learning rate to 1.00000e-03",
        "Update[7]: now learning rate arrived at 1.00000e-03, will not change in the future",
        "Update[3]: Change learning rate to 1.00000e-01", "Update[5]: Change learning rate to 1.00000e-02"]


def test_a_rate_beside_a_schedule_is_said_to_overwrite_it():
    schedule = lr_scheduler.FactorScheduler(10, base_lr=0.3)
    with pytest.warns(UserWarning, match="^the schedule's learning rate, 0.3, has been overwritten by the optimizer's, 0.5$"):
        mx.optimizer.SGD(lr_scheduler=schedule, learning_rate=0.5)
    assert schedule.base_lr == 0.5
