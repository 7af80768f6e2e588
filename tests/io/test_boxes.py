"""Boxes in images and the labels that hold them."""
import numpy as np
import pytest

from mxnet.base import MXNetError
from mxnet.io.boxes import areas, areas_within, have_extent, split_label

BOXES = np.array([[0, 0, 0.5, 0.5], [0.25, 0.5, 1, 1], [0.5, 0.5, 0.25, 1]], np.float32)


def test_areas():
    assert areas(BOXES).tolist() == [0.25, 0.375, 0]
    assert areas_within(BOXES, (0.25, 0.25, 0.75, 0.75)).tolist() == [0.0625, 0.125, 0]
    assert areas_within(BOXES, np.array([0.6, 0, 1, 0.4])).tolist() == [0, 0, 0]


def test_extent():
    objects = np.concatenate([np.zeros((3, 1), np.float32), BOXES], axis=1)
    assert have_extent(objects).tolist() == [True, True, False]


def test_a_label_is_header_and_objects():
    header, objects = split_label(np.array([3, 6, 9, 1, 0, 0, 0.5, 0.5, 7, 2, 0.5, 0.5, 0.25, 1, 8], np.float32))
    assert header.tolist() == [3, 6, 9] and objects.tolist() == [[1, 0, 0, 0.5, 0.5, 7]]


@pytest.mark.parametrize("raw, message", [
    ([2, 5, 1, 0, 0, 1], "needs a header of 2 numbers and objects of 5 or more, received 6 numbers"),
    ([2, 5, 1, 0, 0, 1, 1, 7], "8 numbers does not fit its own header width 2 and object width 5"),
    ([1, 5, 1, 0, 0, 1, 1], "header width 1 and object width 5"),
    ([2, 4, 1, 0, 0, 1, 1], "header width 2 and object width 4"),
    ([12, 5, 1, 0, 0, 1, 1], "header width 12 and object width 5"),
])
def test_labels_of_another_form(raw, message):
    with pytest.raises(MXNetError, match=message):
        split_label(np.array(raw, np.float32))
