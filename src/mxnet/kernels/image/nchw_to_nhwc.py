"""Conversion of float32 images from NCHW to NHWC, into given memory."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ...base import MXNetError
from ..runtime.contract import Kernel

if TYPE_CHECKING:
    import torch

_BY_CHANNELS = {c: Kernel("image/nchw_to_nhwc", entry, {"images": f"float32 (n, {c}, h, w)", "out": f"float32 (n, h, w, {c})"}, sizes=("n", "h * w"),
                          threads=False) for c, entry in ((2, "two"), (3, "three"), (4, "four"))}


def available(channels: int) -> bool:
    """Return True if there is a kernel for this number of channels."""
    return channels in _BY_CHANNELS and _BY_CHANNELS[channels].available()


def interleave(images: torch.Tensor, out: torch.Tensor) -> None:
    """Write `images` (N, C, H, W), float32, to the contiguous `out` (N, H, W, C); C must be `available`.

    Raises
    ------
    MXNetError
        If the arrays are of other types, shapes or orders.
    """
    kernel = _BY_CHANNELS.get(out.shape[-1] if out.dim() else 0)
    if kernel is None:
        raise MXNetError(f"interleave: images have 2 to 4 channels, which are last in the result, received a result of shape {tuple(out.shape)}")
    kernel((images.contiguous(), out))
