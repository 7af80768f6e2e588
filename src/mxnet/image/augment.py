"""Augmenters of `ImageIter`: objects that transform an image, randomly or deterministically."""
from __future__ import annotations

import json
import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..base import MXNetError
from ..ndarray import NDArray, array
from ..ops.image.constants import EIGENVALUES, EIGENVECTORS, FROM_YIQ, LUMA, MEAN, STD, TO_YIQ
from .image import center_crop, check_per_channel, color_normalize, like, random_crop, random_size_crop, resize_short, resize_to

__all__ = ["Augmenter", "BrightnessJitterAug", "CastAug", "CenterCropAug", "ColorJitterAug", "ColorNormalizeAug", "ContrastJitterAug",
           "CreateAugmenter", "ForceResizeAug", "HorizontalFlipAug", "HueJitterAug", "LightingAug", "RandomCropAug", "RandomGrayAug",
           "RandomOrderAug", "RandomSizedCropAug", "ResizeAug", "SaturationJitterAug", "SequentialAug"]

_LUMA = torch.tensor(LUMA)


def _times(image, matrix):
    """Return the product of pixels and a matrix, computed in float32 at least."""
    wide = image.float() if image.dtype in (torch.float16, torch.bfloat16) else image
    return (wide @ matrix.to(wide)).to(image.dtype)


def _plain(value):
    """Convert a parameter to a type that JSON supports: arrays become lists."""
    if isinstance(value, NDArray):
        value = value.asnumpy()
    return value.tolist() if isinstance(value, np.ndarray) else value


class Described:
    """The base class of objects whose name and parameters can be serialized as JSON text.

    Parameters
    ----------
    **kwargs
        The parameters for `dumps`.
    """

    def __init__(self, **kwargs: Any):
        self._kwargs = {name: _plain(value) for name, value in kwargs.items()}

    def dumps(self) -> str:
        """Name and parameters as JSON text."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])


class Augmenter(Described):
    """The base class of augmenters.

    Parameters
    ----------
    **kwargs
        The parameters for `dumps`.
    """

    def __call__(self, src: NDArray) -> NDArray:
        """Return the transformed image; `src` may be changed in place."""
        raise NotImplementedError(f"{type(self).__name__} must implement __call__")


class SequentialAug(Augmenter):
    """Applies several augmenters in order.

    Parameters
    ----------
    ts : list of Augmenter
    """

    def __init__(self, ts: Sequence[Augmenter]):
        super().__init__()
        self.ts = ts

    def dumps(self) -> list[Any]:
        """Name and the texts of the augmenters, as a list."""
        return [type(self).__name__.lower(), [t.dumps() for t in self.ts]]

    def __call__(self, src: NDArray) -> NDArray:
        for t in self.ts:
            src = t(src)
        return src


class RandomOrderAug(SequentialAug):
    """Applies several augmenters, each time in a random order.

    Parameters
    ----------
    ts : list of Augmenter
    """

    def __call__(self, src: NDArray) -> NDArray:
        random.shuffle(self.ts)
        return super().__call__(src)


class ResizeAug(Augmenter):
    """Resize the shorter side to `size` pixels; see `resize_short`."""

    def __init__(self, size: int, interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: NDArray) -> NDArray:
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(Augmenter):
    """Resize to `size` (width, height), regardless of the aspect ratio."""

    def __init__(self, size: Sequence[int], interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: NDArray) -> NDArray:
        return resize_to(src, *self.size, self.interp)


class RandomCropAug(Augmenter):
    """Crop a window of `size` (width, height) at a random position; see `random_crop`."""

    def __init__(self, size: Sequence[int], interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: NDArray) -> NDArray:
        return random_crop(src, self.size, self.interp)[0]


class CenterCropAug(Augmenter):
    """Crop the central window of `size` (width, height); see `center_crop`."""

    def __init__(self, size: Sequence[int], interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: NDArray) -> NDArray:
        return center_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """Crop a window of random area and aspect ratio and resize it; see `random_size_crop`."""

    def __init__(self, size: Sequence[int], area: float | Sequence[float], ratio: Sequence[float], interp: int = 2, **kwargs: Any):
        if "min_area" in kwargs:
            warnings.warn("`min_area` is the old name of `area`", DeprecationWarning, stacklevel=2)
            area = kwargs.pop("min_area")
        if kwargs:
            raise TypeError(f"unexpected keyword arguments for `RandomSizedCropAug`: {', '.join(kwargs)}")
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.size, self.area, self.ratio, self.interp = size, area, ratio, interp

    def __call__(self, src: NDArray) -> NDArray:
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class HorizontalFlipAug(Augmenter):
    """Mirror the image with probability `p`."""

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray) -> NDArray:
        return like(src, src._data.flip(1)) if random.random() < self.p else src


class CastAug(Augmenter):
    """Convert the image to the type `typ`."""

    def __init__(self, typ: str = "float32"):
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src: NDArray) -> NDArray:
        return src.astype(self.typ)


class BrightnessJitterAug(Augmenter):
    """Multiply the image by a random number between ``1 - brightness`` and ``1 + brightness``."""

    def __init__(self, brightness: float):
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def __call__(self, src: NDArray) -> NDArray:
        src *= 1.0 + random.uniform(-self.brightness, self.brightness)
        return src


class _ColourAug(Augmenter):
    """The base class of augmenters of colours, which need floats."""

    def _require(self, src, channels=(1, 3)):
        """Raise an MXNetError unless `src` is an image (H, W, C) of floats with one of these numbers of channels."""
        name = type(self).__name__
        if not src._data.is_floating_point():
            raise MXNetError(f"{name} changes images of floats, received type {np.dtype(src.dtype)}: convert it with astype('float32'), or put "
                             "CastAug() before")
        if not src.ndim or src.shape[-1] not in channels:
            raise MXNetError(f"{name}: an image (H, W, C) of {' or '.join(map(str, channels))} channels expected, received shape {src.shape}")


class ContrastJitterAug(_ColourAug):
    """Blend the image with its mean gray; the image's weight is between ``1 - contrast`` and ``1 + contrast``."""

    def __init__(self, contrast: float):
        super().__init__(contrast=contrast)
        self.contrast = contrast

    def __call__(self, src: NDArray) -> NDArray:
        self._require(src)
        alpha = 1.0 + random.uniform(-self.contrast, self.contrast)
        shares = src._data * _LUMA.to(src._data.device)  # three channels, also for a gray image
        gray = shares.sum() * (3.0 * (1.0 - alpha) / shares.numel())
        src *= alpha
        src += like(src, gray.reshape(1, 1, 1))
        return src


