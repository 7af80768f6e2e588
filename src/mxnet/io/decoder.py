"""Decoding images of record files, into memory that each thread keeps for it."""
import threading
from typing import Any

import numpy as np
import torch

from ..base import MXNetError
from ..image_header import decodable_jpeg, decode
from ..ops.image.geometry import shorter_side
from .native import require

_KEPT = 1 << 25  # bytes of the largest image that a thread keeps memory for


class _Memory(threading.local):
    """A thread's memory for an image. It does not shrink: torch and NumPy see the same bytes for as long as images fit."""

    def __init__(self) -> None:
        self.resize(1 << 20)

    def resize(self, size: int) -> None:
        self.tensor = torch.empty(size, dtype=torch.uint8)
        self.array = self.tensor.numpy()


class Decoder:
    """Decodes images for a number of channels: 1 gray, 3 colour (blue first), 4 with alpha.

    With `scaled_to`, a JPEG whose sides are at least twice as long as needed is decoded to a fraction of its size, which is several
    times faster.
    """

    def __init__(self, channels: int, scaled_to: int = 0) -> None:
        require(channels in (1, 3, 4), f"Invalid output shape: data_shape must have 1, 3 or 4 channels, received {channels}")
        self.channels, self.scaled_to = channels, scaled_to
        self._memory = _Memory()

    def __call__(self, content: memoryview) -> np.ndarray:
        """The image in the content of a file, until this thread decodes another.

        Raises
        ------
        MXNetError
            If there is none, or it has not the channels.
        """
        import cv2
        what = f"{len(content)} bytes"
        if self.channels != 4:
            frame = decodable_jpeg(content, what)
            # OpenCV turns images as Exif says, and knows what to do with 4 channels.
            if frame is not None and frame.channels in (1, 3) and not frame.annotated:
                image = self._jpeg(content, frame.height, frame.width)
                if image is not None:
                    return image
        image = decode(np.frombuffer(content, np.uint8), {1: cv2.IMREAD_GRAYSCALE, 3: cv2.IMREAD_COLOR, 4: cv2.IMREAD_UNCHANGED}[self.channels], what)
        if image is None:
            raise MXNetError(f"{what} that are no image")
        if self.channels == 4:
            channels = image.shape[2] if image.ndim == 3 else 1
            require(channels == 4, f"Invalid image: Expected 4 channels, got {channels}")
        return image

    def _jpeg(self, content: memoryview, height: int, width: int) -> np.ndarray | None:
        import simplejpeg
        kind, size = ("BGR", height * width * 3) if self.channels == 3 else ("GRAY", height * width)
        options: dict[str, Any] = {}
        if size <= _KEPT:
            if size > self._memory.array.size:
                self._memory.resize(size)
            options["buffer"] = self._memory.array
        if self.scaled_to and min(height, width) >= 2 * self.scaled_to:
            options["min_height"], options["min_width"] = shorter_side(height, width, self.scaled_to)
        try:
            image = simplejpeg.decode_jpeg(content, kind, **options)
        except ValueError:  # it is damaged; OpenCV decides by how much
            return None
        return image if self.channels == 3 else image[:, :, 0]

    def flat(self, image: np.ndarray) -> torch.Tensor:
        """The bytes of an image as a tensor: the thread's memory, if it begins there, else those of the image alone."""
        if image.__array_interface__["data"] == self._memory.array.__array_interface__["data"] and image.flags.c_contiguous:
            return self._memory.tensor
        return torch.from_numpy(np.ascontiguousarray(image).reshape(-1))
