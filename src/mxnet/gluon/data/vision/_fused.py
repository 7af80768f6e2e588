"""Fusion of a sequence of transforms into one pass over the pixels: resizing, cropping, mirroring, `ToTensor`, `Normalize`.

Each transform changes the window to read (`Pending`), and draws its random numbers as it does alone, in the same order. A kernel then
computes the result. Where a second resizing needs the pixels of a first, these are computed in between.
"""
from collections.abc import Callable
from typing import Any

import torch

from ....autograd import is_recording
from ....base import MXNetError
from ....kernels.image.transform import Cut, available, finish
from ....ndarray import NDArray
from ....ndarray.fast_calls import eligibility
from ....numpy import ndarray
from ....ops.image.geometry import LINEAR, interpolation
from ....ops.image.opencv import cv2_resize
from ....ops.image.transforms import normalize, to_tensor

_CLASSES = {cls: eligibility(cls) for cls in (NDArray, ndarray)}
_BYTES = torch.arange(256, dtype=torch.uint8)


class Pending:
    """An image with deferred transforms: a window to cut out of a part of it, which may be resized first."""

    def __init__(self, image: torch.Tensor) -> None:
        self._begin(image)

    def _begin(self, image: torch.Tensor) -> None:
        self.image = image
        self.rows, self.columns, self.channels = image.shape
        self._part = 0, 0, self.rows, self.columns
        self._resized: tuple[int, int] | None = None
        self._top = self._left = 0
        self.mirrored = False

    def crop(self, x: int, y: int, width: int, height: int) -> None:
        """Narrow the deferred result to a window."""
        self._left += self.columns - x - width if self.mirrored else x
        self._top += y
        self.rows, self.columns = height, width

    def resize(self, height: int, width: int, method: int) -> None:
        """Resize the deferred result; `method` as in `interpolation`."""
        method = interpolation(method, (self.rows, self.columns), (height, width))
        if (height, width) == (self.rows, self.columns):
            return
        if self._resized or self.mirrored or method != LINEAR:
            self._begin(self.made())
        if method != LINEAR:
            self._begin(cv2_resize(self.image, height, width, method, "image.resize"))
            return
        self._part, self._resized = (self._top, self._left, self.rows, self.columns), (height, width)
        self._top = self._left = 0
        self.rows, self.columns = height, width

    def made(self, table: torch.Tensor | None = None) -> torch.Tensor:
        """Compute the pixels, (H, W, C); with a lookup table its entries for them, (C, H, W)."""
        height, width, channels = self.image.shape
        cut = Cut(height, width, *self._part, *(self._resized or self._part[2:]), self._top, self._left, self.mirrored)
        shape = (self.rows, self.columns, channels) if table is None else (channels, self.rows, self.columns)
        table_of_channels = _BYTES.repeat(channels, 1) if table is None else table
        out = torch.empty(shape, dtype=table_of_channels.dtype)
        finish(self.image.view(-1), cut, table_of_channels, out, pixels=table is None)
        return out


class Row:
    """A fused sequence of transforms.

    Parameters
    ----------
    rules : list of callable
        The function that applies each transform to a `Pending`.
    to_float : bool
        True if `ToTensor` follows.
    normalization : tuple, optional
        Mean and deviation, if `Normalize` follows that.
    """

    def __init__(self, rules: list[Callable[[Pending], None]], to_float: bool, normalization: tuple[Any, Any] | None) -> None:
        self._rules, self._to_float, self._normalization = rules, to_float, normalization
        self._tables: dict[int, torch.Tensor | None] = {}

    def __call__(self, x: Any) -> Any:
        """Return the transformed image; None if the kernel cannot run on `x`, or autograd records."""
        eligible = _CLASSES.get(type(x))
        if eligible is None or not eligible(x) or is_recording() or not available():
            return None
        data = x._data
        if data.dtype is not torch.uint8 or data.dim() != 3 or data.shape[2] not in (1, 3) or not data.is_cpu or not data.is_contiguous() \
                or not 0 < min(data.shape) <= max(data.shape) <= 1 << 15:
            return None
        try:
            table = self._table(data.shape[2])
        except MXNetError:  # the transform itself raises the error
            return None
        pending = Pending(data)
        for rule in self._rules:
            rule(pending)
        return type(x)._new(pending.made(table), x.ctx)

    def _table(self, channels: int) -> torch.Tensor | None:
        """Return a lookup table of the 256 pixel values for each channel, computed by the operators so that results are bitwise equal."""
        if self._to_float and channels not in self._tables:
            values = to_tensor(_BYTES.repeat(channels, 1).t().unsqueeze(0).contiguous())
            if self._normalization is not None:
                mean, std = self._normalization
                values = normalize(values, mean=mean, std=std)
            self._tables[channels] = values.reshape(channels, 256).contiguous()
        return self._tables.get(channels)
