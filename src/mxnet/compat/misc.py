"""Learning rate schedules by iteration, the predecessors of `mx.lr_scheduler`, which new programs use."""
from __future__ import annotations

import logging


class LearningRateScheduler:
    """The base class of schedules: ``base_lr`` is the initial rate, and a call with an iteration's number returns the rate there."""

    def __init__(self) -> None:
        self.base_lr = 0.01

    def __call__(self, iteration: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(iteration)")


class FactorScheduler(LearningRateScheduler):
    """Multiplies the rate by `factor` every `step` iterations.

    Parameters
    ----------
    step : int
        At least 1.
    factor : float
        Below 1.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """

    def __init__(self, step: int, factor: float = 0.1) -> None:
        super().__init__()
        if step < 1:
            raise ValueError(f"a step of at least 1 iteration expected, received {step}")
        if factor >= 1.0:
            raise ValueError(f"a factor below 1 expected, received {factor}")
        self.step = step
        self.factor = factor
        self.old_lr = self.base_lr
        self.init = False

    def __call__(self, iteration: int) -> float:
        """Return the rate at an iteration; a change is logged."""
        if not self.init:
            self.init = True
            self.old_lr = self.base_lr
        rate = self.base_lr * self.factor ** (iteration // self.step)
        if rate != self.old_lr:
            self.old_lr = rate
            logging.info("Iteration [%d]: the learning rate is %.5f now", iteration, rate)
        return rate
