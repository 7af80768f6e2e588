import random

import numpy as np
import pytest
import torch

from mxnet.io import normalizer
from mxnet.io.normalizer import Normalizer
from mxnet.kernels.image.transform import Cut, available

IMAGE = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)  # blue, green, red


def normalized(image=IMAGE, shape=(3, 2, 3), dtype="float32", mirror=False, cut=None, **options):
    found = Normalizer(dtype, 3, (1, 2, 3, 0), (1, 2, 4, 1), 1.0, mirror, False, 0.0, 0.0, **options)
    out = torch.zeros(shape, dtype=normalizer.TORCH_TYPES[dtype])
    found(image, out, random.Random(0), torch.from_numpy(np.ascontiguousarray(image).reshape(-1)), cut)
    return out.numpy()


@pytest.fixture(params=["kernel", "NumPy"])
def way(request, monkeypatch):
    if request.param == "NumPy":
        monkeypatch.setattr(normalizer, "available", lambda: False)
    elif not available():
        pytest.skip("no C++ compiler")


def test_red_comes_first_and_each_channel_has_its_mean_and_deviation(way):
    assert normalized()[:, 0].tolist() == [[1, 4, 7], [-0.5, 1, 2.5], [-0.75, 0, 0.75]]
    assert normalized(mirror=True)[:, 0].tolist() == [[7, 4, 1], [2.5, 1, -0.5], [0.75, 0, -0.75]]


def test_types_and_layouts(way):
    assert normalized(dtype="uint8")[:, 1].tolist() == [[11, 14, 17], [10, 13, 16], [9, 12, 15]]
    assert normalized(dtype="int8")[:, 0].tolist() == [[1, 4, 7], [-1, 2, 5], [-3, 0, 3]]
    assert normalized(shape=(2, 3, 3), dtype="float16", layout="NHWC")[0].tolist() == [[1, -0.5, -0.75], [4, 1, 0], [7, 2.5, 0.75]]


@pytest.mark.parametrize("dtype, first", [("float32", [4.5, 1.5, -1.5]), ("int8", [4, 1, -2])])
def test_a_mean_image_has_a_value_for_each_pixel(dtype, first):
    mean = np.full((3, 2, 3), 3.5, np.float32)  # which is subtracted before mirroring, and rounded to even for whole numbers
    assert normalized(dtype=dtype, mean_image=mean, mirror=True)[0, 0].tolist() == first


def test_a_cut_is_taken_where_there_is_a_kernel():
    if not available():
        pytest.skip("no C++ compiler")
    cut = Cut(2, 3, 0, 0, 2, 3, 2, 3, 1, 1)
    assert normalized(shape=(3, 1, 2), dtype="uint8", cut=cut).tolist() == [[[14, 17]], [[13, 16]], [[12, 15]]]
    assert Normalizer("float32", 3, (0,) * 4, (1,) * 4, 1.0, False, False, 0.0, 0.0).fuses
    assert not Normalizer("float32", 3, (0,) * 4, (1,) * 4, 1.0, False, False, 0.0, 0.0, mean_image=np.zeros(1)).fuses
