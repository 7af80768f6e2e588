"""Mutated JPEGs for the kernel that decodes them: what it says it can decode has libjpeg-turbo's pixels, unless that finds damage."""
import functools
import json
import random
import struct

import cv2
import numpy as np
import simplejpeg
import torch

from mxnet.image_header import jpeg_frame
from mxnet.kernels.image import jpeg

from .campaign import Target
from .mutations import mutated

_SAMPLING = (cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420)


@functools.cache
def _files():
    rng, found = np.random.default_rng(0), []
    for number, (height, width) in enumerate(((8, 8), (17, 33), (40, 21), (24, 64))):
        for sampling in _SAMPLING:
            picture = cv2.GaussianBlur(rng.integers(0, 256, (height, width, 3)).astype(np.uint8), (3, 3), 0)
            options = (cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling, cv2.IMWRITE_JPEG_OPTIMIZE, number % 2,
                       cv2.IMWRITE_JPEG_RST_INTERVAL, 2 * (number % 3))
            found.append(cv2.imencode(".jpg", picture[:, :, 0] if number == 3 else picture, options)[1].tobytes())
    return found


def _make(rng):
    content = rng.choice(_files())
    if rng.random() < 0.8:
        content = mutated(content, rng, _files())
    return json.dumps({"content": content.hex(), "seed": rng.randrange(1 << 30)}).encode()


class Wrong(Exception):
    """Pixels that are not the library's."""


def _run(case):
    case = json.loads(case)
    content, rng = bytes.fromhex(case["content"]), random.Random(case["seed"])
    try:
        frame = jpeg_frame(memoryview(content))
    except (IndexError, struct.error):  # a header that ends in the middle
        frame = None
    height, width = frame[:2] if frame is not None and 0 < frame.height * frame.width <= 1 << 20 else (8, 8)
    channels, top, left = rng.choice((1, 3)), rng.randrange(height), rng.randrange(width)
    rows, columns = rng.randint(1, height - top), rng.randint(1, width - left)
    # Exactly as much memory as is needed: sanitizers see a byte more.
    memory, image = torch.tensor(list(content), dtype=torch.uint8), torch.empty(height * width * channels, dtype=torch.uint8)
    if not jpeg.decode(memory, len(content), (height, width), (top, left, rows, columns), image, channels):
        return
    try:
        expected = simplejpeg.decode_jpeg(content, "BGR" if channels == 3 else "GRAY", strict=True).reshape(height, width, channels)
    except ValueError:  # it looks at the rows below the window, too
        return
    part = np.s_[top:top + rows, left:left + columns]
    found = image.numpy().reshape(expected.shape)[part]
    if not np.array_equal(found, expected[part]):
        raise Wrong(f"{(found != expected[part]).sum()} of {found.size} values differ, by {np.abs(found.astype(int) - expected[part]).max()} at most")


TARGETS = [Target("kernels.jpeg", _make, _run, share=6)]
