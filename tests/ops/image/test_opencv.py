"""Decoding, resizing and padding by OpenCV: orders of channels, files, errors."""
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
    (lambda x: mx.nd._internal._cvimdecode(mx.nd.zeros((10,), dtype="uint8")), "Decoding failed"),
    (lambda x: mx.nd._internal._cvimdecode(mx.nd.zeros((10,))), "input needs to be uint8 buffer"),
    (lambda x: mx.nd._internal._cvimresize(x, w=0, h=3), "w and h should be greater equal to 1"),
])
def test_errors(photo, call, message):
    with pytest.raises(MXNetError, match=message):
        call(photo)


def test_an_image_is_decoded_by_mxnets_old_names():
    cv2 = pytest.importorskip("cv2")
    picture = np.arange(4 * 5 * 3, dtype="uint8").reshape(4, 5, 3)
    data = cv2.imencode(".png", picture)[1].tobytes()
    found = mx.nd._internal._imdecode(None, 0, 1, 1, 3, 4, 3, len(data), str_img=data + b"rest")
    assert found.asnumpy().tolist() == picture[1:4, 1:3, ::-1].transpose(2, 0, 1)[None].astype("float32").tolist()
    with pytest.raises(mx.MXNetError, match="`size` how many of them are the file, .* received b'abc' and 9"):
        mx.nd._internal._imdecode(size=9, str_img=b"abc")
    node = mx.sym._internal._imdecode(mx.sym.var("mean"), index=0, x0=0, y0=0, x1=0, y1=0, c=3, size=7)
    with pytest.raises(mx.MXNetError, match="the 7 bytes of the image are not among the inputs of a graph; decode with mx.nd.imdecode"):
        node.eval(mean=mx.nd.zeros((3, 4, 5)))


def test_border_of_a_fourth_channel_is_zero():
    image = mx.nd.array(np.arange(4).reshape(1, 1, 4), dtype="uint8")
    assert mx.nd._internal._cvcopyMakeBorder(image, top=1, bot=0, left=0, right=0, value=7).asnumpy().tolist() == [[[7, 7, 7, 0]], [[0, 1, 2, 3]]]


def test_attributes_of_opencv_are_checked():
    image = mx.nd.ones((2, 2, 3), dtype="uint8")
    with pytest.raises(MXNetError, match="`interp` must be one of OpenCV's methods 0 to 5, received 9"):
        mx.nd._internal._cvimresize(image, w=3, h=3, interp=9)
    with pytest.raises(MXNetError, match="`flag` must be an integer of at least 0, received -1"):
        mx.nd._internal._cvimdecode(mx.nd.ones((4,), dtype="uint8"), flag=-1)


def test_an_empty_image_has_no_pixels_to_repeat():
    with mx.np_shape():
        empty = mx.nd.zeros((4, 0, 3), dtype="uint8")
        with pytest.raises(mx.MXNetError, match=r"an image of shape \(4, 0, 3\) has no pixels that a border of type 4 could repeat"):
            mx.nd._internal._cvcopyMakeBorder(empty, top=1, bot=2, left=0, right=1, type=4)
        assert mx.nd._internal._cvcopyMakeBorder(empty, top=0, bot=0, left=0, right=2, value=7).asnumpy().tolist() == [[[7] * 3] * 2] * 4


def test_integers_of_32_bits_are_resized_to_their_nearest_pixels():
    image = mx.nd.array(np.arange(24).reshape(4, 6, 1) * 1000000, dtype="int32")
    expected = [0, 2000000, 4000000, 12000000, 14000000, 16000000]
    assert mx.image.imresize(image, 3, 2, 0).asnumpy().ravel().tolist() == expected
    assert mx.nd.image.resize(image, size=(3, 2), interp=0).asnumpy().ravel().tolist() == expected
    with pytest.raises(MXNetError, match=r"uint8, int16, float32 or float64 \(with interp=0 int32, too\), received int32; convert with astype"):
        mx.image.imresize(image, 3, 2, 1)


@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_borders_keep_the_type(dtype):
    with pytest.raises(MXNetError, match=f"copyMakeBorder: OpenCV has no images of type {dtype}"):
        mx.image.copyMakeBorder(mx.nd.ones((2, 2, 1)).astype(dtype), 1, 1, 1, 1)
