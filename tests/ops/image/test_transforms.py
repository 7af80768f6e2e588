"""Transforms of images: random flips and errors; fixed values are compared in test_arrays_against_oracle.py."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError


@pytest.fixture
def photo():
    return mx.nd.array(np.arange(60).reshape(4, 5, 3) * 4, dtype="uint8")


@pytest.mark.parametrize("call, message", [
    (lambda x: mx.nd.image.to_tensor(mx.nd.ones((2, 2))), "image.to_tensor: `data` must be 3-D or 4-D"),
    (lambda x: mx.nd.image.normalize(mx.nd.ones((2, 2, 2))), "must have 1 or 3 elements"),
    (lambda x: mx.nd.image.normalize(mx.nd.ones((3, 2, 2)), mean=(1, 2)), "invalid mean: it must have 1 or 3 elements"),
    (lambda x: mx.nd.image.resize(x), "`size` must be one or two numbers above 0"),
    (lambda x: mx.nd.image.resize(x.astype("int32"), size=2), "expected an image of type uint8, int16, float32 or float64"),
    (lambda x: mx.nd.image.crop(x, x=3, y=0, width=3, height=1), "does not lie in an image of width 5 and height 4"),
    (lambda x: mx.nd.image.flip_left_right(mx.nd.ones((2, 2))), r"an image \(H, W, C\) expected, received shape \(2, 2\)"),
])
def test_errors(photo, call, message):
    with pytest.raises(MXNetError, match=message):
        call(photo)


def test_random_flips_come_up_both_ways_and_follow_the_seed(photo):
    mx.random.seed(3)
    first = [mx.nd.image.random_flip_left_right(photo).asnumpy()[0, 0, 0] for _ in range(20)]
    assert set(first) == {0, 48}
    mx.random.seed(3)
    assert first == [mx.nd.image.random_flip_left_right(photo).asnumpy()[0, 0, 0] for _ in range(20)]
    assert {mx.nd.image.random_flip_top_bottom(photo).asnumpy()[0, 0, 0] for _ in range(20)} == {0, 180}


def test_shapes_without_data():
    image = mx.sym.var("image")
    assert mx.sym.image.to_tensor(image).infer_shape(image=(4, 5, 3))[1] == [(3, 4, 5)]
    assert mx.sym.image.resize(image, size=(7, 6)).infer_shape(image=(2, 4, 5, 3))[1] == [(2, 6, 7, 3)]
    assert mx.sym.image.to_tensor(image).infer_type(image="uint8")[1] == [np.float32]


@pytest.mark.parametrize("call", [mx.nd.image.flip_left_right, mx.nd.image.random_flip_top_bottom,
                                  lambda x: mx.nd.image.random_brightness(x, 0.5, 1.5), lambda x: mx.nd.image.crop(x, 0, 0, 1, 1)])
def test_images_have_one_or_three_channels(call):
    with pytest.raises(MXNetError, match="must hold 1 or 3 channels, received \\(2, 3, 4\\)"):
        call(mx.nd.ones((2, 3, 4)))


def test_normalized_bytes_stay_bytes():
    image = mx.nd.array(np.arange(12).reshape(3, 2, 2) * 20, dtype="uint8")
    out = mx.nd.image.normalize(image, mean=(1.5, 2, 3), std=(2, 0.5, 4))
    assert out.dtype == np.uint8
    assert out.asnumpy().tolist() == [[[0, 9], [19, 29]], [[156, 196], [236, 20]], [[39, 44], [49, 54]]]
