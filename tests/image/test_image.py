import random

import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError

# The numbers are those of MXNet 1.9.1.


def values(array):
    return array.asnumpy().round(3).tolist()


def close(array, expected):
    return np.allclose(array.asnumpy(), expected, atol=2e-3)


def test_reading(folder, pixels):
    path = str(folder / "0.png")
    with open(path, "rb") as f:
        content = f.read()
    for image in (mx.image.imread(path), mx.image.imdecode(content), mx.image.imdecode(bytearray(content)), mx.image.imdecode(memoryview(content)),
                  mx.image.imdecode(np.frombuffer(content, np.uint8)), mx.img.image.imread(path)):
        assert image.dtype == np.uint8 and (image.asnumpy() == pixels).all()
    assert (mx.image.imdecode(content, to_rgb=0).asnumpy() == pixels[:, :, ::-1]).all()
    assert mx.image.imread(path, flag=0).shape == (10, 12, 1)


def test_reading_what_is_no_image(folder):
    with pytest.raises(MXNetError, match="Decoding failed. Invalid image file"):
        mx.image.imread(str(folder / "bad.png"))
    with pytest.raises(MXNetError, match="Decoding failed"):
        mx.image.imdecode(b"")
    with pytest.raises(MXNetError, match="'/nowhere.png' couldn't open file: No such file"):
        mx.image.imread("/nowhere.png")
    with pytest.raises(ValueError, match="the bytes of an image file expected .*, received str; for a path call imread"):
        mx.image.imdecode("text")


def test_imresize(image):
    assert values(mx.image.imresize(image, 3, 2)) == [[[14, 54, 94], [34, 74, 114], [54, 94, 134]], [[29, 69, 109], [49, 89, 129], [69, 109, 149]]]
    assert values(mx.image.imresize(image, 3, 2, interp=0)[0]) == [[0, 40, 80], [20, 60, 100], [40, 80, 120]]
    assert values(mx.image.imresize(image.astype("float32"), 3, 2, 3)[0]) == [[13.5, 53.5, 93.5], [33.5, 73.5, 113.5], [53.5, 93.5, 133.5]]
    out = mx.nd.zeros((2, 3, 3), dtype="uint8")
    mx.image.imresize(image, 3, 2, out=out)
    assert values(out[0, 0]) == [14, 54, 94]
    with pytest.raises(MXNetError, match="w and h should be greater equal to 1"):
        mx.image.imresize(image, 0, 3)


def test_resize_short(image):
    small = mx.image.resize_short(image, 5, 1)
    assert small.shape == (5, 6, 3) and values(small[0, :2]) == [[4, 44, 84], [14, 54, 94]]
    assert mx.image.resize_short(image.transpose((1, 0, 2)), 20, 9).shape == (24, 20, 3)
    assert mx.image.resize_short(image, 5, 10).shape == (5, 6, 3)
    with pytest.raises(ValueError, match="Unknown interp method 7"):
        mx.image.resize_short(image, 5, 7)


def test_scale_down():
    assert mx.image.scale_down((640, 480), (720, 120)) == (640, 106)
    assert mx.image.scale_down((360, 1000), (480, 500)) == (360, 375)
    assert mx.image.scale_down((300, 400), (0, 0)) == (0, 0)


def test_fixed_crop(image, pixels):
    assert (mx.image.fixed_crop(image, 1, 2, 4, 5).asnumpy() == pixels[2:7, 1:5]).all()
    assert values(mx.image.fixed_crop(image, 1, 2, 4, 4, (2, 2), 1)) == [[[15, 55, 95], [25, 65, 105]], [[21, 61, 101], [31, 71, 111]]]


def test_center_crop(image, pixels):
    cropped, window = mx.image.center_crop(image, (5, 4))
    assert window == (3, 3, 5, 4) and (cropped.asnumpy() == pixels[3:7, 3:8]).all()
    assert mx.image.center_crop(image, (4, 20))[0].shape == (20, 4, 3)


