import random

import numpy as np
import pytest

from mxnet.base import MXNetError
from mxnet.io.augment import DefaultAugmenter, shift_hls


@pytest.fixture
def image():
    y, x, c = np.mgrid[:10, :12, :3]
    return ((x * 5 + y * 3 + c * 40) % 256).astype(np.uint8)


def augment(image, seed=0, data_shape=(3, 4, 5), **parameters):
    return DefaultAugmenter(data_shape, **parameters)(image, random.Random(seed))


def test_nothing_asked_for(image):
    augmenter = DefaultAugmenter((3, 4, 5))
    assert not augmenter.is_random
    assert (augmenter(image, None) == image[3:7, 3:8]).all()


def test_crops_are_parts_of_the_image(image):
    seen = set()
    for seed in range(60):
        out = augment(image, seed, rand_crop=True)
        y, x = next((y, x) for y in range(7) for x in range(8) if (out == image[y:y + 4, x:x + 5]).all())
        seen.add((y, x))
    assert {y for y, _ in seen} == set(range(7)) and {x for _, x in seen} == set(range(8))


@pytest.mark.parametrize("parameters", [
    dict(rand_crop=True), dict(random_resized_crop=True, min_random_area=0.2, max_aspect_ratio=1.5, min_aspect_ratio=0.5),
    dict(max_crop_size=9, min_crop_size=3, rand_crop=True), dict(max_rotate_angle=40), dict(max_shear_ratio=0.3),
    dict(max_random_scale=2.0, min_random_scale=0.7), dict(max_aspect_ratio=0.3), dict(brightness=0.4), dict(contrast=0.4),
    dict(saturation=0.4), dict(pca_noise=0.5), dict(random_h=30), dict(random_s=30), dict(random_l=30), dict(rotate_list=(0, 90, 180)),
    dict(resize=8, inter_method=10)])
def test_random_steps_depend_on_the_seed_alone(image, parameters):
    assert DefaultAugmenter((3, 4, 5), **parameters).is_random
    outs = [augment(image, seed, **parameters) for seed in range(8)]
    assert all(out.shape == (4, 5, 3) and out.dtype == np.uint8 for out in outs)
    assert any((out != outs[0]).any() for out in outs)
    assert all((augment(image, seed, **parameters) == out).all() for seed, out in enumerate(outs))


def test_brightness_stays_in_range(image):
    means = [augment(image, seed, brightness=0.5).mean() / image[3:7, 3:8].mean() for seed in range(40)]
    assert 0.48 < min(means) < 0.7 and 1.3 < max(means) < 1.52


def test_contrast_keeps_the_gray_level():
    gray = np.full((4, 5, 3), 90, np.uint8)
    assert (augment(gray, 3, contrast=0.9) == 90).all()


def test_saturation_leaves_gray_alone():
    gray = np.full((4, 5, 3), 90, np.uint8)
    assert abs(augment(gray, 3, saturation=0.9).astype(int) - 90).max() <= 1


def test_lightness():
    gray = np.full((2, 2, 3), 90, np.uint8)
    assert (shift_hls(gray, 0, 20, 0) == 110).all() and (shift_hls(gray, 0, 255, 0) == 255).all()


def test_small_images_are_enlarged(image):
    assert augment(image, data_shape=(3, 20, 6)).shape == (20, 6, 3)
    assert augment(image, data_shape=(3, 6, 40)).shape == (6, 40, 3)


def test_gray_images(image):
    out = augment(image[:, :, 0], data_shape=(1, 4, 5), rand_crop=True, max_rotate_angle=10, pad=2)
    assert out.shape == (4, 5)


@pytest.mark.parametrize("parameters, message", [
    (dict(inter_method=7), "invalid inter_method: valid values are .* received 7"),
    (dict(inter_method=0, rotate=3), "together with rotation"),
    (dict(random_resized_crop=True, rand_crop=True), "random_resized_crop=True chooses size and place by itself"),
    (dict(random_resized_crop=True, min_random_area=2.0), "min_random_area=2.0 must not be above max_random_area=1.0"),
    (dict(random_resized_crop=True, max_aspect_ratio=1.0), "the aspect ratios must be above 0"),
    (dict(max_crop_size=4), "must both be given"),
    (dict(data_shape=(1, 4, 5), brightness=0.1), "need images of 3 channels"),
])
def test_parameters_that_do_not_fit(parameters, message):
    with pytest.raises(MXNetError, match=message):
        DefaultAugmenter(**{"data_shape": (3, 4, 5), **parameters})


def test_too_small_for_the_crop(image):
    with pytest.raises(MXNetError, match="at least max_crop_size=11 expected, received 10x12 pixels"):
        augment(image, max_crop_size=11, min_crop_size=2)
