"""Images with their channels last, in the memory of another array."""
from ...base import MXNetError
from ..runtime.contract import Kernel

_BY_CHANNELS = {c: Kernel("image/nchw_to_nhwc", entry, {"images": f"float32 (n, {c}, h, w)", "out": f"float32 (n, h, w, {c})"}, sizes=("n", "h * w"),
                          threads=False) for c, entry in ((2, "two"), (3, "three"), (4, "four"))}


def available(channels):
    """Whether the kernel can do it for so many channels."""
    return channels in _BY_CHANNELS and _BY_CHANNELS[channels].available()


def interleave(images, out):
    """Write `images` (N, C, H, W), float32, to `out` (N, H, W, C), contiguous; C is one of the numbers that are `available`.

    Raises
    ------
    MXNetError
        If they are anything else.
    """
    kernel = _BY_CHANNELS.get(out.shape[-1] if out.dim() else 0)
    if kernel is None:
        raise MXNetError(f"interleave: images have 2 to 4 channels, which are last in the result, received a result of shape {tuple(out.shape)}")
    kernel((images.contiguous(), out))
