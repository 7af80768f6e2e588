"""Resizing in torch's operations: OpenCV's numbers."""
import cv2
import numpy as np
import pytest
import torch

from mxnet.ops.image import resampling

SIZES = [((4, 6), (2, 3)), ((4, 6), (8, 9)), ((7, 5), (3, 11)), ((20, 30), (10, 15)), ((20, 30), (10, 16)), ((1, 1), (3, 2)), ((33, 47), (46, 12)),
         ((5, 5), (5, 5)), ((40, 3), (1, 1)), ((6, 4), (3, 4))]
METHODS = [(resampling.nearest, cv2.INTER_NEAREST), (resampling.linear, cv2.INTER_LINEAR)]


@pytest.mark.parametrize("function, method", METHODS, ids=["nearest", "linear"])
@pytest.mark.parametrize("old, new", SIZES)
def test_bytes_are_those_of_opencv(function, method, old, new):
    image = np.random.RandomState(0).randint(0, 256, (*old, 3), dtype="uint8")
    expected = cv2.resize(image, new[::-1], interpolation=method)
    found = function(torch.from_numpy(image), *new)
    assert found.dtype is torch.uint8 and found.numpy().tolist() == expected.tolist()
    batch = function(torch.from_numpy(np.stack([image[::-1], image])), *new)
    assert batch.shape == (2, *new, 3) and torch.equal(batch[1], found)


@pytest.mark.parametrize("old, new", SIZES)
def test_floats(old, new):
    image = np.random.RandomState(1).rand(*old, 3).astype("float32")
    np.testing.assert_allclose(resampling.linear(torch.from_numpy(image), *new).numpy(), cv2.resize(image, new[::-1]), rtol=1e-4, atol=1e-5)
    assert resampling.nearest(torch.from_numpy(image), *new).tolist() == cv2.resize(image, new[::-1], interpolation=cv2.INTER_NEAREST).tolist()


def test_means_of_four_pixels_are_rounded_up():
    image = torch.tensor([[[0], [1]], [[1], [0]]], dtype=torch.uint8)
    assert resampling.linear(image, 1, 1).tolist() == [[[1]]]


def test_sizes_are_inferred():
    image = torch.empty(2, 4, 6, 3, dtype=torch.uint8, device="meta")
    for function, _ in METHODS:
        assert function(image, 5, 2).shape == (2, 5, 2, 3) and function(image.float()[0], 5, 2).dtype is torch.float32
