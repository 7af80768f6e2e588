import struct

import numpy as np
import pytest

from mxnet.base import MXNetError
from mxnet.serve.errors import RequestError
from mxnet.serve.images import Preprocessing, decoded, is_image, takes_images
from mxnet.serve.tensors import TensorSpec
from serve_checks import picture

FIRST, LAST = (TensorSpec("data", np.dtype(np.float32), shape) for shape in ((-1, 3, 4, 6), (-1, 4, 6, 3)))


def test_pixels_stay_numbers_from_0_to_255_in_the_order_of_the_input():
    body = picture((255, 100, 0), ".png")
    first, last = (decoded(body, spec, Preprocessing(), 10**6) for spec in (FIRST, LAST))
    assert first.shape == (1, 3, 4, 6) and first[0, :, 0, 0].tolist() == [255, 100, 0]
    assert last.shape == (1, 4, 6, 3) and last[0, 3, 5].tolist() == [255, 100, 0]
    gray = decoded(body, TensorSpec("data", np.dtype(np.uint8), (-1, 1, 2, 2)), Preprocessing(), 10**6)
    assert gray.dtype == np.uint8 and gray[0, 0, 0, 0] == 134  # 0.299 * 255 + 0.587 * 100


def test_means_and_the_middle_of_an_image():
    settings = Preprocessing.of({"image": {"mean": [1, 0.5, 0], "std": [0.5, 1, 1], "resize": 8}})
    out = decoded(picture((0, 255, 0), ".png", (100, 40)), FIRST, settings, 10**6)
    assert out.shape == (1, 3, 4, 6) and out[0, :, 1, 1].tolist() == [-2, 0.5, 0]


def test_means_are_of_all_channels():
    Preprocessing((1.0,), (1.0, 2.0, 3.0)).require_channels(FIRST)
    with pytest.raises(MXNetError, match="'mean' of 'image' has 2 numbers, the images of 'data' have 3 channels"):
        Preprocessing((1.0, 2.0)).require_channels(FIRST)


@pytest.mark.parametrize("settings", [1, {"crop": 1}, {"mean": 1}, {"std": [0]}, {"resize": "1"}])
def test_settings_that_are_none(settings):
    with pytest.raises(MXNetError, match="signature.json"):
        Preprocessing.of({"image": settings})


@pytest.mark.parametrize("body, status, text", [
    (b"GIF89a", 400, "can't be read"), (b"hello", 400, "can't be read"), (picture((1, 2, 3))[:300], 400, "can't be"),
    (picture((1, 2, 3), size=(1000, 1001)), 413, "at most 1000000 pixels is taken, received one of 1000 x 1001"),
    (b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 1 << 30, 1 << 30), 413, "pixels"),
])
def test_refusals(body, status, text):
    with pytest.raises(RequestError, match=text) as caught:
        decoded(body, FIRST, Preprocessing(), 10**6)
    assert caught.value.status == status


def test_what_is_an_image():
    assert is_image("image/png", b"") and is_image("", picture((1, 2, 3))) and is_image("application/octet-stream", picture((1, 2, 3), ".png"))
    assert not is_image("application/json", picture((1, 2, 3))) and not is_image("", b"[1]")
    assert takes_images(FIRST) and takes_images(LAST)
    assert not takes_images(FIRST._replace(shape=(-1, 3, -1, -1))) and not takes_images(FIRST._replace(shape=(-1, 5, 4, 6)))
