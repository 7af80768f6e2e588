"""Layers over images with their channels last that can write to a range of channels of a larger array, such as a concatenation's result."""
import abc
from collections.abc import Sequence
from typing import NamedTuple, Optional

import torch

from .contract import Plan

ANY = -1.0  # the ceiling of results without a ReLU


def new_images(shape: Sequence[int]) -> torch.Tensor:
    """Return an uninitialized float32 array (N, C, H, W) on the CPU, channels last, independent of torch's defaults."""
    return torch.empty(shape, dtype=torch.float32, device="cpu", memory_format=torch.channels_last)


class Bound(NamedTuple):
    """A kernel call with its arguments: the plan, the arrays in order, and the numbers."""

    plan: Plan
    arrays: tuple[Optional[torch.Tensor], ...]
    numbers: tuple[float, ...]


class Bindable(abc.ABC):
    """A layer whose kernel can be called directly, without the layer object.

    Attributes
    ----------
    order : torch.memory_format
        The memory order of the data.
    makes : bool
        True if the kernel allocates the result, as its first output, instead of writing to one of its array arguments.
    """

    order, makes = torch.contiguous_format, True

    @abc.abstractmethod
    def sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the result for data of this shape."""

    @abc.abstractmethod
    def bound(self, data: torch.Tensor, residual: Optional[torch.Tensor], into: torch.Tensor, first: int) -> Optional[Bound]:
        """Return the kernel call for arrays of these shapes; None if there is no kernel, or the algorithm is not chosen yet."""


class StridedOutputLayer(Bindable):
    """A layer that can write its result to a range of channels of an existing array."""

    order, makes = torch.channels_last, False

    @abc.abstractmethod
    def __call__(self, data: torch.Tensor, residual: Optional[torch.Tensor] = None, into: Optional[torch.Tensor] = None,
                 first: int = 0) -> torch.Tensor:
        """Return the layer's result for `data` (N, C, H, W), plus `residual` (N, K, P, Q) where the layer adds one.

        The K channels are written to `into` (N, any, P, Q; channels last) from channel `first` on; without `into`, to a new array.
        """
