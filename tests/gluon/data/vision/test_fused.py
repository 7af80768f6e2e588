"""Rows of transforms give as one pass what they give one by one, with the same random numbers."""
import random

import numpy as np
import pytest

import mxnet as mx
from mxnet import kernels
from mxnet.gluon.data.vision import transforms as T

pytestmark = pytest.mark.skipif(kernels.load("image/transform") is None, reason="no C++ compiler")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def picture(height, width, channels=3):
    return mx.nd.array(np.random.RandomState(height).randint(0, 256, (height, width, channels)), dtype="uint8")


def seeded(function, *arguments):
    random.seed(4)
    np.random.seed(4)
    mx.random.seed(4)
    return [function(*arguments).asnumpy() for _ in range(6)]


def one_by_one(x, row):
    for transform in row:
        x = transform(x)
    return x


@pytest.mark.parametrize("row", [
    [T.Resize(20, keep_ratio=True), T.CenterCrop(16), T.RandomFlipLeftRight(), T.ToTensor(), T.Normalize(MEAN, STD)],
    [T.RandomResizedCrop(16), T.RandomFlipLeftRight(), T.ToTensor(), T.Normalize(0.5, 2)],
    [T.RandomFlipLeftRight(), T.RandomCrop((12, 10)), T.ToTensor()],
    [T.CenterCrop((40, 50)), T.ToTensor()],  # which enlarges
    [T.Resize(12), T.RandomFlipLeftRight(), T.CenterCrop((30, 20)), T.Resize((9, 7))],
    [T.Resize((30, 11), interpolation=2), T.RandomFlipLeftRight(), T.RandomFlipLeftRight()],
    [T.RandomResizedCrop((16, 9), interpolation=3), T.ToTensor()],
], ids=lambda row: "-".join(type(t).__name__ for t in row))
@pytest.mark.parametrize("size", [(24, 36), (41, 23)], ids=str)
@pytest.mark.parametrize("channels", [1, 3])
def test_results_are_those_of_the_transforms(row, size, channels, monkeypatch):
    if channels == 1 and isinstance(row[-1], T.Normalize) and row[-1]._mean == MEAN:
        row = row[:-1]
    x, together = picture(*size, channels), T.Compose(row)
    expected = seeded(one_by_one, x, row)
    monkeypatch.setattr(T.Compose.__mro__[1], "forward", None)  # it is done in one pass
    for found, one in zip(seeded(together, x), expected, strict=True):
        assert found.dtype == one.dtype and np.array_equal(found, one)


def test_what_is_not_made_for_it_goes_one_by_one():
    for row in ([T.RandomColorJitter(0.1), T.ToTensor()], [T.ToTensor()], [T.ToTensor(), T.Resize(4)], [T.RandomCrop(4, pad=2), T.ToTensor()],
                [type("Mine", (T.Resize,), {})(4), T.ToTensor()]):
        assert T.Compose(row)._row is None
    row = T.Compose([T.Resize(8), T.ToTensor()])
    assert row._row(mx.nd.ones((5, 5, 3))) is None and row._row(mx.nd.ones((2, 5, 5, 3), dtype="uint8")) is None
    assert row._row(mx.nd.ones((5, 5, 4), dtype="uint8")) is None
    seen = []
    row._transforms[0].register_forward_hook(lambda *_: seen.append(1))
    row(picture(9, 9))
    assert seen == [1]
    with pytest.raises(mx.MXNetError, match="invalid mean: it must have 1 or 3 elements for shape"):
        T.Compose([T.Resize(8), T.ToTensor(), T.Normalize((1, 2), (1, 1, 1))])(picture(9, 9))


def test_arrays_of_numpy_semantics_stay_such():
    row = T.Compose([T.Resize(8), T.ToTensor()])
    assert type(row(picture(9, 9).as_np_ndarray())) is mx.np.ndarray


def test_a_transform_added_later_counts():
    row = T.Compose([T.Resize(8), T.ToTensor()])
    row.add(T.Cast("float64"))
    assert row(picture(9, 9)).dtype == np.float64
