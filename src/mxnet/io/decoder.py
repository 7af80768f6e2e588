"""Decoding of images of record files into a reusable buffer of each thread."""
import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .. import opencv
from ..base import MXNetError
from ..image_header import decodable_jpeg, decode
from ..kernels.image import jpeg
from ..ops.image.geometry import shorter_side
from .native import require

_Needed = Callable[[int, int], tuple[int, int, int, int]]
_KEPT = 1 << 25  # bytes of the largest image for which a thread keeps its buffer


class _Buffers:
    """A growing buffer: torch's tensor and NumPy's array share it until a larger one is allocated."""

    def __init__(self) -> None:
        self.resize(1 << 20)

    def resize(self, size: int) -> None:
        self.tensor = torch.empty(size, dtype=torch.uint8)
        self.array = self.tensor.numpy()

    def fit(self, size: int) -> None:
        if size > self.array.size:
            self.resize(1 << (size - 1).bit_length())  # a power of two, since kernels cache a check for each size


class _Memory(threading.local):
    """A thread's buffers for an image, and for the content of its file."""

    def __init__(self) -> None:
        self.image, self.file = _Buffers(), _Buffers()


class Decoder:
    """Decodes images to a number of channels: 1 gray, 3 colour (BGR), 4 with alpha.

    With `scaled_to`, a JPEG whose sides are at least twice as long as needed is decoded to a fraction of its size, which is several
    times faster.
    """

    def __init__(self, channels: int, scaled_to: int = 0) -> None:
        require(channels in (1, 3, 4), f"Invalid output shape: data_shape must have 1, 3 or 4 channels, received {channels}")
        self.channels, self.scaled_to = channels, scaled_to
        self._memory = _Memory()

    @functools.cached_property
    def _has_kernel(self) -> bool:
        return jpeg.available()

    def __call__(self, content: memoryview, needed: _Needed | None = None) -> np.ndarray:
        """Decode the content of an image file; the array is valid until this thread decodes another one.

        Parameters
        ----------
        content : memoryview
        needed : callable, optional
            ``needed(height, width)``, called at most once, returns the part of the image that is needed: top, left, rows and columns. The
            values of the rest are undefined then.

        Raises
        ------
        MXNetError
            If there is no image, or it does not have the channels.
        """
        cv2 = opencv.load()
        text = f"{len(content)} bytes"
        if self.channels != 4:
            frame = decodable_jpeg(content, text)
            # OpenCV applies Exif orientations, and converts images of 4 channels.
            if frame is not None and frame.channels in (1, 3) and not frame.annotated:
                image = self._jpeg(content, frame.height, frame.width, needed)
                if image is not None:
                    return image
        image = decode(np.frombuffer(content, np.uint8), {1: cv2.IMREAD_GRAYSCALE, 3: cv2.IMREAD_COLOR, 4: cv2.IMREAD_UNCHANGED}[self.channels], text)
        if image is None:
            raise MXNetError(f"{text} that are no image")
        if self.channels == 4:
            channels = image.shape[2] if image.ndim == 3 else 1
            require(channels == 4, f"Invalid image: Expected 4 channels, got {channels}")
        return image

    def _jpeg(self, content: memoryview, height: int, width: int, needed: _Needed | None) -> np.ndarray | None:
        import simplejpeg
        kind, size = ("BGR", height * width * 3) if self.channels == 3 else ("GRAY", height * width)
        options: dict[str, Any] = {}
        scaled = bool(self.scaled_to) and min(height, width) >= 2 * self.scaled_to
        if size <= _KEPT:
            self._memory.image.fit(size)
            options["buffer"] = self._memory.image.array
            if self._has_kernel and not scaled and len(content) <= _KEPT:
                window = needed(height, width) if needed is not None else (0, 0, height, width)
                if self._window(content, (height, width), window):
                    image = self._memory.image.array[:size]
                    return image.reshape(height, width, 3) if self.channels == 3 else image.reshape(height, width)
        if scaled:
            options["min_height"], options["min_width"] = shorter_side(height, width, self.scaled_to)
        try:
            image = simplejpeg.decode_jpeg(content, kind, **options)
        except ValueError:  # it is damaged; OpenCV decides if it is readable
            return None
        return image if self.channels == 3 else image[:, :, 0]

    def _window(self, content: memoryview, size: tuple[int, int], window: tuple[int, int, int, int]) -> bool:
        length, file = len(content), self._memory.file
        file.fit(length)
        file.array[:length] = np.frombuffer(content, np.uint8)
        return jpeg.decode(file.tensor, length, size, window, self._memory.image.tensor, self.channels)

    def flat(self, image: np.ndarray) -> torch.Tensor:
        """Return the bytes of an image as a tensor: the thread's buffer if the image begins there, else the image's own."""
        if image.__array_interface__["data"] == self._memory.image.array.__array_interface__["data"] and image.flags.c_contiguous:
            return self._memory.image.tensor
        return torch.from_numpy(np.ascontiguousarray(image).reshape(-1))
