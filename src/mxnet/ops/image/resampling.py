"""Resizing in torch's operations, with OpenCV's numbers: what GPUs run."""
import torch
import torch.nn.functional as F

_ONE = 1 << 11  # a weight of 1: OpenCV weighs bytes in whole numbers of 11 bits


def nearest(images: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Images (..., H, W, C) of any type at another size, each pixel from the one that its corner lies in."""
    for axis, size in ((-3, height), (-2, width)):
        images = images.index_select(axis, _starts(images, axis, size).floor_().long().clamp_max_(images.shape[axis] - 1))
    return images


def linear(images: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Images (..., H, W, C) at another size, each pixel weighted out of the four around it."""
    if images.dtype is torch.uint8:
        return _linear_bytes(images, height, width)
    planes = images.movedim(-1, -3).to(torch.float32)
    out = F.interpolate(planes.reshape(-1, *planes.shape[-3:]), (height, width), mode="bilinear").reshape(*planes.shape[:-2], height, width)
    out = out.movedim(-3, -1)
    return (out if images.is_floating_point() else out.round()).to(images.dtype).contiguous()


def _starts(images, axis, size):
    return torch.arange(size, dtype=torch.float64, device=images.device).mul_(1 / (size / images.shape[axis]))


def _linear_bytes(images, height, width):
    pixels = images.int()
    left, right, share = _neighbours(pixels, -2, width)
    across = (pixels.index_select(-2, left) * (_ONE - share) + pixels.index_select(-2, right) * share) >> 4
    upper, lower, share = _neighbours(pixels, -3, height)
    down = (across.index_select(-3, upper) * (_ONE - share) >> 16) + (across.index_select(-3, lower) * share >> 16)
    return (down.add_(2) >> 2).to(torch.uint8)


def _neighbours(images, axis, size):
    """The two places along `axis` between which each resized one lies, and the weight of the second."""
    scale = 1 / (size / images.shape[axis])
    exact = torch.arange(size, dtype=torch.float64, device=images.device).add_(0.5).mul_(scale).sub_(0.5).float()
    first = exact.floor()
    share = ((exact - first) * _ONE).round_().int().reshape([-1, *[1] * (-1 - axis)])
    first = first.long()
    last = images.shape[axis] - 1
    return first.clamp(0, last), (first + 1).clamp_(0, last), share
