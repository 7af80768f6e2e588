"""The augmentation of `ImageRecordIter`: resizing, affine transformation, padding, cropping and colour, on OpenCV images.

Images are uint8 arrays in OpenCV's layout: (height, width) or (height, width, channels) in BGR order. All random numbers
are drawn from the caller's `random.Random`, so that an augmentation can be reproduced.
"""
import dataclasses
import math
from random import Random
from typing import Optional

import numpy as np

from .. import opencv
from ..kernels.image.transform import Cut
from ..ops.image.constants import EIGENVALUES, EIGENVECTORS
from ..ops.image.geometry import LINEAR, interpolation, shorter_side
from .native import require

# Each principal component, a column, times its deviation; rows are red, green, blue.
_PCA = np.array(EIGENVECTORS, np.float32) * np.array(EIGENVALUES, np.float32)
_NO_LIMIT = 1e10


def resize_image(image: np.ndarray, height: int, width: int, method: int, rng: Random) -> np.ndarray:
    """Return `image` resized by MXNet's `inter_method`."""
    cv2 = opencv.load()
    return cv2.resize(image, (width, height), interpolation=interpolation(method, image.shape[:2], (height, width), rng))


def shift_hls(image: np.ndarray, hue: int, lightness: int, saturation: int) -> np.ndarray:
    """Add to the channels of a colour image in the HLS colour space."""
    cv2 = opencv.load()
    hls = cv2.cvtColor(image, cv2.COLOR_BGR2HLS).astype(np.int16)
    hls += np.array([hue, lightness, saturation], np.int16)
    np.clip(hls, 0, np.array([180, 255, 255], np.int16), out=hls)
    return cv2.cvtColor(hls.astype(np.uint8), cv2.COLOR_HLS2BGR)


def _apply_table(image: np.ndarray, table: np.ndarray) -> np.ndarray:
    cv2 = opencv.load()
    return cv2.LUT(image, table)


def _linear(image: np.ndarray, factor: float, offset: float = 0.0) -> np.ndarray:
    """Return ``image * factor + offset``, rounded and clipped to 0 and 255."""
    values = np.arange(256, dtype=np.float32) * np.float32(factor) + np.float32(offset)
    return _apply_table(image, np.clip(np.rint(values), 0, 255).astype(np.uint8))


