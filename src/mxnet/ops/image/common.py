"""Shape checks and random numbers shared by the operators on images."""
from typing import Any

import numpy as np
import torch

from ...base import MXNetError
from .. import random_state
from ..random_state import generator, source


def require_image(operator: str, data: torch.Tensor) -> None:
    """Raise a MXNetError unless `data` is (H, W, C)."""
    if data.dim() != 3:
        raise MXNetError(f"{operator}: an image (H, W, C) expected, received shape {tuple(data.shape)}")


def require_color(operator: str, data: torch.Tensor) -> None:
    """Raise a MXNetError unless `data` is (H, W, C) with one channel or three."""
    require_image(operator, data)
    if data.shape[-1] not in (1, 3):
        raise MXNetError(f"{operator}: the last axis of the image must hold 1 or 3 channels, received {tuple(data.shape)}")


def uniform(data: torch.Tensor, low: float, high: float, dtype: Any = torch.float32) -> torch.Tensor:
    """Draw a random number as a tensor on the device of `data`, without a wait for the device."""
    bank = None if data.device.type == "meta" else source(data.device)
    if bank is None:
        return torch.empty((), dtype=dtype, device=data.device).uniform_(low, high, generator=generator(data.device))
    return bank.numbers(1, dtype)[0].mul_(float(np.float32(high) - np.float32(low))).add_(low)


def normal(data: torch.Tensor, count: int, scale: float) -> torch.Tensor:
    """`count` normally distributed numbers on the device of `data`."""
    bank = None if data.device.type == "meta" else source(data.device)
    if bank is None:
        return torch.empty(count, device=data.device).normal_(0, scale, generator=generator(data.device))
    return bank.numbers(count, normal=True).mul_(scale)


def order(data: torch.Tensor) -> list[int]:
    """The numbers from 0 to 3 in random order, as a list; drawn on the host, which decides by them."""
    return [0, 1, 2, 3] if data.device.type == "meta" else random_state.bank().order(4, backwards=False).tolist()
