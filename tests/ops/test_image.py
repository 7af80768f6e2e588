"""Random image operators, decoding and errors; fixed values are compared in test_arrays_against_oracle.py."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError


@pytest.fixture
def photo():
    return mx.nd.array(np.arange(60).reshape(4, 5, 3) * 4, dtype="uint8")


def encoded(image, extension=".png"):
    import cv2
    return cv2.imencode(extension, image[..., ::-1])[1]


def test_decoding_gives_rgb():
    image = np.zeros((2, 3, 3), np.uint8)
    image[..., 0] = 200
    buffer = mx.nd.array(encoded(image).ravel(), dtype="uint8")
    assert mx.nd._internal._cvimdecode(buffer).asnumpy().tolist() == image.tolist()
    assert mx.nd._internal._cvimdecode(buffer, to_rgb=False).asnumpy()[0, 0].tolist() == [0, 0, 200]
    assert mx.nd._internal._cvimdecode(buffer, flag=0).shape == (2, 3, 1)


def test_reading_a_file(tmp_path):
    image = np.full((2, 3, 3), 7, np.uint8)
    path = tmp_path / "image.png"
    path.write_bytes(encoded(image).tobytes())
    assert mx.nd._internal._cvimread(str(path)).asnumpy().tolist() == image.tolist()
    path.write_bytes(b"no image")
    with pytest.raises(MXNetError, match="Invalid image file: .*image.png"):
        mx.nd._internal._cvimread(str(path))
    with pytest.raises(MXNetError, match="couldn't open file: No such file or directory"):
        mx.nd._internal._cvimread(str(tmp_path / "absent.png"))


@pytest.mark.parametrize("call, message", [
    (lambda x: mx.nd.image.to_tensor(mx.nd.ones((2, 2))), "image.to_tensor: `data` must be 3-D or 4-D"),
    (lambda x: mx.nd.image.normalize(mx.nd.ones((2, 2, 2))), "must have 1 or 3 elements"),
    (lambda x: mx.nd.image.normalize(mx.nd.ones((3, 2, 2)), mean=(1, 2)), "invalid mean: it must have 1 or 3 elements"),
    (lambda x: mx.nd.image.resize(x), "`size` must be one or two numbers above 0"),
    (lambda x: mx.nd.image.resize(x.astype("int32"), size=2), "expected an image of type uint8, int16, float32 or float64"),
    (lambda x: mx.nd.image.crop(x, x=3, y=0, width=3, height=1), "does not lie in an image of width 5 and height 4"),
    (lambda x: mx.nd.image.flip_left_right(mx.nd.ones((2, 2))), r"must have shape \(height, width, channels\), received \(2, 2\)"),
    (lambda x: mx.nd.image.random_brightness(x, min_factor=-1, max_factor=1), "should be greater equal to 0"),
    (lambda x: mx.nd.image.adjust_lighting(x, alpha=(1, 2)), "`alpha` must have 3 numbers"),
    (lambda x: mx.nd._internal._cvimdecode(mx.nd.zeros((10,), dtype="uint8")), "Decoding failed"),
    (lambda x: mx.nd._internal._cvimdecode(mx.nd.zeros((10,))), "input needs to be uint8 buffer"),
    (lambda x: mx.nd._internal._cvimresize(x, w=0, h=3), "w and h should be greater equal to 1"),
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


def test_random_changes_stay_within_their_limits(photo):
    bright = [mx.nd.image.random_brightness(photo.astype("float32"), min_factor=0.5, max_factor=0.75).asnumpy() for _ in range(20)]
    factors = [b[-1, -1, -1] / 236 for b in bright]
    assert 0.5 <= min(factors) < 0.6 < 0.65 < max(factors) <= 0.75
    unchanged = mx.nd.image.random_color_jitter(photo, brightness=0, contrast=0, saturation=0, hue=0)
    assert unchanged.asnumpy().tolist() == photo.asnumpy().tolist()
    jittered = mx.nd.image.random_color_jitter(photo, brightness=0.3, contrast=0.3, saturation=0.3, hue=0.3)
    assert jittered.shape == photo.shape and jittered.dtype == np.uint8 and (jittered.asnumpy() != photo.asnumpy()).any()
    lit = mx.nd.image.random_lighting(photo.astype("float32"), alpha_std=0.1).asnumpy() - photo.asnumpy()
    assert np.ptp(lit.reshape(-1, 3), 0).max() < 1e-4 and abs(lit).max() > 0  # one shift of each channel for all pixels


def test_shapes_without_data():
    image = mx.sym.var("image")
    assert mx.sym.image.to_tensor(image).infer_shape(image=(4, 5, 3))[1] == [(3, 4, 5)]
    assert mx.sym.image.resize(image, size=(7, 6)).infer_shape(image=(2, 4, 5, 3))[1] == [(2, 6, 7, 3)]
    assert mx.sym.image.to_tensor(image).infer_type(image="uint8")[1] == [np.float32]


def test_an_image_is_decoded_by_mxnets_old_names():
    cv2 = pytest.importorskip("cv2")
    picture = np.arange(4 * 5 * 3, dtype="uint8").reshape(4, 5, 3)
    data = cv2.imencode(".png", picture)[1].tobytes()
    found = mx.nd._internal._imdecode(None, 0, 1, 1, 3, 4, 3, len(data), str_img=data + b"rest")
    assert found.asnumpy().tolist() == picture[1:4, 1:3, ::-1].transpose(2, 0, 1)[None].astype("float32").tolist()
    with pytest.raises(mx.MXNetError, match="`size` is 9, and `str_img` has 3 bytes"):
        mx.nd._internal._imdecode(size=9, str_img=b"abc")
    node = mx.sym._internal._imdecode(mx.sym.var("mean"), index=0, x0=0, y0=0, x1=0, y1=0, c=3, size=7)
    with pytest.raises(mx.MXNetError, match="the 7 bytes of the image are not among the inputs of a graph; decode with mx.nd.imdecode"):
        node.eval(mean=mx.nd.zeros((3, 4, 5)))


@pytest.mark.parametrize("call", [mx.nd.image.flip_left_right, mx.nd.image.random_flip_top_bottom,
                                  lambda x: mx.nd.image.random_brightness(x, 0.5, 1.5), lambda x: mx.nd.image.crop(x, 0, 0, 1, 1)])
def test_images_have_one_or_three_channels(call):
    with pytest.raises(MXNetError, match="must hold 1 or 3 channels, received \\(2, 3, 4\\)"):
        call(mx.nd.ones((2, 3, 4)))


def test_border_of_a_fourth_channel_is_zero():
    image = mx.nd.array(np.arange(4).reshape(1, 1, 4), dtype="uint8")
    assert mx.nd._internal._cvcopyMakeBorder(image, top=1, bot=0, left=0, right=0, value=7).asnumpy().tolist() == [[[7, 7, 7, 0]], [[0, 1, 2, 3]]]


def test_attributes_of_opencv_are_checked():
    image = mx.nd.ones((2, 2, 3), dtype="uint8")
    with pytest.raises(MXNetError, match="`interp` must be one of OpenCV's methods 0 to 5, received 9"):
        mx.nd._internal._cvimresize(image, w=3, h=3, interp=9)
    with pytest.raises(MXNetError, match="`flag` must be an integer of at least 0, received -1"):
        mx.nd._internal._cvimdecode(mx.nd.ones((4,), dtype="uint8"), flag=-1)


def test_normalized_bytes_stay_bytes():
    image = mx.nd.array(np.arange(12).reshape(3, 2, 2) * 20, dtype="uint8")
    out = mx.nd.image.normalize(image, mean=(1.5, 2, 3), std=(2, 0.5, 4))
    assert out.dtype == np.uint8
    assert out.asnumpy().tolist() == [[[0, 9], [19, 29]], [[156, 196], [236, 20]], [[39, 44], [49, 54]]]
