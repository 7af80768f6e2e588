"""Layers over images with their channels last that may write to a part of the channels of an array, as of a concatenation."""
import abc
from collections.abc import Sequence
from typing import NamedTuple, Optional

import torch

from .contract import Plan

ANY = -1.0  # the ceiling of results that are not rectified


def new_images(shape: Sequence[int]) -> torch.Tensor:
    """A new array (N, C, H, W) as these layers write it, whatever type and device torch takes by default."""
    return torch.empty(shape, dtype=torch.float32, device="cpu", memory_format=torch.channels_last)


class Bound(NamedTuple):
    """The call of a kernel: its plan, the arrays that it takes, in order, and the numbers."""

    plan: Plan
    arrays: tuple[Optional[torch.Tensor], ...]
    numbers: tuple[float, ...]


class Bindable(abc.ABC):
    """A layer whose kernel may be called without it.

    Attributes
    ----------
    order : torch.memory_format
        In which its data lie in memory.
    makes : bool
        Whether the kernel makes the result, first of what it makes, instead of writing to an array among those it takes.
    """

    order, makes = torch.contiguous_format, True

    @abc.abstractmethod
    def sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The result's, for data of this shape."""

    @abc.abstractmethod
    def bound(self, data: torch.Tensor, residual: Optional[torch.Tensor], into: torch.Tensor, first: int) -> Optional[Bound]:
        """The call of the kernel that computes it for arrays like these; None where none does, or it is not known yet which."""


class IntoPart(Bindable):
    """A layer that may write to a part of an array."""

    order, makes = torch.channels_last, False

    @abc.abstractmethod
    def __call__(self, data: torch.Tensor, residual: Optional[torch.Tensor] = None, into: Optional[torch.Tensor] = None,
                 first: int = 0) -> torch.Tensor:
        """The layer of `data` (N, C, H, W), plus `residual` (N, K, P, Q) where a layer adds one.

        It goes to K channels of `into` (N, any, P, Q; channels last), from the one of number `first` on; without, to an array of its own.
        """