@dataclasses.dataclass
class DefaultAugmenter:
    """The augmentation `aug_default`. The fields are parameters of `ImageRecordIter`, which documents them."""

    data_shape: tuple
    resize: int = -1
    rand_crop: bool = False
    random_resized_crop: bool = False
    max_rotate_angle: int = 0
    max_aspect_ratio: float = 0.0
    min_aspect_ratio: Optional[float] = None
    max_shear_ratio: float = 0.0
    max_crop_size: int = -1
    min_crop_size: int = -1
    max_random_scale: float = 1.0
    min_random_scale: float = 1.0
    max_random_area: float = 1.0
    min_random_area: float = 1.0
    max_img_size: float = _NO_LIMIT
    min_img_size: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    pca_noise: float = 0.0
    random_h: int = 0
    random_s: int = 0
    random_l: int = 0
    rotate: int = -1
    fill_value: int = 255
    inter_method: int = 1
    pad: int = 0
    rotate_list: tuple = ()

    def __post_init__(self) -> None:
        if self.min_aspect_ratio is None:
            self._aspect = (1 - self.max_aspect_ratio, 1 + self.max_aspect_ratio)
        else:
            self._aspect = (self.min_aspect_ratio, self.max_aspect_ratio)
        self._fill = (self.fill_value,) * 4
        self._affine = (self.max_rotate_angle > 0 or self.max_shear_ratio > 0 or self.rotate > 0 or bool(self.rotate_list)
                        or self.max_random_scale != 1 or self.min_random_scale != 1
                        or (not self.random_resized_crop and self._aspect != (1, 1))
                        or self.max_img_size != _NO_LIMIT or self.min_img_size != 0)
        self._colour = self.brightness > 0 or self.contrast > 0 or self.saturation > 0
        self._hls = bool(self.random_h or self.random_s or self.random_l)
        self._check()

    def _check(self) -> None:
        methods = (1, 2, 3, 4, 9, 10) if self._affine else (0, 1, 2, 3, 4, 9, 10)
        require(self.inter_method in methods, f"invalid inter_method: valid values are {methods}"
                                              f"{' together with rotation, shear or scaling' if self._affine else ''}, received {self.inter_method}")
        if self.random_resized_crop:
            require(self.min_random_scale == self.max_random_scale == 1 and self.min_crop_size == self.max_crop_size == -1 and not self.rand_crop,
                    "random_resized_crop=True chooses size and place by itself: leave out rand_crop, min_crop_size, max_crop_size, "
                    "min_random_scale and max_random_scale")
            require(0 < self._aspect[0] <= self._aspect[1], f"the aspect ratios must be above 0 and ascend, received {self._aspect}")
            require(self.min_random_area <= self.max_random_area,
                    f"min_random_area={self.min_random_area} must not be above max_random_area={self.max_random_area}")
        elif self.max_crop_size != -1 or self.min_crop_size != -1:
            require(0 < self.min_crop_size <= self.max_crop_size,
                    f"min_crop_size={self.min_crop_size} and max_crop_size={self.max_crop_size} must both be given and ascend")
        if self._colour or self._hls or self.pca_noise > 0:
            require(self.data_shape[0] == 3, f"brightness, contrast, saturation, pca_noise and random_h, _s, _l need images of 3 channels, "
                                             f"received data_shape={self.data_shape}")

    @property
    def is_random(self) -> bool:
        """True if the augmentation is random."""
        return bool(self._affine or self.rand_crop or self.random_resized_crop or self.max_crop_size != -1 or self._colour or self._hls
                    or self.pca_noise > 0 or self.inter_method == 10)

    def __call__(self, image: np.ndarray, rng: Random) -> np.ndarray:
        """Return the augmented image, with the height and width of `data_shape`."""
        cv2 = opencv.load()
        if self.resize != -1:
            image = resize_image(image, *shorter_side(image.shape[0], image.shape[1], self.resize), self.inter_method, rng)
        if self._affine:
            image = self._transform(image, rng)
        if self.pad > 0:
            image = cv2.copyMakeBorder(image, self.pad, self.pad, self.pad, self.pad, cv2.BORDER_CONSTANT, value=self._fill)
        window = None
        if self.random_resized_crop:
            window = self._window_of_area(image.shape[0], image.shape[1], rng)
        elif self.max_crop_size != -1:
            window = self._square(image.shape[0], image.shape[1], rng)
        if window is None:
            image = self._crop(image, rng)
        else:
            top, left, height, width = window
            image = resize_image(image[top:top + height, left:left + width], self.data_shape[1], self.data_shape[2], self.inter_method, rng)
        if self._colour:
            image = self._jitter(image, rng)
        if self._hls:
            # The weighted mean of two uniform numbers is near 0 more often than far from it.
            hue, saturation, lightness = (int((rng.random() + 4 * rng.random()) / 5 * 2 * limit - limit)
                                          for limit in (self.random_h, self.random_s, self.random_l))
            image = shift_hls(image, hue, lightness, saturation)
        if self.pca_noise > 0:
            noise = _PCA @ np.array([rng.gauss(0, self.pca_noise) for _ in range(3)], np.float32)
            table = np.clip(np.trunc(np.arange(256, dtype=np.float32)[:, None] + noise[::-1]), 0, 255).astype(np.uint8)
            image = _apply_table(image, table.reshape(1, 256, 3))
        return image

    def cut(self, rows: int, columns: int, rng: Random) -> Cut | None:
        """Return the `Cut` of `__call__` for an image of the given size if it only resizes once, linearly, and crops; else None."""
        if self.inter_method != LINEAR or self._affine or self._colour or self._hls or self.pad > 0 or self.pca_noise > 0:
            return None
        resized = (rows, columns) if self.resize == -1 else shorter_side(rows, columns, self.resize)
        window = None
        if self.random_resized_crop:
            window = self._window_of_area(resized[0], resized[1], rng)
        elif self.max_crop_size != -1:
            window = self._square(resized[0], resized[1], rng)
        height, width = self.data_shape[1:]
        if window is not None:
            return Cut(rows, columns, *window, height, width, 0, 0) if resized == (rows, columns) else None
        if resized[0] < height or resized[1] < width:
            return None
        return Cut(rows, columns, 0, 0, rows, columns, *resized, *self._place(resized[0] - height, resized[1] - width, rng))

    def _transform(self, image: np.ndarray, rng: Random) -> np.ndarray:
        cv2 = opencv.load()
        shear = rng.random() * self.max_shear_ratio * 2 - self.max_shear_ratio
        angle = rng.randint(-self.max_rotate_angle, self.max_rotate_angle)
        if self.rotate > 0:
            angle = self.rotate
        if self.rotate_list:
            angle = rng.choice(self.rotate_list)
        cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        scale = ratio = 1.0
        if not self.random_resized_crop:
            scale = rng.uniform(self.min_random_scale, self.max_random_scale)
            ratio = rng.uniform(*self._aspect)
        rows, columns = image.shape[:2]
        h = 2 * scale / (1 + ratio)
        w = ratio * h
        width, height = (max(self.min_img_size, min(self.max_img_size, scale * side)) for side in (columns, rows))
        matrix = np.array([[h * cos - shear * sin * w, h * sin + shear * cos * w, 0], [-sin * w, cos * w, 0]])
        # The center of the image stays the center.
        matrix[:, 2] = (np.array([width, height]) - matrix[:, :2] @ (columns, rows)) / 2
        size = (int(width), int(height))
        return cv2.warpAffine(image, matrix.astype(np.float32), size, borderMode=cv2.BORDER_CONSTANT, borderValue=self._fill,
                              flags=interpolation(self.inter_method, image.shape[:2], size[::-1], rng))

    def _window_of_area(self, rows: int, columns: int, rng: Random) -> tuple[int, int, int, int] | None:
        """Return a window (top, left, height, width) of random area and aspect ratio; None if ten attempts find none that fits."""
        if self.max_random_area == self.min_random_area == 1 and self._aspect == (1, 1):
            return None
        for _ in range(10):
            area = rng.uniform(self.min_random_area, self.max_random_area) * rows * columns
            ratio = rng.uniform(*self._aspect)
            height, width = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if rng.random() > 0.5:
                height, width = width, height
            if 0 < height <= rows and 0 < width <= columns:
                return rng.randint(0, rows - height), rng.randint(0, columns - width), height, width
        return None

    def _square(self, rows: int, columns: int, rng: Random) -> tuple[int, int, int, int]:
        require(min(rows, columns) >= self.max_crop_size,
                f"an image of at least max_crop_size={self.max_crop_size} expected, received {rows}x{columns} pixels; pass resize")
        side = rng.randint(self.min_crop_size, self.max_crop_size)
        return *self._place(rows - side, columns - side, rng), side, side

    def _place(self, y: int, x: int, rng: Random) -> tuple[int, int]:
        return (rng.randint(0, y), rng.randint(0, x)) if self.rand_crop else (y // 2, x // 2)

    def _crop(self, image: np.ndarray, rng: Random) -> np.ndarray:
        """Crop a part of the size of `data_shape`; a smaller image is enlarged first."""
        cv2 = opencv.load()
        height, width = self.data_shape[1:]
        if image.shape[0] < height or image.shape[1] < width:
            method = interpolation(self.inter_method, image.shape[:2], (height, width), rng)
            f = np.float32
            if image.shape[0] < height:
                image = cv2.resize(image, (int(f(height) / f(image.shape[0]) * f(image.shape[1])), height), interpolation=method)
            if image.shape[1] < width:
                image = cv2.resize(image, (width, int(f(width) / f(image.shape[1]) * f(image.shape[0]))), interpolation=method)
        rows, columns = image.shape[:2]
        require(rows >= height and columns >= width, f"an image of at least {height}x{width} pixels expected, received {rows}x{columns}; pass resize")
        if (rows, columns) == (height, width):
            return image
        y, x = self._place(rows - height, columns - width, rng)
        return image[y:y + height, x:x + width]

    def _jitter(self, image: np.ndarray, rng: Random) -> np.ndarray:
        cv2 = opencv.load()
        brightness, contrast, saturation = (1 + rng.uniform(-limit, limit) for limit in (self.brightness, self.contrast, self.saturation))
        steps = [0, 1, 2]
        rng.shuffle(steps)
        for step in steps:
            if step == 0:
                image = _linear(image, brightness)
                continue
            # MXNet swaps the weights of blue and red here.
            gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
            if step == 1:
                image = _linear(image, contrast, (1 - contrast) * cv2.mean(gray)[0])
            else:
                image = cv2.addWeighted(image, saturation, cv2.cvtColor(gray, cv2.COLOR_GRAY2BGR), 1 - saturation, 0)
        return image
