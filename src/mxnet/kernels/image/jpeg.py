"""Decoding of a window of a baseline JPEG, with libjpeg-turbo's pixels: in two thirds of its time for a whole image, half for a usual crop."""
from typing import Any

import torch

from ..runtime.contract import Kernel
from ..runtime.parameters import JpegParams, field_names

_FIELDS = field_names(JpegParams)
_DECODE = Kernel("image/jpeg", "decode", {"content": "uint8 (n)", "asked": f"int64 ({len(_FIELDS)})", "image": "uint8 (m)"}, {"done": "int64 (1)"},
                 integers=("c",), sizes=("n", "m", "c"), threads=False, preconditions=("c == 1 or c == 3",))


def available() -> bool:
    """Return True if the kernel is available."""
    return _DECODE.available()


def decode(content: torch.Tensor, length: int, size: tuple[int, int], window: tuple[int, int, int, int], image: torch.Tensor, channels: int) -> bool:
    """Decode a window of an image to its place in the memory of the whole image; return True on success.

    False is no error: the file may be damaged, or of a kind that only libjpeg-turbo decodes, such as progressive. Pixels outside of the window are
    undefined.

    Parameters
    ----------
    content : torch.Tensor
        uint8, flat: the file, and arbitrary bytes behind it.
    length : int
        The file's bytes.
    size : tuple of int
        Height and width, from the file's header.
    window : tuple of int
        Top, left, rows and columns.
    image : torch.Tensor
        uint8, flat: room for all of the image, rows of pixels, blue first.
    channels : int
        3, or 1 for luma (Y) alone.

    Raises
    ------
    MXNetError
        If an argument is not such a tensor, or there is no kernel.
    """
    (height, width), (top, left, rows, columns) = size, window
    asked = {"length": length, "height": height, "width": width, "top": top, "left": left, "rows": rows, "columns": columns}
    arrays = content, torch.tensor([asked[name] for name in _FIELDS], dtype=torch.int64), image
    plan: Any = _DECODE.plan(arrays, (channels,))
    if plan is None:
        raise _DECODE.error(arrays, (channels,))
    return bool(plan(arrays)[0])
