"""Object detection: augmenters that transform boxes together with their images, and the iterator that applies them.

The objects of an image are an array (objects, 5 or more): class, left, top, right, bottom, each side as a fraction of the image's,
and optional additional columns.
"""
from __future__ import annotations

import logging
import math
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from .. import opencv
from ..base import MXNetError, numeric_types
from ..io.base import DataDesc
from ..io.boxes import areas, areas_within, have_extent, split_label
from ..ndarray import NDArray
from ..ops import host_arrays
from ..ops.image.constants import MEAN, STD
from ..suggestions import shortened
from .augment import Augmenter, CastAug, Described, ForceResizeAug, ResizeAug, colour_augmenters
from .image import check_per_channel, copyMakeBorder, fixed_crop, like
from .image_iter import ImageIter

__all__ = ["CreateDetAugmenter", "CreateMultiRandCropAugmenter", "DetAugmenter", "DetBorrowAug", "DetHorizontalFlipAug", "DetRandomCropAug",
           "DetRandomPadAug", "DetRandomSelectAug", "ImageDetIter"]

_ISOLATED = 16  # OpenCV's BORDER_ISOLATED: a border that ignores pixels outside of the array


def _range(name, value):
    """Return a range as a pair; a single number is used for both ends."""
    if isinstance(value, numeric_types):
        return value, value
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise MXNetError(f"{name} must be a number or a pair of numbers, received {shortened(value)}")
    return value


class DetAugmenter(Described):
    """The base class of augmenters for detection.

    Parameters
    ----------
    **kwargs
        The parameters for `dumps`.
    """

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        """Return the transformed image and its objects; both may be changed in place."""
        raise NotImplementedError(f"{type(self).__name__} must implement __call__")


class DetBorrowAug(DetAugmenter):
    """Applies an `Augmenter` that does not move objects.

    Parameters
    ----------
    augmenter : Augmenter
    """

    def __init__(self, augmenter: Augmenter):
        if not isinstance(augmenter, Augmenter):
            raise TypeError(f"Borrowing from invalid Augmenter: expected an mx.image.Augmenter, received {type(augmenter).__name__}")
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self) -> list[Any]:
        """Name and the text of the augmenter, as a list."""
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """Applies one of several augmenters, chosen randomly for each image.

    Parameters
    ----------
    aug_list : list of DetAugmenter
    skip_prob : float
        The probability of applying none.
    """

    def __init__(self, aug_list: Sequence[DetAugmenter] | DetAugmenter, skip_prob: float = 0):
        super().__init__(skip_prob=skip_prob)
        self.aug_list = list(aug_list) if isinstance(aug_list, (list, tuple)) else [aug_list]
        for augmenter in self.aug_list:
            if not isinstance(augmenter, DetAugmenter):
                raise ValueError(f"Allow DetAugmenter in list only, received {type(augmenter).__name__}")
        self.skip_prob = skip_prob if self.aug_list else 1

    def dumps(self) -> list[Any]:
        """Name and the texts of the augmenters, as a list."""
        return [type(self).__name__.lower(), [augmenter.dumps() for augmenter in self.aug_list]]

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        if random.random() < self.skip_prob:
            return src, label
        random.shuffle(self.aug_list)
        return self.aug_list[0](src, label)


class DetHorizontalFlipAug(DetAugmenter):
    """Mirror the image with probability `p`."""

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        if random.random() < self.p:
            src = like(src, src._data.flip(1))
            label[:, [1, 3]] = 1.0 - label[:, [3, 1]]
        return src, label


