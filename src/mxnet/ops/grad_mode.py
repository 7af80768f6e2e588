"""Whether torch records, for a ``with`` block: as its own `no_grad` and `enable_grad`, which Ctrl-C at their end leaves switched."""
from __future__ import annotations

import functools

import torch

from .. import interrupts


class GradMode(interrupts.Scope):
    """A ``with`` block in which torch records, or does not.

    Example
    -------
    >>> import torch
    >>> from mxnet.ops.grad_mode import GradMode
    >>> with GradMode(False):
    ...     print(torch.is_grad_enabled())
    False
    """

    __slots__ = ("_enabled",)
    _blocks = interrupts.Blocks()

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def _changes(self) -> list[functools.partial[None]]:
        return [functools.partial(torch._C._set_grad_enabled, enabled) for enabled in (self._enabled, torch.is_grad_enabled())]


def no_grad() -> GradMode:
    """A ``with`` block in which torch does not record."""
    return GradMode(False)


def enable_grad() -> GradMode:
    """A ``with`` block in which torch records."""
    return GradMode(True)
