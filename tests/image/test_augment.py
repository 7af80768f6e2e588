import random

import numpy as np
import pytest

import mxnet as mx
from mxnet import image as I
from mxnet.base import MXNetError

PCA = np.array([55.46, 4.794, 1.148])


@pytest.fixture
def floats(image):
    return image.astype("float32")


def test_colours_as_in_mxnet(floats):
    random.seed(1)
    np.random.seed(1)
    for augmenter, expected in ((I.BrightnessJitterAug(.3), [16.393, 47.618, 78.842]), (I.ContrastJitterAug(.3), [10.035, 58.373, 106.712]),
                                (I.SaturationJitterAug(.3), [15.841, 62.171, 108.502]), (I.HueJitterAug(.3), [36.255, 49.205, 121.776]),
                                (I.LightingAug(.5, PCA, np.eye(3)), [66.043, 59.534, 100.697]), (I.RandomGrayAug(1), [55.4, 55.4, 55.4]),
                                (I.ColorJitterAug(.1, .2, .3), [25.568, 66.065, 106.562])):
        out = augmenter(floats.copy())
        assert out.dtype == np.float32 and np.allclose(out[2, 3].asnumpy(), expected, atol=2e-3), type(augmenter).__name__


def test_shapes_and_places(image, pixels):
    assert I.ResizeAug(5)(image).shape == (5, 6, 3)
    assert I.ForceResizeAug((9, 8))(image).shape == (8, 9, 3)
    assert I.RandomCropAug((5, 4))(image).shape == (4, 5, 3)
    assert I.RandomSizedCropAug((5, 4), 0.3, (0.75, 1.33))(image).shape == (4, 5, 3)
    assert (I.CenterCropAug((5, 4))(image).asnumpy() == pixels[3:7, 3:8]).all()
    assert (I.HorizontalFlipAug(1)(image).asnumpy() == pixels[:, ::-1]).all()
    assert I.HorizontalFlipAug(0)(image) is image and I.RandomGrayAug(0)(image) is image
    assert I.CastAug()(image).dtype == np.float32


def test_sequence_and_order(image):
    assert I.SequentialAug([I.CastAug(), I.ResizeAug(5)])(image).shape == (5, 6, 3)
    random.seed(0)
    orders = set()

    class Note(I.Augmenter):
        def __call__(self, src):
            order.append(self._kwargs["n"])
            return src

    augmenter = I.RandomOrderAug([Note(n=1), Note(n=2)])
    for _ in range(20):
        order = []
        augmenter(image)
        orders.add(tuple(order))
    assert orders == {(1, 2), (2, 1)}


def test_dumps():
    assert I.ColorNormalizeAug(np.array([1, 2, 3]), None).dumps() == '["colornormalizeaug", {"mean": [1, 2, 3], "std": null}]'
    assert I.SequentialAug([I.CastAug(), I.ResizeAug(13)]).dumps() == [
        "sequentialaug", ['["castaug", {"type": "float32"}]', '["resizeaug", {"size": 13, "interp": 2}]']]
    assert I.RandomSizedCropAug((2, 3), 0.08, (0.75, 1.5)).dumps() == (
        '["randomsizedcropaug", {"size": [2, 3], "area": 0.08, "ratio": [0.75, 1.5], "interp": 2}]')


def test_create_augmenter(image):
    random.seed(3)
    augmenters = I.CreateAugmenter((3, 6, 6), rand_crop=True, rand_mirror=True, mean=True, std=True, brightness=.2)
    for augmenter in augmenters:
        image = augmenter(image)
    assert image.shape == (6, 6, 3) and np.allclose(image[0, 0].asnumpy(), [-1.842, -1.09, -0.202], atol=2e-3)


def test_create_augmenter_order():
    augmenters = I.CreateAugmenter((3, 20, 24), resize=30, rand_crop=True, rand_resize=True, rand_mirror=True, mean=True, brightness=.1, hue=.1,
                                   pca_noise=.1, rand_gray=.2)
    assert [type(a).__name__ for a in augmenters] == ["ResizeAug", "RandomSizedCropAug", "HorizontalFlipAug", "CastAug", "ColorJitterAug",
                                                      "HueJitterAug", "LightingAug", "RandomGrayAug", "ColorNormalizeAug"]
    assert augmenters[-1].dumps() == '["colornormalizeaug", {"mean": [123.68000030517578, 116.27999877929688, 103.52999877929688], "std": null}]'


def test_errors(image):
    with pytest.raises(MXNetError, match="rand_resize=True needs rand_crop=True"):
        I.CreateAugmenter((3, 4, 4), rand_resize=True)
    with pytest.raises(MXNetError, match="mean must be True, None or an array of 1 or 3 numbers"):
        I.CreateAugmenter((3, 4, 4), mean=np.zeros(2))
    with pytest.raises(NotImplementedError, match="Augmenter must implement __call__"):
        I.Augmenter()(image)
    with pytest.raises(TypeError, match="unexpected keyword arguments for `RandomSizedCropAug`: foo"):
        I.RandomSizedCropAug((2, 3), 0.08, (0.75, 1.5), foo=1)
    with pytest.warns(DeprecationWarning, match="`min_area` is the old name of `area`"):
        assert I.RandomSizedCropAug((2, 3), 0.08, (0.75, 1.5), min_area=0.5).area == 0.5




@pytest.mark.parametrize("dtype", ["uint8", "int32", "int8", "int64"])
@pytest.mark.parametrize("augmenter", [I.ContrastJitterAug(.5), I.SaturationJitterAug(.5), I.HueJitterAug(.5), I.LightingAug(.5, PCA, np.eye(3)),
                                       I.RandomGrayAug(1)])
def test_colours_of_integers_are_refused(augmenter, dtype, image):
    whole = image.astype(dtype)
    before = whole.asnumpy()
    with pytest.raises(MXNetError, match=rf"{type(augmenter).__name__} changes images of floats, received type {dtype}: convert it with "
                                         r"astype\('float32'\), or put CastAug\(\) before"):
        augmenter(whole)
    with pytest.raises(MXNetError, match="changes images of floats"):
        I.DetBorrowAug(augmenter)(whole, np.zeros((1, 5)))
    np.testing.assert_array_equal(whole.asnumpy(), before)


@pytest.mark.parametrize("augmenter", [I.HueJitterAug(.5), I.LightingAug(.5, PCA, np.eye(3)), I.RandomGrayAug(1)])
def test_colours_of_one_channel_are_refused(augmenter, floats):
    with pytest.raises(MXNetError, match=r"Aug: an image \(H, W, C\) of 3 channels expected, received shape \(10, 12, 1\)"):
        augmenter(floats[:, :, :1])


def test_contrast_of_one_channel(floats):
    random.seed(4)
    gray = mx.nd.array([[[10.], [30.]]])
    np.testing.assert_allclose(I.ContrastJitterAug(.5)(gray).asnumpy().ravel(), [12.6395187, 27.3604813], rtol=1e-6)  # as in MXNet


@pytest.mark.parametrize("dtype, tolerance", [("float16", .1), ("float64", 1e-4)])
def test_hue_and_gray_of_other_floats(floats, dtype, tolerance):
    for augmenter in (I.HueJitterAug(.3), I.RandomGrayAug(1)):
        results = []
        for image in (floats, floats.astype(dtype)):
            random.seed(1)
            results.append(augmenter(image))
        assert results[1].dtype == np.dtype(dtype)
        np.testing.assert_allclose(results[1].asnumpy(), results[0].asnumpy(), atol=tolerance)
