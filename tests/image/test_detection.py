import random

import cv2
import numpy as np
import pytest

import mxnet as mx
from mxnet import image as I
from mxnet.base import MXNetError

FIRST = [2, 5, 1, 0.125, 0.25, 0.5, 0.75]
SECOND = [2, 5, 2, 0.25, 0.25, 0.75, 0.5, 3, 0.5, 0.5, 1, 1]


def _nd(array):
    return mx.nd.array(array, dtype="uint8")


@pytest.fixture
def listed():
    return [[*FIRST, "0.png"], [*SECOND, "1.png"], [*FIRST, "2.png"]]


def test_batches(folder, listed):
    it = I.ImageDetIter(2, (3, 8, 8), imglist=listed, path_root=str(folder))
    assert it.provide_data == [("data", (2, 3, 8, 8))] and it.provide_label == [("label", (2, 2, 5))] and it.label_shape == (2, 5)
    for _ in range(2):
        first, last = it
        assert first.label[0].asnumpy().tolist() == [[FIRST[2:], [-1] * 5], [SECOND[2:7], SECOND[7:]]]
        assert last.pad == 1 and last.label[0].asnumpy()[1].tolist() == [FIRST[2:], [-1] * 5]
        it.reset()


def test_images_without_objects_left_are_skipped(folder, listed):
    class Dropping(I.DetAugmenter):
        def __call__(self, src, label):
            return src, label if label[0, 0] == 2 else label[:0]

    it = I.ImageDetIter(1, (3, 8, 8), imglist=listed, path_root=str(folder),
                        aug_list=[Dropping(), I.DetBorrowAug(I.ForceResizeAug((8, 8)))])
    assert [b.label[0].asnumpy()[0, 0, 0] for b in it] == [2]


def test_flip(image, pixels):
    objects = np.array([FIRST[2:]], np.float32)
    flipped, label = I.DetHorizontalFlipAug(1)(image, objects)
    assert (flipped.asnumpy() == pixels[:, ::-1]).all() and label.tolist() == [[1, 0.5, 0.25, 0.875, 0.75]]


@pytest.mark.parametrize("augmenter", [I.DetRandomCropAug(0.2, (0.6, 1.6), (0.2, 0.9)), I.DetRandomPadAug((0.6, 1.6), (1.2, 3.0), pad_val=0)])
def test_boxes_move_with_the_image(augmenter):
    """A white box on black must be where the label says."""
    picture = np.zeros((64, 80, 3), np.uint8)
    picture[16:48, 20:60] = 255
    random.seed(0)
    sizes = set()
    for _ in range(40):
        image, label = augmenter(_nd(picture), np.array([[1, 0.25, 0.25, 0.75, 0.75]]))
        rows, columns = np.where(image.asnumpy()[:, :, 0] > 127)
        found = [columns.min() / image.shape[1], rows.min() / image.shape[0], (columns.max() + 1) / image.shape[1], (rows.max() + 1) / image.shape[0]]
        assert np.abs(label[0, 1:] - found).max() < 0.03
        sizes.add(image.shape[:2])
    assert len(sizes) > 15


def test_crop_limits():
    random.seed(1)
    augmenter = I.DetRandomCropAug(0.9, (1, 1), (0.5, 0.5))
    objects = np.array([[1, 0.0, 0.0, 0.1, 0.1]])
    for _ in range(20):
        image, label = augmenter(_nd(np.zeros((50, 50, 3))), objects)
        assert image.shape[0] in (35, 50) and label[0, 1] < 0.02


def test_select():
    chosen = I.DetRandomSelectAug([I.DetHorizontalFlipAug(1)], skip_prob=1)
    image = _nd(np.zeros((4, 4, 3)))
    assert chosen(image, None)[0] is image
    assert I.DetRandomSelectAug([]).skip_prob == 1
    with pytest.raises(ValueError, match="Allow DetAugmenter in list only, received int"):
        I.DetRandomSelectAug([3])
    with pytest.raises(TypeError, match="Borrowing from invalid Augmenter: .* received int"):
        I.DetBorrowAug(3)