class _Reframing(DetAugmenter):
    """The base class of augmenters that replace the image's frame by a random window within ranges of aspect ratio and area."""

    def __init__(self, least_area, aspect_ratio_range, area_range, max_attempts, **kwargs):
        aspect_ratio_range = _range("aspect_ratio_range", aspect_ratio_range)
        area_range = _range("area_range", area_range)
        super().__init__(aspect_ratio_range=aspect_ratio_range, area_range=area_range, max_attempts=max_attempts, **kwargs)
        self.aspect_ratio_range, self.area_range, self.max_attempts = aspect_ratio_range, area_range, max_attempts
        self.enabled = area_range[1] > least_area and area_range[0] <= area_range[1] and 0 < aspect_ratio_range[0] <= aspect_ratio_range[1]
        if not self.enabled:
            warnings.warn(f"Skip {type(self).__name__} due to invalid parameters: area_range={area_range}, "
                          f"aspect_ratio_range={aspect_ratio_range}", stacklevel=3)

    def _find(self, label, height, width):
        """Return (x, y, width, height, objects in it) of a window, or None."""
        if not self.enabled or height <= 0 or width <= 0:
            return None
        area = height * width
        for _ in range(self.max_attempts):
            ratio = random.uniform(*self.aspect_ratio_range)
            size = self._size(ratio, self.area_range[0] * area, self.area_range[1] * area, height, width)
            crop = size and self._place(label, *size, height, width)
            if crop:
                return crop
        return None


class DetRandomCropAug(_Reframing):
    """Crop a random window that covers enough of the objects.

    Parameters
    ----------
    min_object_covered : float
        More than this fraction of every object that intersects the window must be inside of it.
    aspect_ratio_range : tuple of float
        Range of the window's width / height.
    area_range : tuple of float
        Range of the fraction of the image that the window covers.
    min_eject_coverage : float
        Objects with at most this fraction inside of the window are dropped.
    max_attempts : int
        The maximal number of attempts; if none finds a window, the image is not changed.
    """

    def __init__(self, min_object_covered: float | Sequence[float] = 0.1, aspect_ratio_range: float | Sequence[float] = (0.75, 1.33),
                 area_range: float | Sequence[float] = (0.05, 1.0), min_eject_coverage: float | Sequence[float] = 0.3, max_attempts: int = 50):
        super().__init__(0, aspect_ratio_range, area_range, max_attempts, min_object_covered=min_object_covered,
                         min_eject_coverage=min_eject_coverage)
        self.min_object_covered, self.min_eject_coverage = min_object_covered, min_eject_coverage
        # MXNet's order, for `dumps`.
        self._kwargs = {name: self._kwargs[name] for name in ("min_object_covered", "aspect_ratio_range", "area_range", "min_eject_coverage",
                                                              "max_attempts")}

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        crop = self._find(label, *src.shape[:2])
        if crop:
            x, y, width, height, label = crop
            src = fixed_crop(src, x, y, width, height)
        return src, label

    def _size(self, ratio, min_area, max_area, height, width):
        most = int(round(math.sqrt(max_area / ratio)))
        if round(most * ratio) > width:
            most = int((width + 0.4999999) / ratio)
        most = min(most, height)
        h = min(int(round(math.sqrt(min_area / ratio))), most)
        if h < most:
            h = random.randint(h, most)
        # Rounding may exceed the range by a pixel.
        w = int(round(h * ratio))
        if w * h < min_area:
            h += 1
            w = int(round(h * ratio))
        if w * h > max_area:
            h -= 1
            w = int(round(h * ratio))
        return (w, h) if min_area <= w * h <= max_area and 0 <= w <= width and 0 <= h <= height else None

    def _place(self, label, w, h, height, width):
        y = random.randint(0, height - h)
        x = random.randint(0, width - w)
        if w * h < 2:
            return None
        window = np.array([x / width, y / height, (x + w) / width, (y + h) / height])
        if not self._shows_enough(label[:, 1:5], window, width * height):
            return None
        objects = self._objects_in(label, window)
        return (x, y, w, h, objects) if len(objects) else None

    def _shows_enough(self, boxes, window, pixels):
        visible = boxes[areas(boxes) * pixels > 2]
        shares = areas_within(visible, window) / areas(visible)
        shares = shares[shares > 0]
        return shares.size > 0 and shares.min() > self.min_object_covered

    def _objects_in(self, label, window):
        size = window[2:] - window[:2]
        out = label.copy()
        out[:, 1:5] = np.clip((out[:, 1:5] - np.tile(window[:2], 2)) / np.tile(size, 2), 0, 1)
        # Boxes without an area divide by 0, and are dropped because of the result.
        with np.errstate(divide="ignore", invalid="ignore"):
            left = areas(out[:, 1:5]) * size.prod() / areas(label[:, 1:5])
        return out[have_extent(out) & (left > self.min_eject_coverage)]


