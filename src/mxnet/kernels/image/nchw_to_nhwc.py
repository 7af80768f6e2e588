"""Conversion of float32 images from NCHW to NHWC, into given memory."""
import ctypes

import torch

from ...base import MXNetError
from ..runtime.contract import Kernel

_BY_CHANNELS = {c: Kernel("image/nchw_to_nhwc", entry, {"images": f"float32 (n, {c}, h, w)", "out": f"float32 (n, h, w, {c})"}, sizes=("n", "h * w"),
                          threads=False) for c, entry in ((2, "two"), (3, "three"), (4, "four"))}


def available(channels: int) -> bool:
    """Return True if there is a kernel for this number of channels."""
    return channels in _BY_CHANNELS and _BY_CHANNELS[channels].available()


class Interleaver:
    """Writes batches of images to one array. The kernel is bound once: with the cold caches after a run the lookup of its plan takes 30 us.

    Parameters
    ----------
    shape : tuple of int
        (N, C, H, W) of each batch; C must be `available`.
    out : torch.Tensor
        The array (N, H, W, C), float32, contiguous.

    Raises
    ------
    MXNetError
        If `out` is of another type, shape or order. From a call, if the images are not float32 of `shape`.
    """

    def __init__(self, shape: tuple[int, ...], out: torch.Tensor) -> None:
        kernel = _BY_CHANNELS.get(out.shape[-1] if out.dim() else 0)
        if kernel is None:
            raise MXNetError(f"interleave: images have 2 to 4 channels, which are last in the result, received a result of shape {tuple(out.shape)}")
        images = torch.empty(shape, dtype=torch.float32, device="cpu")
        plan = kernel.plan((images, out))
        if plan is None:
            raise kernel.error((images, out))
        self._shape, self._out, self._address = images.shape, out, ctypes.c_void_p()
        self._function, self._arguments = plan.bound((self._address, out.data_ptr()), (), 1)

    def __call__(self, images: torch.Tensor) -> None:
        if not images.is_contiguous():
            images = images.contiguous()
        if images.shape != self._shape or images.dtype is not torch.float32 or not images.is_cpu:
            raise MXNetError(f"interleave: expected float32 images of shape {tuple(self._shape)} on a CPU, "
                             f"received {images.dtype} of shape {tuple(images.shape)} on {images.device}")
        self._address.value = images.data_ptr()
        self._function(*self._arguments)
