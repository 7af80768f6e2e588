"""Objects in images: arrays (objects, 5 or more) of class, left, top, right, bottom, with sides as fractions of the image's, and more."""
from collections.abc import Sequence
from typing import Union

import numpy as np

from .native import require

Window = Union[Sequence[float], np.ndarray]


def areas(boxes: np.ndarray) -> np.ndarray:
    """Return the areas of boxes (left, top, right, bottom)."""
    return np.maximum(0, boxes[:, 2] - boxes[:, 0]) * np.maximum(0, boxes[:, 3] - boxes[:, 1])


def areas_within(boxes: np.ndarray, window: Window) -> np.ndarray:
    """Return the areas of the intersections of boxes with the window (left, top, right, bottom)."""
    return areas(np.concatenate([np.maximum(boxes[:, :2], window[:2]), np.minimum(boxes[:, 2:], window[2:])], axis=1))


def have_extent(objects: np.ndarray) -> np.ndarray:
    """Return a mask of the objects with positive width and height."""
    return (objects[:, 3] > objects[:, 1]) & (objects[:, 4] > objects[:, 2])


def split_label(raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split a label ``header width, object width, ..., objects`` into its header and its valid objects.

    The header's width is at least 2, that of an object at least 5. Objects without extent are left out.

    Raises
    ------
    MXNetError
        If the label has another format.
    """
    require(raw.size >= 7, f"a detection label needs a header of 2 numbers and objects of 5 or more, received {raw.size} numbers")
    require(np.isfinite(raw[:2]).all(), f"a detection label's widths of header and objects must be numbers, received {raw[0]} and {raw[1]}")
    header, width = int(raw[0]), int(raw[1])
    require(header >= 2 and width >= 5 and header <= raw.size and (raw.size - header) % width == 0,
            f"a detection label of {raw.size} numbers does not fit its own header width {header} and object width {width}")
    objects = raw[header:].reshape(-1, width)
    return raw[:header], objects[have_extent(objects)]