class SaturationJitterAug(_ColourAug):
    """Blend the image with its gray version; the image's weight is between ``1 - saturation`` and ``1 + saturation``."""

    def __init__(self, saturation: float):
        super().__init__(saturation=saturation)
        self.saturation = saturation

    def __call__(self, src: NDArray) -> NDArray:
        self._require(src)
        alpha = 1.0 + random.uniform(-self.saturation, self.saturation)
        image = src._data
        gray = (image * _LUMA.to(image.device)).sum(2, keepdim=True) * (1.0 - alpha)
        src *= alpha
        src += like(src, gray)
        return src


class HueJitterAug(_ColourAug):
    """Rotate the hue by a random angle of up to `hue` half turns, approximately: in the YIQ colour space."""

    def __init__(self, hue: float):
        super().__init__(hue=hue)
        self.hue = hue

    def __call__(self, src: NDArray) -> NDArray:
        self._require(src, (3,))
        angle = random.uniform(-self.hue, self.hue) * np.pi
        turn = np.array([[1.0, 0.0, 0.0], [0.0, np.cos(angle), -np.sin(angle)], [0.0, np.sin(angle), np.cos(angle)]])
        matrix = (np.array(FROM_YIQ) @ turn @ np.array(TO_YIQ)).T
        return like(src, _times(src._data, torch.from_numpy(np.ascontiguousarray(matrix))))


class ColorJitterAug(RandomOrderAug):
    """Change brightness, contrast and saturation randomly, in random order; those that are 0 are not changed."""

    def __init__(self, brightness: float, contrast: float, saturation: float):
        super().__init__([kind(amount) for kind, amount in ((BrightnessJitterAug, brightness), (ContrastJitterAug, contrast),
                                                            (SaturationJitterAug, saturation)) if amount > 0])


class LightingAug(_ColourAug):
    """Add noise along the principal components of colour.

    Parameters
    ----------
    alphastd : float
        Standard deviation of the weights of the components.
    eigval : array (3,)
    eigvec : array (3, 3)
        The components in columns.
    """

    def __init__(self, alphastd: float, eigval: Any, eigvec: Any):
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd, self.eigval, self.eigvec = alphastd, eigval, eigvec

    def __call__(self, src: NDArray) -> NDArray:
        self._require(src, (3,))
        alpha = np.random.normal(0, self.alphastd, size=(3,))
        src += array(np.dot(self.eigvec * alpha, self.eigval), ctx=src.context, dtype=src.dtype)
        return src


