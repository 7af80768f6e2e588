"""The factor that keeps small float16 gradients from vanishing."""
from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from ...gluon import Parameter

_INITIAL, _LARGEST = 2.0 ** 16, 2.0 ** 24
_STEPS_BEFORE_GROWTH = 2000


class LossScaler:
    """A loss scale that is halved when a gradient overflows and doubled after 2000 steps without.

    A change takes effect with the step after the next: the loss of the coming one may have been scaled already.

    Example
    -------
    >>> from mxnet.contrib.amp.loss_scaler import LossScaler
    >>> LossScaler().loss_scale
    65536.0
    """

    def __init__(self) -> None:
        self._loss_scale = self._next_loss_scale = _INITIAL
        self._steps_without_overflow = 0

    @property
    def loss_scale(self) -> float:
        """The factor for the loss at present."""
        return self._loss_scale

    def has_overflow(self, params: Iterable[Parameter]) -> bool:
        """Return True if a gradient is infinite or NaN, so that this step must be skipped; advance to the next scale.

        Parameters
        ----------
        params : list of Parameter
            Those without a gradient are left out.
        """
        by_device: dict[Any, list[Any]] = {}
        for values in (_values(grad) for parameter in params for grad in parameter._grad or ()):
            by_device.setdefault(values.device, []).append(values)
        # Few kernels and one synchronization for each device, not for each gradient: the function of torch's own scaler, with a scale of 1.
        flags = []
        for device, gradients in by_device.items():
            flag, one = torch.zeros(1, device=device), torch.ones(1, device=device)
            torch._amp_foreach_non_finite_check_and_unscale_(gradients, flag, one)
            flags.append(flag)
        overflow = any(bool(flag) for flag in flags)
        self._loss_scale = self._next_loss_scale
        if overflow:
            self._next_loss_scale = self._loss_scale / 2
            self._steps_without_overflow = 0
            logging.info("AMP: decreasing loss scale to %f", self._next_loss_scale)
            return True
        self._steps_without_overflow += 1
        if self._steps_without_overflow == _STEPS_BEFORE_GROWTH:
            self._steps_without_overflow = 0
            self._next_loss_scale = min(_LARGEST, self._loss_scale * 2)
            logging.info("AMP: increasing loss scale to %f", self._next_loss_scale)
        return False


def _values(array):
    """Return the stored elements: of a sparse gradient, those that are not zero."""
    return (array.data if array._is_sparse else array)._data
