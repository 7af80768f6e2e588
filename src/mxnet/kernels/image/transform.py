"""Preprocessing of images for a batch: resizing, cropping, mirroring, normalization and layout in one pass over the needed pixels."""
import math
import operator
from typing import Any, NamedTuple

import numpy as np
import torch

from ...base import MXNetError
from ..runtime.contract import Kernel
from ..runtime.parameters import ImageCutParams, field_names

_MOST = 1 << 15  # pixels of a side
_FIELDS = field_names(ImageCutParams)


def _kernel(entry: str, out: str) -> Kernel:
    return Kernel("image/transform", f"{entry}_{{T}}", {"image": "uint8 (n)", "plan": f"int64 ({len(_FIELDS)})", "table": "T (c, 256)",
                                                            "out": f"T {out}"}, sizes=("n", "c", "h", "w"), threads=False,
                  preconditions=("T == 'float32' or T == 'float16' or T == 'uint8' or T == 'int8'", "c == 1 or c == 3 or c == 4"))


_PLANES, _PIXELS = _kernel("planes", "(c, h, w)"), _kernel("pixels", "(h, w, c)")


class Cut(NamedTuple):
    """The geometry of a transformation: a part of the image is resized linearly, and a window of the result is taken, optionally mirrored."""

    height: int  # the image's
    width: int
    top: int  # the part
    left: int
    rows: int
    columns: int
    resized_rows: int
    resized_columns: int
    crop_top: int  # the window
    crop_left: int
    mirrored: bool = False
    reversed: bool = False  # the first and the third channel are swapped

    def fits(self, count: int, channels: int, out_rows: int, out_columns: int) -> bool:
        """Return True if the part lies in an image of `count` bytes, and a window of the output's size in the resized part."""
        return bool(0 < self.height <= _MOST and 0 < self.width <= _MOST and self.height * self.width * channels <= count
                    and 0 <= self.top and 0 <= self.left and self.rows > 0 and self.columns > 0
                    and self.top + self.rows <= self.height and self.left + self.columns <= self.width
                    and 0 < self.resized_rows <= _MOST and 0 < self.resized_columns <= _MOST and out_rows > 0 and out_columns > 0
                    and 0 <= self.crop_top <= self.resized_rows - out_rows and 0 <= self.crop_left <= self.resized_columns - out_columns)

    def looks_at(self, out_rows: int, out_columns: int) -> tuple[int, int, int, int]:
        """Return the region of the image that a window of this size depends on: top, left, rows and columns."""
        top, rows = _neighbours(self.crop_top, out_rows, self.rows, self.resized_rows)
        left, columns = _neighbours(self.crop_left, out_columns, self.columns, self.resized_columns)
        return self.top + top, self.left + left, rows, columns


def _neighbours(first: int, count: int, size: int, resized: int) -> tuple[int, int]:
    """Return the first source pixel, and their number, for `count` resized pixels from `first` on; each side may include one pixel too many."""
    begin = max(math.floor((first + 0.5) * size / resized - 0.5) - 1, 0)
    end = min(math.floor((first + count - 0.5) * size / resized - 0.5) + 3, size)
    return begin, end - begin


def available() -> bool:
    """Return True if the kernel is available."""
    return _PLANES.available(T="float32")


def finish(image: torch.Tensor, cut: Cut, table: torch.Tensor, out: torch.Tensor, pixels: bool = False) -> None:
    """Write the `cut` of an image to `out`; each value v of channel c becomes ``table[c, v]``.

    Parameters
    ----------
    image : torch.Tensor
        uint8, flat: the pixels row by row, and arbitrary bytes behind them.
    cut : Cut
    table : torch.Tensor
        (channels, 256), of the type of `out`; 1, 3 or 4 channels.
    out : torch.Tensor
        (channels, height, width), or (height, width, channels) with `pixels`; float32, float16, uint8 or int8.

    Raises
    ------
    MXNetError
        If an argument is not such a tensor, the cut leaves the image, or there is no kernel.
    """
    kernel = _PIXELS if pixels else _PLANES
    try:
        numbers = torch.tensor([operator.index(getattr(cut, name)) for name in _FIELDS], dtype=torch.int64)
    except (TypeError, ValueError, RuntimeError):  # the last two from torch, of numbers beyond 64 bits
        raise MXNetError(f"kernel image: a cut is 12 whole numbers of 64 bits, received {cut}") from None
    arrays = image, numbers, table, out
    run: Any = kernel.plan(arrays)
    if run is None:
        raise kernel.error(arrays)
    names = run.names
    if not cut.fits(names["n"], names["c"], names["h"], names["w"]):
        raise MXNetError(f"kernel image: {cut} does not fit an image of {names['n']} bytes and a window of {names['h']}x{names['w']} pixels")
    run(arrays)


def table_of(values: np.ndarray) -> torch.Tensor:
    """Return a (channels, 256) NumPy array as a tensor for `finish`."""
    return torch.from_numpy(np.ascontiguousarray(values))
