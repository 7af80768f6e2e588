"""A window out of a baseline JPEG: libjpeg-turbo's pixels, in two thirds of its time for the whole image, half of it for a usual crop."""
from typing import Any

import torch

from ..runtime.contract import Kernel

_DECODE = Kernel("image/jpeg", "decode", {"content": "uint8 (n)", "asked": "int64 (7)", "image": "uint8 (m)"}, {"done": "int64 (1)"}, integers=("c",),
                 sizes=("n", "m", "c"), threads=False, demands=("c == 1 or c == 3",))


def available() -> bool:
    """Whether the kernel runs here."""
    return _DECODE.available()


def decode(content: torch.Tensor, length: int, size: tuple[int, int], window: tuple[int, int, int, int], image: torch.Tensor, channels: int) -> bool:
    """Decode a part of an image to where it stands in the whole one; whether it could be done.

    False is no error: the file may be of a kind that only the library knows (progressive ones, say), or damaged. Pixels outside of the window may
    hold anything.

    Parameters
    ----------
    content : torch.Tensor
        uint8, flat: the file, and whatever else the memory holds behind it.
    length : int
        The file's bytes.
    size : tuple of int
        Height and width, as its header says them.
    window : tuple of int
        Top, left, rows and columns.
    image : torch.Tensor
        uint8, flat: room for all of the image, rows of pixels, blue first.
    channels : int
        3, or 1 for the light alone.

    Raises
    ------
    MXNetError
        If an argument is not such a tensor, or there is no kernel.
    """
    arrays = content, torch.tensor((length, *size, *window), dtype=torch.int64), image
    plan: Any = _DECODE.plan(arrays, (channels,))
    if plan is None:
        raise _DECODE.refusal(arrays, (channels,))
    return bool(plan(arrays)[0])
