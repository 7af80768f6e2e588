"""Context managers that switch torch's recording of gradients and, unlike torch's own, also restore it if Ctrl-C interrupts their end."""
from __future__ import annotations

import functools

import torch

from .. import interrupts


class GradMode(interrupts.Scope):
    """A ``with`` block with torch's recording of gradients on or off.

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
    """Return a ``with`` block in which torch records no gradients."""
    return GradMode(False)


def enable_grad() -> GradMode:
    """Return a ``with`` block in which torch records gradients."""
    return GradMode(True)