def test_create():
    augmenters = I.CreateDetAugmenter((3, 30, 30), resize=50, rand_crop=.9, rand_pad=.9, rand_gray=.1, rand_mirror=True, mean=True, std=True,
                                      brightness=.1, pca_noise=.1, hue=.1, min_object_covered=[.1, .3], area_range=(.1, 4.))
    assert [type(getattr(a, "augmenter", a)).__name__ for a in augmenters] == [
        "ResizeAug", "DetRandomSelectAug", "DetHorizontalFlipAug", "DetRandomSelectAug", "ForceResizeAug", "CastAug", "ColorJitterAug",
        "HueJitterAug", "LightingAug", "RandomGrayAug", "ColorNormalizeAug"]
    # The texts of MXNet 1.9.1.
    assert augmenters[1].dumps()[1][1] == ('["detrandomcropaug", {"min_object_covered": 0.3, "aspect_ratio_range": [0.75, 1.33], '
                                           '"area_range": [0.1, 4.0], "min_eject_coverage": 0.3, "max_attempts": 50}]')
    assert augmenters[3].dumps()[1] == ['["detrandompadaug", {"aspect_ratio_range": [0.75, 1.33], "area_range": [1.0, 4.0], "max_attempts": 50, '
                                        '"pad_val": [127, 127, 127]}]']
    assert augmenters[-1].dumps() == ["detborrowaug", '["colornormalizeaug", {"mean": [123.68, 116.28, 103.53], "std": [58.395, 57.12, 57.375]}]']


def test_invalid_ranges():
    with pytest.warns(UserWarning, match=r"Skip DetRandomCropAug due to invalid parameters: area_range=\(0.9, 0.1\)"):
        assert not I.DetRandomCropAug(area_range=(0.9, 0.1)).enabled
    with pytest.warns(UserWarning, match="Skip DetRandomPadAug"):
        I.DetRandomPadAug(area_range=1.0)
    with pytest.raises(MXNetError, match="area_range must be a number or a pair"):
        I.DetRandomCropAug(area_range=(1, 2, 3))
    with pytest.raises(MXNetError, match=r"lists must have the same length, received lengths \[2, 1, 3, 1, 1\]"):
        I.CreateMultiRandCropAugmenter([.1, .2], area_range=[(0, 1)] * 3)


@pytest.mark.parametrize("label, message", [
    ([2, 5, 1, .1, .2, .3, .4, .5], "image filename: 0.png: a detection label of 8 numbers does not fit its own header width 2 and object width 5"),
    ([2, 5, 1], "image filename: 0.png: a detection label needs a header of 2 numbers and objects of 5 or more, received 3 numbers"),
    ([2, 5, 1, .5, .5, .3, .4], "image filename: 0.png has no object with an area"),
])
def test_labels_of_another_form(folder, label, message):
    with pytest.raises(MXNetError, match=message):
        I.ImageDetIter(1, (3, 8, 8), imglist=[[*label, "0.png"]], path_root=str(folder))


def test_reshape_and_sync(folder, listed):
    wide = I.ImageDetIter(1, (3, 8, 8), imglist=listed, path_root=str(folder))
    narrow = I.ImageDetIter(1, (3, 8, 8), imglist=listed[:1], path_root=str(folder))
    assert narrow.label_shape == (1, 5)
    assert wide.sync_label_shape(narrow) is narrow and narrow.label_shape == (2, 5)
    narrow.reshape((3, 6, 6), (4, 5))
    assert narrow.provide_data == [("data", (1, 3, 6, 6))] and narrow.provide_label == [("label", (1, 4, 5))]
    for shape, message in (((1, 5), "room for 4 objects, received 1"), ((4, 6), "object width inconsistent: 5 vs 6"), ((4,), r"received \(4,\)")):
        with pytest.raises(ValueError, match=message):
            narrow.reshape(label_shape=shape)
    with pytest.raises(MXNetError, match="expected an ImageDetIter, received list"):
        wide.sync_label_shape([])


def test_drawing(folder, listed):
    it = I.ImageDetIter(1, (3, 40, 40), imglist=listed, path_root=str(folder), mean=True, std=True)
    pictures = list(it.draw_next(color=(255, 0, 0), thickness=1, mean=True, std=True, id2labels={1: "cat"}))
    assert len(pictures) == 3 and pictures[0].shape == (40, 40, 3) and pictures[0].dtype == np.uint8
    assert pictures[0][10, 10].tolist() == [0, 0, 255]  # the upper edge of the first box, with blue first


def test_showing_needs_a_display(folder, listed):
    it = I.ImageDetIter(1, (3, 40, 40), imglist=listed, path_root=str(folder))
    if "GUI:                           NONE" in cv2.getBuildInformation():
        with pytest.raises(MXNetError, match="cannot open a window"):
            next(it.draw_next(waitKey=1))
