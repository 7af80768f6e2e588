"""What operators on images share: checks of shapes, random numbers."""
import torch

from ...base import MXNetError
from ..random_state import generator


def require_image(operator, data):
    """Raise a MXNetError unless `data` is (H, W, C)."""
    if data.dim() != 3:
        raise MXNetError(f"{operator}: an image (H, W, C) expected, received shape {tuple(data.shape)}")


def require_colours(operator, data):
    """Raise a MXNetError unless `data` is (H, W, C) with one channel or three."""
    require_image(operator, data)
    if data.shape[-1] not in (1, 3):
        raise MXNetError(f"{operator}: the last axis of the image must hold 1 or 3 channels, received {tuple(data.shape)}")


def uniform(data, low, high):
    """A random number on the device of `data`, as a tensor, so that nothing waits for it."""
    return torch.empty((), device=data.device).uniform_(low, high, generator=generator(data.device))
