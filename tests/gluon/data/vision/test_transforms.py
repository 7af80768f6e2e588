import random

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.data.vision import transforms

# Expected sums are those of MXNet 1.9.1 on the same image.
image = mx.nd.array(np.random.RandomState(0).randint(0, 256, (10, 12, 3)), dtype="uint8")
batch = mx.nd.stack(image, image)
tensor = transforms.ToTensor()(image)


def total(x):
    return round(float(x.asnumpy().astype("float64").sum()), 2)


@pytest.mark.parametrize(("transform", "given", "shape", "dtype", "expected"), [
    (transforms.ToTensor(), image, (3, 10, 12), "float32", 172.45),
    (transforms.ToTensor(), batch, (2, 3, 10, 12), "float32", 344.9),
    (transforms.Normalize((0.1, 0.2, 0.3), (1, 2, 3)), tensor, (3, 10, 12), "float32", 68.94),
    (transforms.Normalize(0.1, 2), tensor, (3, 10, 12), "float32", 68.23),
    (transforms.Resize(8), image, (8, 8, 3), "uint8", 23697),
    (transforms.Resize(8, keep_ratio=True), image, (8, 9, 3), "uint8", 26476),
    (transforms.Resize((5, 7), interpolation=0), image, (7, 5, 3), "uint8", 12650),
    (transforms.CenterCrop((6, 4)), image, (4, 6, 3), "uint8", 8838),
    (transforms.CenterCrop(20), image, (20, 20, 3), "uint8", 140276),
    (transforms.CropResize(1, 2, 4, 3), image, (3, 4, 3), "uint8", 4472),
    (transforms.CropResize(1, 2, 4, 3, (6, 5), 1), image, (5, 6, 3), "uint8", 11289),
    (transforms.CropResize(1, 2, 4, 3, (6, 5)), batch, (2, 5, 6, 3), "uint8", 22578),
    (transforms.Cast("float16"), image, (10, 12, 3), "float16", 43975),
    (transforms.Rotate(30), tensor, (3, 10, 12), "float32", 144.58),
    (transforms.Rotate(30, zoom_in=True), tensor, (3, 10, 12), "float32", 161.65),
    (transforms.RandomRotation((10, 10.001)), tensor, (3, 10, 12), "float32", 158.65),
    (transforms.Compose([transforms.Resize(20), transforms.CenterCrop(16), transforms.ToTensor(), transforms.Normalize(0.5, 0.5)]), image,
     (3, 16, 16), "float32", -59.57),
    (transforms.HybridCompose([transforms.Resize((5, 7), interpolation=0), transforms.Cast("float32")]), image, (7, 5, 3), "float32", 12650),
])
def test_values(transform, given, shape, dtype, expected):
    result = transform(given)
    assert (result.shape, np.dtype(result.dtype).name) == (shape, dtype)
    assert total(result) == pytest.approx(expected, abs=0.02)


def test_neighbours_are_composed_into_graphs():
    row = transforms.Compose([transforms.Resize(20), transforms.CenterCrop(16), transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])
    assert [type(block).__name__ for block in row] == ["Resize", "CenterCrop", "HybridSequential"]
    assert len(row[2]) == 2


def test_compose_leaves_its_argument_alone():
    given = [transforms.ToTensor()]
    transforms.Compose(given)
    assert len(given) == 1


@pytest.mark.parametrize("size", [5, (5, 4)])
def test_random_crops(size):
    width, height = (5, 5) if size == 5 else size
    assert transforms.RandomResizedCrop(size)(image).shape == (height, width, 3)
    part = transforms.RandomCrop(size)(image).asnumpy()
    windows = np.lib.stride_tricks.sliding_window_view(image.asnumpy(), (height, width, 3)).reshape(-1, height, width, 3)
    assert (windows == part).all(axis=(1, 2, 3)).any()


def test_random_crop_pads():
    assert transforms.RandomCrop((20, 18), pad=4, pad_value=7)(image).asnumpy()[0, 0].tolist() == [7, 7, 7]
    padded = transforms.RandomCrop((12, 12), pad=((1, 1), (0, 0), (0, 0)))(image).asnumpy()
    assert (padded[1:-1] == image.asnumpy()).all()


@pytest.mark.parametrize(("transform", "flipped"), [
    (transforms.RandomFlipLeftRight(), image.asnumpy()[:, ::-1]), (transforms.RandomFlipTopBottom(), image.asnumpy()[::-1])])
def test_flips_come_half_of_the_time(transform, flipped):
    results = [transform(image).asnumpy() for _ in range(60)]
    count = sum((result == flipped).all() for result in results)
    assert sum((result == image.asnumpy()).all() for result in results) == 60 - count
    assert 10 < count < 50


@pytest.mark.parametrize("name", ["RandomBrightness", "RandomContrast", "RandomSaturation", "RandomHue", "RandomLighting"])
def test_jitters(name):
    picture = image.astype("float32")
    make = getattr(transforms, name)
    results = {total(make(0.5)(picture)) for _ in range(3)}
    assert len(results) == 3
    assert abs(make(0.0)(picture).asnumpy() - picture.asnumpy()).max() < 0.5


def test_brightness_is_a_factor():
    factors = {round(total(transforms.RandomBrightness(0.4)(image.astype("float32"))) / 43975, 4) for _ in range(50)}
    assert 0.6 <= min(factors) < 0.8
    assert 1.2 < max(factors) <= 1.4


def test_color_jitter():
    assert len({total(transforms.RandomColorJitter(0.2, 0.2, 0.2, 0.1)(image.astype("float32"))) for _ in range(3)}) == 3


@pytest.mark.parametrize(("p", "shape"), [(1.0, (3, 10, 12)), (-1, (10, 12, 3))])
def test_random_apply(p, shape):
    assert transforms.RandomApply(transforms.ToTensor(), p)(image).shape == shape


def test_random_apply_draws():
    random.seed(0)
    shapes = [transforms.RandomApply(transforms.ToTensor(), 0.3)(image).shape for _ in range(100)]
    assert 15 < shapes.count((3, 10, 12)) < 45


def test_rotations_need_float32():
    with pytest.raises(TypeError, match="a float32 image expected, received uint8; put ToTensor before"):
        transforms.Rotate(30)(image)
    with pytest.raises(TypeError, match="a float32 image expected"):
        transforms.RandomRotation((1, 2))(image)
    assert transforms.RandomRotation((1, 2), rotate_with_proba=0)(image) is image


@pytest.mark.parametrize(("arguments", "text"), [
    (((10, 5),), "the smaller angle first, .* received \\(10, 5\\)"), (((1, 5), False, False, 2), "at least 0 and at most 1, received 2")])
def test_random_rotation_refuses(arguments, text):
    with pytest.raises(ValueError, match=text):
        transforms.RandomRotation(*arguments)
