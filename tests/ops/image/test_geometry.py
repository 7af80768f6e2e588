"""Sizes of resized images, and OpenCV's numbers for MXNet's methods of resizing."""
import random

import pytest

from mxnet.ops.image.geometry import interpolation, shorter_side


def test_shorter_side():
    assert shorter_side(10, 20, 5) == (5, 10) and shorter_side(21, 10, 5) == (10, 5) and shorter_side(7, 7, 3) == (3, 3)


def test_methods_of_opencv_and_by_sizes():
    assert [interpolation(m, (4, 4), (8, 8)) for m in (0, 1, 2, 3, 4, 9)] == [0, 1, 2, 3, 4, 2]
    assert interpolation(9, (4, 4), (2, 2)) == 3 and interpolation(9, (4, 4), (2, 8)) == 1 and interpolation(9, (4, 4), (4, 4)) == 1
    assert interpolation(9) == 2


def test_a_random_method_comes_from_the_given_generator():
    rng = random.Random(0)
    assert {interpolation(10, rng=rng) for _ in range(99)} == {0, 1, 2, 3, 4}
    random.seed(5)
    expected = [random.randint(0, 4) for _ in range(20)]  # what MXNet draws
    random.seed(5)
    assert [interpolation(10) for _ in range(20)] == expected
    assert [interpolation(10, rng=random.Random(5)) for _ in range(3)] == expected[:1] * 3


def test_unknown_method():
    with pytest.raises(ValueError, match="Unknown interp method 7: expected 0 to 4, 9 or 10"):
        interpolation(7)
