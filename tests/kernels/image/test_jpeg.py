"""The pixels are libjpeg-turbo's, to the last bit; what is unusual or damaged is left to it."""
import cv2
import numpy as np
import pytest
import torch

from mxnet.base import MXNetError
from mxnet.kernels.image import jpeg

pytestmark = pytest.mark.skipif(not jpeg.available(), reason="no C++ compiler")
SAMPLINGS = {name: getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{name}") for name in ("444", "422", "420", "440", "411")}


def picture(height, width, channels=3):
    """Smooth, with some noise."""
    rng = np.random.RandomState(height * width)
    small = rng.randint(0, 256, (height // 4 + 2, width // 4 + 2, channels)).astype(np.uint8)
    large = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC).reshape(height, width, channels)
    return np.clip(large.astype(int) + rng.randint(-20, 21, large.shape), 0, 255).astype(np.uint8)


def encoded(image, sampling="420", quality=90, *more):
    return cv2.imencode(".jpg", image, (cv2.IMWRITE_JPEG_SAMPLING_FACTOR, SAMPLINGS[sampling], cv2.IMWRITE_JPEG_QUALITY, quality, *more))[1].tobytes()


def decoded(content, size, window=None, channels=3):
    """The window, or None where the kernel leaves it to others."""
    top, left, rows, columns = window = window or (0, 0, *size)
    image = torch.full((size[0] * size[1] * channels,), 7, dtype=torch.uint8)
    done = jpeg.decode(torch.frombuffer(bytearray(content), dtype=torch.uint8), len(content), size, window, image, channels)
    return image.numpy().reshape(*size, channels)[top:top + rows, left:left + columns] if done else None


def expected(content, size, window=None, channels=3):
    top, left, rows, columns = window or (0, 0, *size)
    whole = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR if channels == 3 else cv2.IMREAD_GRAYSCALE)
    return whole.reshape(*size, channels)[top:top + rows, left:left + columns]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(16, 16), (1, 9), (33, 17), (100, 75), (8, 200)], ids=str)
@pytest.mark.parametrize("sampling", ["444", "422", "420"])
def test_pixels(sampling, size, channels):
    for quality, more in ((30, ()), (90, (cv2.IMWRITE_JPEG_OPTIMIZE, 1)), (100, (cv2.IMWRITE_JPEG_RST_INTERVAL, 3))):
        content = encoded(picture(*size), sampling, quality, *more)
        assert np.array_equal(decoded(content, size, channels=channels), expected(content, size, channels=channels))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_gray_image(channels):
    content = encoded(picture(21, 35, 1))
    assert np.array_equal(decoded(content, (21, 35), channels=channels), expected(content, (21, 35), channels=channels))


@pytest.mark.parametrize("sampling", ["444", "422", "420"])
def test_windows(sampling):
    size, rng = (61, 83), np.random.RandomState(0)
    content = encoded(picture(*size), sampling)
    for _ in range(60):
        top, left = rng.randint(size[0]), rng.randint(size[1])
        window = top, left, rng.randint(1, size[0] - top + 1), rng.randint(1, size[1] - left + 1)
        assert np.array_equal(decoded(content, size, window), expected(content, size, window)), window


def test_nothing_is_written_behind_the_image():
    content, image = encoded(picture(15, 14)), torch.full((15 * 14 * 3 + 64,), 9, dtype=torch.uint8)
    file = torch.frombuffer(bytearray(content + b"behind it"), dtype=torch.uint8)
    assert jpeg.decode(file, len(content), (15, 14), (0, 0, 15, 14), image, 3) and (image[15 * 14 * 3:] == 9).all()


@pytest.mark.parametrize("sampling, size, more", [("440", (20, 20), ()), ("411", (20, 20), ()), ("420", (20, 4), ()),
                                                  ("420", (20, 20), (cv2.IMWRITE_JPEG_PROGRESSIVE, 1))], ids=str)
def test_what_is_left_to_the_library(sampling, size, more):
    assert decoded(encoded(picture(*size), sampling, 90, *more), size) is None


def test_an_image_in_rgb_is_left_to_the_library():
    content = encoded(picture(16, 16), "444")
    assert decoded(content[:2] + b"\xff\xfe\0\5abc" + content[2:], (16, 16)) is not None
    app0 = content.index(b"\xff\xe0")
    without = content[:app0] + content[app0 + 18:]
    assert np.array_equal(decoded(without, (16, 16)), expected(without, (16, 16)))  # components 1, 2, 3
    adobe = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0"
    assert decoded(without[:2] + adobe + b"\1" + without[2:], (16, 16)) is not None
    assert decoded(without[:2] + adobe + b"\0" + without[2:], (16, 16)) is None


def test_damage_is_left_to_the_library():
    size = 40, 60
    content = encoded(picture(*size))
    scan = content.index(b"\xff\xda")
    wrong = [content[:-2], content[:len(content) // 2], content[:scan], content[:1], content[1:], content[:-6] + content[-2:],
             content[:-2] + b"\0\0" + content[-2:]]
    assert [decoded(one, size) for one in wrong] == [None] * len(wrong)
    assert decoded(content, (40, 61)) is None and decoded(content, size) is not None
    # What is missing below the window is noticed as well.
    assert decoded(content[:-2], size, (0, 0, 4, 60)) is None and decoded(content, size, (0, 0, 4, 60)) is not None


def test_numbers_that_no_photograph_has_are_left_to_the_library():
    content = encoded(picture(16, 16))
    steps = content.index(b"\xff\xdb") + 5
    assert decoded(content[:steps] + b"\xff" * 64 + content[steps + 64:], (16, 16)) is None


def test_tables_are_those_of_each_file():
    one, other = encoded(picture(40, 40), "420", 95, cv2.IMWRITE_JPEG_OPTIMIZE, 1), encoded(picture(40, 40), "420", 20)
    for content in (one, other, one, other):
        assert np.array_equal(decoded(content, (40, 40)), expected(content, (40, 40)))


@pytest.mark.parametrize("window", [(0, 0, 17, 16), (0, -1, 16, 16), (0, 0, 0, 16), (2**62, 0, 2, 2), (1, 0, 16, 16)], ids=str)
def test_a_window_lies_in_the_image(window):
    image, content = torch.zeros(768, dtype=torch.uint8), encoded(picture(16, 16))
    file = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    assert not jpeg.decode(file, len(content), (16, 16), window, image, 3)
    assert not jpeg.decode(file, len(content) + 1, (16, 16), (0, 0, 16, 16), image, 3)
    assert not jpeg.decode(file, len(content), (16, 16), (0, 0, 16, 16), image[:-1], 3)
    assert not image.any()


def test_other_arrays_are_refused():
    file = torch.zeros(4, dtype=torch.uint8)
    with pytest.raises(MXNetError, match="c == 1 or c == 3 does not hold"):
        jpeg.decode(file, 4, (1, 1), (0, 0, 1, 1), torch.zeros(4, dtype=torch.uint8), 4)
    with pytest.raises(MXNetError, match="`image` must be uint8"):
        jpeg.decode(file, 4, (1, 1), (0, 0, 1, 1), torch.zeros(4), 1)
