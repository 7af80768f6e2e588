"""Image sizes from file headers: images that are too large are refused before memory for their pixels is allocated."""
from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from . import environment, opencv
from .base import MXNetError

if TYPE_CHECKING:
    import numpy as np

_PNM = re.compile(rb"P[1-7](?:\s|#[^\n]*\n)+(?:WIDTH\s+)?(\d+)(?:\s|#[^\n]*\n)+(?:HEIGHT\s+)?(\d+)")
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_TIFF_TYPES = {1: "B", 3: "H", 4: "I", 16: "Q"}


class JpegFrame(NamedTuple):
    """The header of a JPEG: height, width, channels, and True if it has Exif data."""

    height: int
    width: int
    channels: int
    annotated: bool  # with Exif data, which may contain an orientation


def jpeg_frame(content: Any) -> JpegFrame | None:
    """Return the `JpegFrame` of a file's bytes, a memoryview; None if there is none."""
    at, annotated = 2, False
    while at + 9 <= len(content):
        if content[at] != 0xFF:
            at += 1
            continue
        marker = content[at + 1]
        if marker in _JPEG_FRAMES:
            return JpegFrame(*struct.unpack_from(">HHB", content, at + 5), annotated) if at + 10 <= len(content) else None
        annotated |= marker == 0xE1
        # Fill bytes and standalone markers have no length field.
        at += 1 if marker == 0xFF else 2 if marker in (0, 1) or 0xD0 <= marker <= 0xD8 else 2 + struct.unpack_from(">H", content, at + 2)[0]
    return None


def _jpeg(content):
    frame = jpeg_frame(content)
    return frame and frame[:2]


def _webp(content):
    kind = content[12:16]
    if kind == b"VP8X":
        return tuple(1 + int.from_bytes(content[i:i + 3], "little") for i in (24, 27))
    if kind == b"VP8L":
        bits = int.from_bytes(content[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return tuple(n & 0x3FFF for n in struct.unpack_from("<HH", content, 26))


def _tiff(content):
    order = "<" if content[:2] == b"II" else ">"
    start, = struct.unpack_from(order + "I", content, 4)
    count, = struct.unpack_from(order + "H", content, start)
    sizes = {}
    for i in range(count):
        tag, kind = struct.unpack_from(order + "HH", content, start + 2 + 12 * i)
        if tag in (256, 257) and kind in _TIFF_TYPES:
            sizes[tag], = struct.unpack_from(order + _TIFF_TYPES[kind], content, start + 10 + 12 * i)
    return (sizes[256], sizes[257]) if len(sizes) == 2 else None


def size_of(content: Any) -> tuple[int, int] | None:
    """Return height and width in pixels, in either order, from the bytes of an image file; None if the header has none."""
    view = memoryview(content).cast("B")
    content = bytes(view[:4096])
    try:
        if content.startswith(b"\x89PNG"):
            return struct.unpack_from(">II", content, 16)
        if content.startswith(b"\xff\xd8"):
            return _jpeg(view)
        if content.startswith((b"GIF87a", b"GIF89a")):
            return struct.unpack_from("<HH", content, 6)
        if content.startswith(b"BM"):
            return tuple(map(abs, struct.unpack_from("<ii" if content[14] >= 40 else "<HH", content, 18)))
        if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
            return _webp(content)
        if content.startswith((b"II*\0", b"MM\0*")):
            return _tiff(view)
        match = _PNM.match(content)
        return tuple(int(n) for n in match.groups()) if match else None
    except (struct.error, IndexError, ValueError):
        return None


# The maximal compression: deflate expands a byte to 1032, each of 8 pixels; a block of 64 or 256 pixels of a JPEG takes at least a bit.
_PIXELS_PER_BYTE = {b"\x89P": 8 * 1032, b"\xff\xd8": 2048}
_SMALL = 1 << 24


def _require_chunks(content, what):
    """Refuse a PNG whose chunks are far longer than its file: OpenCV allocates memory for a whole chunk before reading it."""
    at = 8
    while at + 8 <= len(content):
        length, = struct.unpack_from(">I", content, at)
        at += 12 + length
        if length > _SMALL and at > len(content):
            raise MXNetError(f"{what}: a chunk of {length} bytes ends behind the file's {len(content)} bytes; the file is damaged or truncated")


def decodable_jpeg(content: Any, what: str) -> JpegFrame | None:
    """Check that the bytes (a memoryview) are decodable if they are a JPEG, and return their `JpegFrame`; None for other formats.

    Raises
    ------
    MXNetError
        As `require_decodable`.
    """
    frame = jpeg_frame(content) if content[:2] == b"\xff\xd8" else None
    if frame is not None:
        _require_size(frame[:2], content, what)
    return frame


def require_decodable(content: Any, what: str) -> None:
    """Refuse the bytes of an image file whose header declares more pixels than ``MXNET_IMAGE_MAX_PIXELS``, or than so few bytes can encode.

    Raises
    ------
    MXNetError
        If it does; the text begins with `what`.
    """
    size = size_of(content)
    if size is not None:
        _require_size(size, memoryview(content).cast("B"), what)


def _require_size(size, content, what):
    limit = environment.get_int("MXNET_IMAGE_MAX_PIXELS")
    start, length = bytes(content[:2]), len(content)
    if start == b"\x89P":
        _require_chunks(content, what)
    if size[0] * size[1] > max(_SMALL, length * _PIXELS_PER_BYTE.get(start, limit)):
        raise MXNetError(f"{what}: {length} bytes can't hold an image of {size[0]} x {size[1]} pixels; the file is damaged or truncated")
    if size[0] * size[1] > limit:
        raise MXNetError(f"{what}: an image of {size[0]} x {size[1]} pixels is larger than {limit} pixels; if it is meant to be, set the environment "
                         "variable MXNET_IMAGE_MAX_PIXELS")


def decode(content: Any, flags: int, what: str) -> np.ndarray | None:
    """Decode an image from a uint8 array of file content with OpenCV; return None if there is no image.

    Raises
    ------
    MXNetError
        If it is too large, or OpenCV fails.
    """
    cv2 = opencv.load()
    if not content.size:
        return None
    require_decodable(content, what)
    try:
        return cv2.imdecode(content, flags)
    except cv2.error as error:
        raise MXNetError(f"{what}: OpenCV can't decode it: {error.err or error}") from error
