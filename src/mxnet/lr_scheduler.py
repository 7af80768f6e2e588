"""Schedules of the learning rate.

A scheduler is called with the number of updates so far and returns the learning rate. Pass it to an optimizer:
``mx.optimizer.SGD(lr_scheduler=...)``, or ``optimizer_params={'lr_scheduler': ...}``.
"""
from __future__ import annotations

import logging
from math import cos, pi

from .suggestions import shortened

__all__ = ["CosineScheduler", "FactorScheduler", "LRScheduler", "MultiFactorScheduler", "PolyScheduler"]


class LRScheduler:
    """The base class of schedulers: a learning rate with an optional warm-up.

    Parameters
    ----------
    base_lr : float
        The learning rate after the warm-up.
    warmup_steps : int
        The number of updates of the warm-up.
    warmup_begin_lr : float
        The learning rate at its start.
    warmup_mode : str
        ``'linear'``: in equal steps up to `base_lr`; ``'constant'``: stay at `warmup_begin_lr` until it ends.

    Raises
    ------
    ValueError
        If the warm-up would start above `base_lr`, or its length or mode is not valid.

    Example
    -------
    >>> class Halving(mx.lr_scheduler.LRScheduler):
    ...     def __call__(self, num_update):
    ...         return self.base_lr * 0.5 ** (num_update // 10)
    >>> scheduler = Halving(base_lr=0.8)
    >>> scheduler(0), scheduler(10), scheduler(25)
    (0.8, 0.4, 0.2)
    """

    def __init__(self, base_lr: float = 0.01, warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear"):
        if not isinstance(warmup_steps, int) or warmup_steps < 0:
            raise ValueError(f"warmup_steps must be an integer of at least 0, received {shortened(warmup_steps)}")
        if warmup_begin_lr > base_lr:
            raise ValueError(f"warmup_begin_lr must be at most base_lr={base_lr}, received {warmup_begin_lr}")
        if warmup_mode not in ("linear", "constant"):
            raise ValueError(f"warmup_mode must be 'linear' or 'constant', received {shortened(warmup_mode)}")
        self.base_lr = self.warmup_final_lr = base_lr
        self.warmup_steps, self.warmup_begin_lr, self.warmup_mode = warmup_steps, warmup_begin_lr, warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """Return the learning rate at an update of the warm-up."""
        if num_update >= self.warmup_steps:
            raise ValueError(f"update {num_update} is not within the {self.warmup_steps} updates of the warm-up")
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        return self.warmup_begin_lr + (self.warmup_final_lr - self.warmup_begin_lr) * num_update / self.warmup_steps

    def __call__(self, num_update: int) -> float:
        """Return the learning rate after `num_update` updates, which is the maximum over all weights."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__(num_update)")


_MANY = 10000  # skipped steps beyond this number are applied at once, as a power of the factor


def _check_factor(factor):
    if factor > 1.0:
        raise ValueError(f"Factor must be no more than 1 to make lr reduce; received {factor}")


class FactorScheduler(LRScheduler):
    """Multiplies the learning rate by `factor` after every `step` updates, down to `stop_factor_lr`.

    Example
    -------
    >>> import mxnet as mx
    >>> schedule = mx.lr_scheduler.FactorScheduler(step=10, factor=0.5, base_lr=1.0)
    >>> [schedule(n) for n in (1, 10, 11, 21)]
    [1.0, 1.0, 0.5, 0.25]
    """

    def __init__(self, step: int, factor: float = 1, stop_factor_lr: float = 1e-8, base_lr: float = 0.01, warmup_steps: int = 0,
                 warmup_begin_lr: float = 0, warmup_mode: str = "linear"):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if step < 1:
            raise ValueError(f"FactorScheduler: step must be at least 1, received {step}")
        _check_factor(factor)
        self.step, self.factor, self.stop_factor_lr, self.count = step, factor, stop_factor_lr, 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        # Training that resumes from a checkpoint skips several steps at once.
        passed = (num_update - self.count - 1) // self.step
        if passed > _MANY:
            self.count += (passed - _MANY) * self.step
            self.base_lr = max(self.base_lr * self.factor ** (passed - _MANY), self.stop_factor_lr)
        while num_update > self.count + self.step:
            self.count += self.step
            self.base_lr *= self.factor
            # Log parsers match these lines; their text is exactly MXNet's.
            if self.base_lr < self.stop_factor_lr:
                self.base_lr = self.stop_factor_lr
                logging.info("Update[%d]: now learning rate arrived at %0.5e, will not change in the future", num_update, self.base_lr)
            else:
                logging.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """Multiplies the learning rate by `factor` after each of the updates in the list `step`.

    Example
    -------
    >>> import mxnet as mx
    >>> schedule = mx.lr_scheduler.MultiFactorScheduler(step=[2, 4], factor=0.5, base_lr=1.0)
    >>> [schedule(n) for n in (1, 2, 3, 5)]
    [1.0, 1.0, 0.5, 0.25]
    """

    def __init__(self, step: list[int], factor: float = 1, base_lr: float = 0.01, warmup_steps: int = 0, warmup_begin_lr: float = 0,
                 warmup_mode: str = "linear"):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(step, list) or not step:
            raise ValueError(f"MultiFactorScheduler: `step` must be a list of at least one number of updates, received {shortened(step)}")
        if any(b <= a for a, b in zip(step, step[1:])):
            raise ValueError(f"MultiFactorScheduler: steps must increase, received {step}")
        if step[0] < 1:
            raise ValueError(f"MultiFactorScheduler: the first step must be at least 1, received {step}")
        _check_factor(factor)
        self.step, self.factor, self.cur_step_ind, self.count = step, factor, 0, 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            logging.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class _Decay(LRScheduler):
    """Decays from `base_lr` to `final_lr` along a curve: ``_shape(done)`` maps the finished fraction of the updates to the height."""

    def __init__(self, max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(max_update, int) or max_update < 1:
            raise ValueError(f"max_update must be an integer above 0, received {shortened(max_update)}")
        self.base_lr_orig, self.max_update, self.final_lr = base_lr, max_update, final_lr
        self.max_steps = max_update - warmup_steps

    def _shape(self, done):
        raise NotImplementedError

    def __call__(self, num_update):
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        if num_update <= self.max_update:
            height = self._shape((num_update - self.warmup_steps) / self.max_steps)
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * height
        return self.base_lr


class PolyScheduler(_Decay):
    """Decays from `base_lr` to `final_lr` within `max_update` updates, as ``(1 - done) ** pwr``.

    Example
    -------
    >>> import mxnet as mx
    >>> schedule = mx.lr_scheduler.PolyScheduler(max_update=10, base_lr=1.0, pwr=2)
    >>> [schedule(n) for n in (0, 5, 10, 20)]
    [1.0, 0.25, 0.0, 0.0]
    """

    def __init__(self, max_update: int, base_lr: float = 0.01, pwr: int = 2, final_lr: float = 0, warmup_steps: int = 0, warmup_begin_lr: float = 0,
                 warmup_mode: str = "linear"):
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = pwr

    def _shape(self, done):
        return (1 - done) ** self.power


class CosineScheduler(_Decay):
    """Decays from `base_lr` to `final_lr` within `max_update` updates, along half a cosine wave.

    Example
    -------
    >>> import mxnet as mx
    >>> schedule = mx.lr_scheduler.CosineScheduler(max_update=10, base_lr=1.0)
    >>> [round(schedule(n), 4) for n in (0, 5, 10, 20)]
    [1.0, 0.5, 0.0, 0.0]
    """

    def __init__(self, max_update: int, base_lr: float = 0.01, final_lr: float = 0, warmup_steps: int = 0, warmup_begin_lr: float = 0,
                 warmup_mode: str = "linear"):
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)

    def _shape(self, done):
        return (1 + cos(pi * done)) / 2
