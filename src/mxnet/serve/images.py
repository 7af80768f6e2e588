"""Images of requests as inputs of a network."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import image_header
from ..base import MXNetError
from .errors import RequestError, malformed
from .tensors import TensorSpec

_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"BM", b"RIFF", b"II*\0", b"MM\0*")
_MANY_PIXELS = 1 << 18


@dataclass(frozen=True)
class Preprocessing:
    """The conversion of an image's pixels: without settings they stay numbers from 0 to 255, as in Multi Model Server.

    Attributes
    ----------
    mean, std : tuple of float
        Of each channel, for pixels from 0 to 1, as in `gluon.data.vision.transforms.Normalize`.
    resize : int
        The shorter side before the middle is cut out; 0 stretches the whole image to the network's size.
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    resize: int = 0

    @classmethod
    def of(cls, signature: Any) -> Preprocessing:
        """Return what ``"image": {"mean": [...], "std": [...], "resize": 256}`` in ``signature.json`` says.

        Raises
        ------
        MXNetError
            If it says something else.
        """
        given = signature.get("image", {}) if isinstance(signature, dict) else {}
        if not isinstance(given, dict) or not given.keys() <= {"mean", "std", "resize"}:
            raise MXNetError(f"signature.json: 'image' has the entries mean, std and resize, received {given!r:.100}")
        mean, std, resize = given.get("mean", []), given.get("std", []), given.get("resize", 0)
        if any(not isinstance(v, list) or any(type(n) not in (int, float) for n in v) for v in (mean, std)) or type(resize) is not int or 0 in std:
            raise MXNetError("signature.json: 'mean' and 'std' of 'image' are lists of numbers, without 0 in 'std', 'resize' is an integer; "
                             "received "
                             f"{mean!r:.60}, {std!r:.60} and {resize!r:.60}")
        return cls(tuple(map(float, mean)), tuple(map(float, std)), resize)

    def require_channels(self, spec: TensorSpec) -> None:
        """Raise an `MXNetError` if means are given for another number of channels than an input's."""
        wanted = layout(spec)
        for name, values in (("mean", self.mean), ("std", self.std)):
            if wanted is not None and len(values) not in (0, 1, wanted[2]):
                raise MXNetError(f"signature.json: {name!r} of 'image' has {len(values)} numbers, the images of {spec.name!r} have {wanted[2]} "
                                 "channels")


def is_image(content_type: str, body: bytes) -> bool:
    """Return whether a body is an image: its type says so, or it has none and begins as image files do."""
    return content_type.startswith("image/") or content_type in ("", "application/octet-stream", "application/x-image") and body.startswith(_MAGIC)


def has_many_pixels(body: bytes) -> bool:
    """Return whether a body is an image that takes long to decode, however few bytes it has."""
    size = image_header.size_of(body)
    return size is not None and size[0] * size[1] > _MANY_PIXELS


def takes_images(spec: TensorSpec) -> bool:
    """Return whether an input is a batch of images with known height and width, channels first or last."""
    return layout(spec) is not None


def layout(spec: TensorSpec) -> tuple[int, int, int, bool] | None:
    """Return height, width, channels, and whether these come first, of an input that takes images; else None."""
    if len(spec.shape) == 4 and min(spec.shape[1:]) > 0:
        _, *rest = spec.shape
        if rest[0] in (1, 3):
            return rest[1], rest[2], rest[0], True
        if rest[2] in (1, 3):
            return rest[0], rest[1], rest[2], False
    return None


def decoded(body: bytes, spec: TensorSpec, preprocessing: Preprocessing, most_pixels: int) -> np.ndarray:
    """Return an image file as an input of one row.

    Raises
    ------
    RequestError
        If the input takes no images (415), the image has more pixels than allowed (413), or can't be decoded (400).
    """
    import cv2
    wanted = layout(spec)
    if wanted is None:
        raise RequestError(415, f"the input {spec.name!r} of shape {list(spec.shape)} takes no images")
    height, width, channels, first = wanted
    size = image_header.size_of(body)
    if size is None:
        raise malformed(f"the image can't be read: JPEG, PNG, BMP, GIF, TIFF or WebP expected, received {len(body)} bytes that begin with "
                        f"{bytes(body[:8]).hex()}")
    if size[0] * size[1] > most_pixels:
        raise RequestError(413, f"an image of at most {most_pixels} pixels is taken, received one of {size[0]} x {size[1]}")
    try:
        pixels = image_header.decode(np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR if channels == 3 else cv2.IMREAD_GRAYSCALE, "the image")
    except MXNetError as error:
        raise malformed(str(error)) from None
    if pixels is None:
        raise malformed("the image can't be decoded: it is damaged")
    pixels = _resized(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB) if channels == 3 else pixels, height, width, preprocessing.resize)
    values = pixels.reshape(height, width, channels)
    if preprocessing.mean or preprocessing.std:
        mean, std = (np.array(given, np.float32) for given in (preprocessing.mean or (0,), preprocessing.std or (1,)))
        values = (values / np.float32(255) - mean) / std
    if first:
        values = values.transpose(2, 0, 1)
    return np.ascontiguousarray(values[None], dtype=spec.dtype)


def _resized(pixels: np.ndarray, height: int, width: int, short: int) -> np.ndarray:
    import cv2
    if not short:
        return cv2.resize(pixels, (width, height), interpolation=cv2.INTER_LINEAR)
    scale = max(short / min(pixels.shape[:2]), height / pixels.shape[0], width / pixels.shape[1])
    grown = max(height, round(pixels.shape[0] * scale)), max(width, round(pixels.shape[1] * scale))
    if max(grown) > 32767:
        raise malformed(f"the image of {pixels.shape[1]} x {pixels.shape[0]} is too long for its height, or too high: {max(grown)} pixels after "
                        "resizing")
    pixels = cv2.resize(pixels, grown[::-1], interpolation=cv2.INTER_LINEAR)
    top, left = (grown[0] - height) // 2, (grown[1] - width) // 2
    return pixels[top:top + height, left:left + width]