def test_random_crop(image, pixels):
    random.seed(4)
    cropped, window = mx.image.random_crop(image, (5, 4))
    assert window == (3, 2, 5, 4) and (cropped.asnumpy() == pixels[2:6, 3:8]).all()
    assert [mx.image.random_crop(image, (5, 4))[1] for _ in range(2)] == [(1, 5, 5, 4), (6, 3, 5, 4)]
    enlarged, window = mx.image.random_crop(image, (20, 4))
    assert window == (0, 1, 12, 2) and enlarged.shape == (4, 20, 3)


def test_random_size_crop(image):
    random.seed(4)
    windows = [mx.image.random_size_crop(image, (5, 4), (0.1, 1.0), (0.75, 1.33))[1] for _ in range(3)]
    assert windows == [(6, 3, 5, 7), (6, 4, 5, 6), (0, 0, 11, 10)]
    assert mx.image.random_size_crop(image, (5, 4), (4.0, 5.0), (1, 1))[1] == (3, 3, 5, 4)
    with pytest.warns(DeprecationWarning, match="`min_area` is the old name of `area`"):
        mx.image.random_size_crop(image, (5, 4), 0.5, (1, 1), min_area=0.2)
    with pytest.raises(TypeError, match="random_size_crop: received the unknown arguments foo"):
        mx.image.random_size_crop(image, (5, 4), 0.5, (1, 1), foo=1)


def test_color_normalize(image):
    source = image.astype("float32")
    out = mx.image.color_normalize(source, mx.nd.array([1, 2, 3]), mx.nd.array([2, 4, 8]))
    assert values(out[0, 0]) == [-0.5, 9.5, 9.625] and values(source[0, 0]) == [-0.5, 9.5, 9.625]
    assert values(mx.image.color_normalize(image.astype("float32"), None)[0, 0]) == [0, 40, 80]


def test_copy_make_border(image):
    bordered = mx.image.copyMakeBorder(image, 1, 2, 3, 4, type=0, values=(1, 2, 3))
    assert bordered.shape == (13, 19, 3) and values(bordered[0, 0]) == [1, 2, 3] and values(bordered[1, 3]) == [0, 40, 80]


@pytest.fixture
def batch():
    return mx.nd.array(np.arange(210).reshape(2, 3, 5, 7) / 10.0)


def test_imrotate(batch):
    row = mx.image.imrotate(batch, mx.nd.array([20, -35]))[0, 1, 2]
    assert close(row, [4.2, 4.533, 4.867, 5.2, 5.533, 5.867, 6.2])
    assert close(mx.image.imrotate(batch, 15, zoom_in=True)[0, 0, 0], [0.116, 0.303, 0.512, 0.721, 0.93, 1.139, 1.348])
    single = mx.image.imrotate(batch[0], 15, zoom_out=True)
    assert single.shape == (3, 5, 7) and close(single[1, 1], [1.187, 3.598, 3.967, 4.336, 4.705, 5.074, 0.0])


def test_imrotate_errors(batch):
    with pytest.raises(ValueError, match="zoom_in or zoom_out expected, received both"):
        mx.image.imrotate(batch, 20, True, True)
    with pytest.raises(TypeError, match="float32 images expected, received uint8"):
        mx.image.imrotate(batch.astype("uint8"), 20)
    with pytest.raises(ValueError, match="an image .* or a batch .* expected, received shape"):
        mx.image.imrotate(batch[0, 0], 20)
    with pytest.raises(TypeError, match="one angle, a number, expected for one image, received NDArray"):
        mx.image.imrotate(batch[0], mx.nd.array([20]))
    with pytest.raises(ValueError, match="an angle for each of 2 images expected, received 1"):
        mx.image.imrotate(batch, mx.nd.array([20]))


def test_random_rotate(batch):
    np.random.seed(1)
    angles = np.random.uniform(-10, 10, size=2)
    np.random.seed(1)
    rotated = mx.image.random_rotate(batch, (-10, 10))
    assert np.allclose(rotated.asnumpy(), mx.image.imrotate(batch, mx.nd.array(angles)).asnumpy())
    assert mx.image.random_rotate(batch[0], (-10, 10)).shape == (3, 5, 7)