class DetRandomPadAug(_Reframing):
    """Pad the image to a larger one of a constant colour, at a random position.

    Parameters
    ----------
    aspect_ratio_range : tuple of float
        Range of the larger image's width / height.
    area_range : tuple of float
        Range of its area, relative to the image's.
    max_attempts : int
        The maximal number of attempts; if none finds a size, the image is not changed.
    pad_val : float or tuple of float
        The colour.
    """

    def __init__(self, aspect_ratio_range: float | Sequence[float] = (0.75, 1.33), area_range: float | Sequence[float] = (1.0, 3.0),
                 max_attempts: int = 50, pad_val: Sequence[int] = (128, 128, 128)):
        pad_val = (pad_val,) * 3 if isinstance(pad_val, numeric_types) else pad_val
        super().__init__(1.0, aspect_ratio_range, area_range, max_attempts, pad_val=pad_val)
        self.pad_val = pad_val

    def __call__(self, src: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        height, width = src.shape[:2]
        place = self._find(label, height, width)
        if place:
            x, y, w, h, label = place
            src = copyMakeBorder(src, y, h - y - height, x, w - x - width, _ISOLATED, values=self.pad_val)
        return src, label

    def _size(self, ratio, min_area, max_area, height, width):
        h, most = int(round(math.sqrt(min_area / ratio))), int(round(math.sqrt(max_area / ratio)))
        if round(h * ratio) < width:
            h = int((width + 0.499999) / ratio)
        h = min(max(h, height), most)
        if h < most:
            h = random.randint(h, most)
        w = int(round(h * ratio))
        # Borders of one pixel are skipped.
        return (w, h) if h - height >= 2 and w - width >= 2 else None

    def _place(self, label, w, h, height, width):
        y = random.randint(0, h - height)
        x = random.randint(0, w - width)
        out = label.copy()
        out[:, [1, 3]] = (out[:, [1, 3]] * width + x) / w
        out[:, [2, 4]] = (out[:, [2, 4]] * height + y) / h
        return x, y, w, h, out


def CreateMultiRandCropAugmenter(min_object_covered: float | Sequence[float] = 0.1, aspect_ratio_range: float | Sequence[float] = (0.75, 1.33),
                                 area_range: float | Sequence[float] = (0.05, 1.0), min_eject_coverage: float | Sequence[float] = 0.3,
                                 max_attempts: int | Sequence[int] = 50, skip_prob: float = 0) -> DetRandomSelectAug:
    """Create several `DetRandomCropAug`, one of which is applied to each image.

    Each parameter may be a list; scalars, and lists with one entry, apply to all.

    Parameters
    ----------
    min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts
        As in `DetRandomCropAug`.
    skip_prob : float
        Probability of no cropping.

    Raises
    ------
    MXNetError
        If lists have different lengths.

    Example
    -------
    >>> import mxnet as mx
    >>> len(mx.image.CreateMultiRandCropAugmenter(min_object_covered=[0.1, 0.5, 0.9]).aug_list)
    3
    """
    lists = [value if isinstance(value, list) else [value]
             for value in (min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts)]
    count = max(map(len, lists))
    if any(len(values) not in (1, count) for values in lists):
        raise MXNetError(f"CreateMultiRandCropAugmenter: lists must have the same length, received lengths {[len(values) for values in lists]}")
    lists = [values * count if len(values) == 1 else values for values in lists]
    return DetRandomSelectAug([DetRandomCropAug(*values) for values in zip(*lists, strict=True)], skip_prob=skip_prob)


def CreateDetAugmenter(data_shape: Sequence[int], resize: int = 0, rand_crop: float = 0, rand_pad: float = 0, rand_gray: float = 0,
                       rand_mirror: bool = False, mean: Any = None, std: Any = None, brightness: float = 0, contrast: float = 0,
                       saturation: float = 0, pca_noise: float = 0, hue: float = 0, inter_method: int = 2,
                       min_object_covered: float | Sequence[float] = 0.1, aspect_ratio_range: Sequence[float] = (0.75, 1.33),
                       area_range: Sequence[float] = (0.05, 3.0), min_eject_coverage: float | Sequence[float] = 0.3,
                       max_attempts: int | Sequence[int] = 50, pad_val: Sequence[int] = (127, 127, 127)) -> list[DetAugmenter]:
    """Create the standard list of augmenters for training a detector.

    Parameters
    ----------
    data_shape : tuple of int
        (channels, height, width) of the result.
    resize : int
        If above 0, first resize the shorter side to this number of pixels.
    rand_crop, rand_pad, rand_gray : float
        Probabilities of cropping, of padding, and of a gray image.
    rand_mirror : bool
        Mirror half of the images.
    mean, std, brightness, contrast, saturation, pca_noise, hue, inter_method
        As in `CreateAugmenter`.
    min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts
        As in `CreateMultiRandCropAugmenter`; the upper end of `area_range` is for padding too.
    pad_val : tuple of float
        Colour of the padding.
    """
    augmenters = [DetBorrowAug(ResizeAug(resize, inter_method))] if resize > 0 else []
    if rand_crop > 0:
        augmenters.append(CreateMultiRandCropAugmenter(min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts,
                                                       skip_prob=1 - rand_crop))
    if rand_mirror:
        augmenters.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:
        padding = DetRandomPadAug(aspect_ratio_range, (1.0, area_range[1]), max_attempts, pad_val)
        augmenters.append(DetRandomSelectAug([padding], 1 - rand_pad))
    plain = [ForceResizeAug((data_shape[2], data_shape[1]), inter_method), CastAug(),
             *colour_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std)]
    return augmenters + [DetBorrowAug(augmenter) for augmenter in plain]