class ColorNormalizeAug(Augmenter):
    """Subtract `mean` and divide by `std`; each an array of 1 or 3 numbers, or None."""

    def __init__(self, mean: Any, std: Any):
        super().__init__(mean=mean, std=std)
        self.mean, self.std = (x if x is None or isinstance(x, NDArray) else array(x) for x in (mean, std))

    def __call__(self, src: NDArray) -> NDArray:
        return color_normalize(src, self.mean, self.std)


class RandomGrayAug(_ColourAug):
    """Make the image gray with probability `p`; it keeps three channels."""

    _WEIGHTS = torch.tensor([0.21, 0.72, 0.07])

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray) -> NDArray:
        if random.random() >= self.p:
            return src
        self._require(src, (3,))
        return like(src, _times(src._data, self._WEIGHTS).unsqueeze(-1).expand_as(src._data).contiguous())


def colour_augmenters(brightness: float, contrast: float, saturation: float, hue: float, pca_noise: float, rand_gray: float, mean: Any,
                      std: Any) -> list[Augmenter]:
    """Return the augmenters of colours for `CreateAugmenter` and `CreateDetAugmenter`."""
    augmenters = []
    if brightness or contrast or saturation:
        augmenters.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        augmenters.append(HueJitterAug(hue))
    if pca_noise > 0:
        augmenters.append(LightingAug(pca_noise, np.array(EIGENVALUES), np.array(EIGENVECTORS)))
    if rand_gray > 0:
        augmenters.append(RandomGrayAug(rand_gray))
    mean, std = check_per_channel("mean", mean, MEAN), check_per_channel("std", std, STD)
    if mean is not None or std is not None:
        augmenters.append(ColorNormalizeAug(mean, std))
    return augmenters


def CreateAugmenter(data_shape: Sequence[int], resize: int = 0, rand_crop: bool = False, rand_resize: bool = False, rand_mirror: bool = False,
                    mean: Any = None, std: Any = None, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0,
                    pca_noise: float = 0, rand_gray: float = 0, inter_method: int = 2) -> list[Augmenter]:
    """Create the standard list of augmenters for training a classifier.

    Parameters
    ----------
    data_shape : tuple of int
        (channels, height, width) of the result.
    resize : int
        If above 0, first resize the shorter side to this number of pixels.
    rand_crop : bool
        Crop at a random position; else at the center.
    rand_resize : bool
        Crop a part of random size, too; needs `rand_crop`.
    rand_mirror : bool
        Mirror half of the images.
    mean, std : array of 1 or 3 numbers, True or None
        The mean to subtract and the deviation to divide by; True for those of ImageNet.
    brightness, contrast, saturation, hue : float
        The maximal change of each, as a fraction of 1.
    pca_noise : float
        Standard deviation of noise along the principal components of colour.
    rand_gray : float
        Probability of a gray image.
    inter_method : int
        As `interp` of `resize_short`.

    Raises
    ------
    MXNetError
        If the parameters don't fit together.

    Example
    -------
    >>> import mxnet as mx
    >>> for augmenter in mx.image.CreateAugmenter((3, 24, 24), resize=32, rand_mirror=True):
    ...     print(augmenter.dumps())
    ["resizeaug", {"size": 32, "interp": 2}]
    ["centercropaug", {"size": [24, 24], "interp": 2}]
    ["horizontalflipaug", {"p": 0.5}]
    ["castaug", {"type": "float32"}]
    """
    augmenters = [ResizeAug(resize, inter_method)] if resize > 0 else []
    size = (data_shape[2], data_shape[1])
    if rand_resize:
        if not rand_crop:
            raise MXNetError(f"CreateAugmenter: rand_resize=True needs rand_crop=True, received {rand_crop}")
        augmenters.append(RandomSizedCropAug(size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        augmenters.append((RandomCropAug if rand_crop else CenterCropAug)(size, inter_method))
    if rand_mirror:
        augmenters.append(HorizontalFlipAug(0.5))
    augmenters.append(CastAug())
    mean, std = (array(usual) if value is True else value for value, usual in ((mean, MEAN), (std, STD)))
    return augmenters + colour_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std)
