"""Resizing is OpenCV's, to the last bit; what leaves the image is refused."""
import cv2
import numpy as np
import pytest
import torch

from mxnet import kernels
from mxnet.base import MXNetError
from mxnet.kernels.image.transform import Cut, finish

pytestmark = pytest.mark.skipif(kernels.load("image/transform") is None, reason="no C++ compiler")
TABLE = torch.arange(256.0).repeat(4, 1) + torch.arange(4.0)[:, None] * 1000


def picture(height, width, channels):
    return np.random.RandomState(height * width).randint(0, 256, (height, width, channels)).astype(np.uint8)


def finished(image, cut, rows, columns, pixels=False, table=TABLE):
    channels = image.shape[2]
    out = torch.full((rows, columns, channels) if pixels else (channels, rows, columns), -1, dtype=table.dtype)
    finish(torch.from_numpy(image.reshape(-1)), cut, table[:channels], out, pixels)
    return out


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("size, resized", [((37, 50), (25, 34)), ((9, 11), (30, 41)), ((1, 1), (3, 2)), ((2, 1), (1, 5)), ((20, 20), (10, 10)),
                                           ((7, 40), (7, 40)), ((40, 3), (13, 9))], ids=str)
def test_resizing_is_opencvs(channels, size, resized):
    image = picture(*size, channels)
    found = finished(image, Cut(*size, 0, 0, *size, *resized, 0, 0), *resized)
    expected = cv2.resize(image, resized[::-1]).reshape(*resized, channels).transpose(2, 0, 1)
    assert np.array_equal(found.numpy() - np.arange(channels)[:, None, None] * 1000, expected)


def test_a_part_is_resized_cropped_mirrored_and_looked_up():
    image = picture(20, 30, 3)
    cut = Cut(20, 30, 2, 3, 15, 20, 10, 12, 4, 5, mirrored=True, reversed=True)
    expected = cv2.resize(np.ascontiguousarray(image[2:17, 3:23]), (12, 10))[4:9, 5:11][:, ::-1, ::-1]
    values = expected + np.arange(3) * 1000
    assert np.array_equal(finished(image, cut, 5, 6).numpy(), values.transpose(2, 0, 1))
    assert np.array_equal(finished(image, cut, 5, 6, pixels=True).numpy(), values)


def test_pixels_that_a_cut_does_not_look_at_make_no_difference():
    image, rng, parts = picture(40, 60, 3), np.random.RandomState(0), []
    for _ in range(300):
        top, left, resized = rng.randint(20), rng.randint(30), rng.randint(5, 70, 2)
        rows, columns = rng.randint(1, 41 - top), rng.randint(1, 61 - left)
        out = [rng.randint(1, size + 1) for size in resized]
        cut = Cut(40, 60, top, left, rows, columns, *resized, rng.randint(resized[0] - out[0] + 1), rng.randint(resized[1] - out[1] + 1))
        y, x, height, width = cut.looks_at(*out)
        assert top <= y < y + height <= top + rows and left <= x < x + width <= left + columns
        other = 255 - image
        other[y:y + height, x:x + width] = image[y:y + height, x:x + width]
        assert torch.equal(finished(image, cut, *out), finished(other, cut, *out)), cut
        parts.append(height * width / (rows * columns))
    assert np.mean(parts) < 0.6


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.float16], ids=str)
def test_types(dtype):
    image, table = picture(4, 5, 3), (torch.arange(256) % 100).to(dtype).repeat(3, 1)
    found = finished(image, Cut(4, 5, 0, 0, 4, 5, 4, 5, 0, 0), 4, 5, table=table)
    assert found.dtype == dtype and np.array_equal(found.numpy(), (image % 100).transpose(2, 0, 1))


@pytest.mark.parametrize("change", [dict(height=21), dict(width=31), dict(top=6), dict(left=-1), dict(rows=0), dict(columns=31), dict(resized_rows=4),
                                    dict(crop_top=6), dict(crop_left=-1), dict(height=2**62, width=2**62), dict(top=2**62), dict(resized_rows=2**40)],
                         ids=str)
def test_what_leaves_the_image_is_refused(change):
    cut = Cut(20, 30, 5, 0, 15, 30, 10, 10, 0, 0)._replace(**change)
    with pytest.raises(MXNetError, match="does not fit an image of 1800 bytes and a window of 5x5 pixels"):
        finished(picture(20, 30, 3), cut, 5, 5)


@pytest.mark.parametrize("value", [None, 1.5, 2**64], ids=str)
def test_a_cut_is_whole_numbers(value):
    with pytest.raises(MXNetError, match="a cut is 12 whole numbers of 64 bits, received Cut"):
        finished(picture(20, 30, 3), Cut(20, 30, 5, 0, 15, 30, 10, 10, 0, 0)._replace(top=value), 5, 5)


def test_other_arrays_are_refused():
    flat, cut = torch.zeros(12, dtype=torch.uint8), Cut(2, 2, 0, 0, 2, 2, 2, 2, 0, 0)
    with pytest.raises(MXNetError, match="c == 1 or c == 3 or c == 4 does not hold"):
        finish(flat, cut, TABLE[:2], torch.zeros(2, 2, 2))
    with pytest.raises(MXNetError, match="`out` must be T"):
        finish(flat, cut, TABLE[:3], torch.zeros(3, 2, 2, dtype=torch.float16))