class ImageDetIter(ImageIter):
    """Iterates over batches of images with boxes of objects; see `ImageIter` for the sources.

    The labels of an image are ``header width, object width, ..., objects``: the width of the header, at least 2, of an object, at
    least 5, the rest of the header, and the objects. A batch has them as (batch size, maximal objects of an image, object
    width), padded with -1. Images without a valid object are skipped.

    Parameters
    ----------
    batch_size : int
    data_shape : tuple of int
        (3, height, width).
    path_imgrec, path_imglist, path_root, path_imgidx, shuffle, part_index, num_parts, imglist, last_batch_handle
        As in `ImageIter`.
    aug_list : list of DetAugmenter, optional
        By default that of `CreateDetAugmenter`.
    data_name, label_name : str
    **kwargs
        For `CreateDetAugmenter`.

    Raises
    ------
    MXNetError
        As in `ImageIter`, and if the labels have another form.
    """

    def __init__(self, batch_size: int, data_shape: Sequence[int], path_imgrec: str | None = None, path_imglist: str | None = None,
                 path_root: str | None = None, path_imgidx: str | None = None, shuffle: bool = False, part_index: int = 0, num_parts: int = 1,
                 aug_list: list[Any] | None = None, imglist: list[Any] | None = None, data_name: str = "data", label_name: str = "label",
                 last_batch_handle: str = "pad", **kwargs: Any):
        super().__init__(batch_size=batch_size, data_shape=data_shape, path_imgrec=path_imgrec, path_imglist=path_imglist, path_root=path_root,
                         path_imgidx=path_imgidx, shuffle=shuffle, part_index=part_index, num_parts=num_parts, aug_list=[], imglist=imglist,
                         data_name=data_name, label_name=label_name, last_batch_handle=last_batch_handle)
        self.auglist = CreateDetAugmenter(self.data_shape, **kwargs) if aug_list is None else aug_list
        self.label_shape = self._estimate_label_shape()
        self.provide_label = [DataDesc(label_name, (batch_size, *self.label_shape))]

    def _estimate_label_shape(self):
        """Return (maximal objects of an image, object width) of the data."""
        count = width = 0
        self.hard_reset()
        while True:
            try:
                label, _ = self.next_sample()
            except StopIteration:
                break
            objects = self._parse_label(label)
            count, width = max(count, len(objects)), objects.shape[1]
        self.hard_reset()
        if not count:
            raise MXNetError("ImageDetIter: at least one image expected, received none")
        return count, width

    def _parse_label(self, label):
        """Return the objects of a label, without those of no extent.

        Raises
        ------
        MXNetError
            If it has another format, or no valid object.
        """
        raw = np.asarray(label.asnumpy() if isinstance(label, NDArray) else label, np.float32).ravel()
        try:
            _, objects = split_label(raw)
        except MXNetError as error:
            raise MXNetError(f"image {self._sample}: {error}") from None
        if not len(objects):
            raise MXNetError(f"image {self._sample} has no object with an area")
        return objects

    def _check_valid_label(self, label):
        if label.ndim != 2 or label.shape[1] < 5:
            raise MXNetError(f"Label with shape (1+, 5+) required, {label.shape} received.")
        if not (have_extent(label) & (label[:, 0] >= 0)).any():
            raise MXNetError(f"Invalid label occurs: an object with an area and a class from 0 on expected, received {label.tolist()!r:.120}")

    def _new_batch(self):
        return torch.zeros(self.provide_data[0].shape), torch.full(self.provide_label[0].shape, -1.0)

    def _store(self, data, label, i, sample):
        values, content = sample
        image = self.imdecode(content)
        try:
            self.check_valid_image([image])
            image, objects = self.augmentation_transform(image, self._parse_label(values))
            self._check_valid_label(objects)
        except RuntimeError as error:
            logging.debug("Invalid image, skipping:  %s", error)
            return False
        data[i] = self.postprocess_data(image)._data
        label[i] = -1
        label[i, :len(objects)] = host_arrays.as_tensor(objects)
        return True

    def augmentation_transform(self, data: NDArray, label: np.ndarray) -> tuple[NDArray, np.ndarray]:
        """Apply the augmenters to an image and its objects."""
        for augmenter in self.auglist:
            data, label = augmenter(data, label)
        return data, label

    def check_label_shape(self, label_shape: Sequence[int]) -> None:
        """Raise an error if the data don't fit into `label_shape`."""
        if len(label_shape) != 2:
            raise ValueError(f"label_shape must be (objects, width of an object), received {label_shape}")
        if label_shape[0] < self.label_shape[0]:
            raise ValueError(f"label_shape must leave room for {self.label_shape[0]} objects, received {label_shape[0]}")
        if label_shape[1] != self.label_shape[1]:
            raise ValueError(f"label_shape object width inconsistent: {self.label_shape[1]} vs {label_shape[1]}.")

    def reshape(self, data_shape: Sequence[int] | None = None, label_shape: Sequence[int] | None = None) -> None:
        """Change the shape of the images, or the number of objects of a batch's labels.

        Raises
        ------
        ValueError
            If the data don't fit into the new shape.
        """
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.data_shape = tuple(data_shape)
            self.provide_data = [DataDesc(self.provide_data[0].name, (self.batch_size, *data_shape))]
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.label_shape = tuple(label_shape)
            self.provide_label = [DataDesc(self.provide_label[0].name, (self.batch_size, *label_shape))]

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> ImageDetIter:
        """Set the label shapes of two iterators, such as those for training and validation, to the larger number of objects.

        Parameters
        ----------
        it : ImageDetIter
        verbose : bool
            Log the shape if it changed.

        Returns
        -------
        ImageDetIter
            `it`.
        """
        if not isinstance(it, ImageDetIter):
            raise MXNetError(f"sync_label_shape: expected an ImageDetIter, received {type(it).__name__}")
        if it.label_shape[1] != self.label_shape[1]:
            raise MXNetError(f"sync_label_shape: object width mismatch: {self.label_shape[1]} and {it.label_shape[1]}")
        most = max(self.label_shape[0], it.label_shape[0])
        if verbose and self.label_shape != it.label_shape:
            logging.info("Resized label_shape to (%d, %d).", most, self.label_shape[1])
        for iterator in (self, it):
            if iterator.label_shape[0] < most:
                iterator.reshape(label_shape=(most, iterator.label_shape[1]))
        return it

    def draw_next(self, color: Sequence[int] | None = None, thickness: int = 2, mean: Any = None, std: Any = None, clip: bool = True,
                  waitKey: int | None = None, window_name: str = "draw_next", id2labels: Mapping[int, str] | None = None) -> Iterator[np.ndarray]:
        """Yield the images one by one, with their boxes drawn.

        Parameters
        ----------
        color : tuple, optional
            (red, green, blue); random for each box by default.
        thickness : int
            The thickness of the lines, in pixels.
        mean, std : True or array, optional
            The mean and the deviation of the augmenters, which are reverted.
        clip : bool
            Clip values to 0 and 255.
        waitKey : int, optional
            Show each image in a window for this time in milliseconds, 0 until a key is pressed. Needs OpenCV with a display.
        window_name : str
        id2labels : dict, optional
            Names of classes, to be written into the boxes.

        Yields
        ------
        numpy.ndarray
            uint8, (height, width, 3), in BGR order.
        """
        cv2 = opencv.load()
        mean, std = check_per_channel("mean", mean, MEAN), check_per_channel("std", std, STD)
        while True:
            try:
                label, content = self.next_sample()
            except StopIteration:
                return
            image = self.imdecode(content)
            try:
                self.check_valid_image([image])
                objects = self._parse_label(label)
            except RuntimeError as error:
                logging.debug("Invalid image, skipping:  %s", error)
                continue
            image, objects = self.augmentation_transform(image, objects)
            pixels = image.asnumpy() * (1 if std is None else std) + (0 if mean is None else mean)
            pixels = np.ascontiguousarray(pixels[:, :, ::-1])
            picture = (np.clip(pixels, 0, 255) if clip else pixels).astype(np.uint8)
            for one in objects:
                self._draw(picture, one, color, thickness, id2labels or {})
            if waitKey is not None:
                try:
                    cv2.imshow(window_name, picture)
                    cv2.waitKey(waitKey)
                except cv2.error as error:
                    raise MXNetError(f"draw_next(waitKey={waitKey}) cannot open a window: {error.err or error}; leave waitKey out") from error
            yield picture

    @staticmethod
    def _draw(picture, one, color, thickness, names):
        cv2 = opencv.load()
        height, width = picture.shape[:2]
        left, top, right, bottom = (int(share * side) for share, side in zip(one[1:5], (width, height) * 2, strict=True))
        if left < 0:
            return
        colour = tuple(color[::-1]) if color else tuple(np.random.rand(3) * 255)
        cv2.rectangle(picture, (left, top), (right, bottom), colour, thickness)
        name = names.get(int(one[0]))
        if name is not None:
            font = cv2.FONT_HERSHEY_SIMPLEX
            text_height = cv2.getTextSize(name, font, 0.5, 2)[0][1]
            cv2.putText(picture, name, (left + 5, top + text_height + 5), font, 0.5, (255, 255, 255), 2)
