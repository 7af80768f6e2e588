"""Transforms of images: blocks that make one image of another.

Images are (H, W, C), most transforms take batches (N, H, W, C) too; `ToTensor` makes (C, H, W) of them.
"""
import functools
import random
from typing import Any

import numpy as np

from .... import image
from ....base import numeric_types
from ....image.image import center_window, random_size_window, random_window
from ....ops import host_arrays
from ....ops.image.transforms import keeps, resized_size
from ....util import is_np_array
from ...block import Block
from ...hybrid_block import HybridBlock
from ...nn import HybridSequential, Sequential
from ._fused import Pending, Row


def _ops(F: Any):
    """Return the operators for the kind of arrays in use."""
    return F.npx if is_np_array() else F


def _pair(size: Any):
    """Return a number as (number, number)."""
    return (size, size) if isinstance(size, numeric_types) else size


class Compose(Sequential):
    """Transforms in a row. Neighbours that are HybridBlocks run as one graph.

    Resizing, cropping, `RandomFlipLeftRight`, `ToTensor` and `Normalize`, one behind the other, are one pass over the pixels of a uint8 image, with
    the same results.

    Parameters
    ----------
    transforms : list of Block

    Example
    -------
    >>> import mxnet as mx
    >>> T = mx.gluon.data.vision.transforms
    >>> shrink = T.Compose([T.Resize(20), T.CenterCrop(16), T.ToTensor()])
    >>> shrink(mx.nd.zeros((32, 32, 3), dtype='uint8')).shape
    (3, 16, 16)
    """

    def __init__(self, transforms: list[Block]) -> None:
        super().__init__()
        together = []
        for transform in [*transforms, None]:
            if isinstance(transform, HybridBlock):
                together.append(transform)
                continue
            if together:
                self.add(together[0] if len(together) == 1 else _hybridized(together))
                together = []
            if transform is not None:
                self.add(transform)
        self._transforms, self._row, self._size = list(transforms), _row(transforms), len(self)

    def forward(self, x: Any) -> Any:
        """Return the transformed image."""
        if self._row is not None and len(self) == self._size and not any(t._forward_hooks or t._forward_pre_hooks for t in self._transforms):
            out = self._row(x)
            if out is not None:
                return out
        return super().forward(x)


def _row(transforms: list[Block]) -> Row | None:
    """Return the transforms fused into one pass over the pixels, or None if a transform cannot be fused."""
    kinds = [type(transform) for transform in transforms]
    count = kinds.index(ToTensor) if ToTensor in kinds else len(kinds)
    if not count or kinds[count + 1:] not in ([], [Normalize]) or not all(kind in _GEOMETRY for kind in kinds[:count]) \
            or any(isinstance(t, RandomCrop) and t._pad for t in transforms):
        return None
    last = transforms[-1]
    return Row([functools.partial(_GEOMETRY[type(t)], t) for t in transforms[:count]], count < len(kinds),
               (_floats(last._mean), _floats(last._std)) if isinstance(last, Normalize) else None)


def _floats(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, numeric_types) else tuple(value)


def _hybridized(transforms):
    row = HybridSequential()
    row.add(*transforms)
    row.hybridize()
    return row


class HybridCompose(HybridSequential):
    """Transforms in a row, all HybridBlocks, that run as one graph.

    Parameters
    ----------
    transforms : list of HybridBlock

    Example
    -------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transform = transforms.HybridCompose([transforms.Resize(4), transforms.ToTensor()])
    >>> transform(mx.nd.zeros((6, 8, 3), dtype='uint8')).shape
    (3, 4, 4)
    """

    def __init__(self, transforms: list[HybridBlock]) -> None:
        super().__init__()
        self.add(*transforms)
        self.hybridize()


class Cast(HybridBlock):
    """Convert to another type.

    Parameters
    ----------
    dtype : str or numpy type

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.Cast('float16')
    >>> transform(mx.nd.ones((2, 2, 3))).dtype
    <class 'numpy.float16'>
    """

    def __init__(self, dtype: str | type = "float32") -> None:
        super().__init__()
        self._dtype = dtype

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the converted array."""
        return _ops(F).cast(x, self._dtype)


class ToTensor(HybridBlock):
    """Bytes (H, W, C) from 0 to 255 as float32 (C, H, W) from 0 to 1; batches too.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.gluon.data.vision.transforms.ToTensor()(mx.nd.full((2, 2, 1), 255, dtype='uint8'))
    <BLANKLINE>
    [[[1. 1.]
      [1. 1.]]]
    <NDArray 1x2x2 @cpu(0)>
    """

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the image as the network takes it."""
        return _ops(F).image.to_tensor(x)


class Normalize(HybridBlock):
    """(x - mean) / std for each channel of (C, H, W) or (N, C, H, W).

    Parameters
    ----------
    mean, std : float or tuple of float
        One for all channels, or one for each.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.Normalize(mean=0.5, std=0.25)
    >>> transform(mx.nd.array([[[0.5, 1]]])).asnumpy()
    array([[[0., 2.]]], dtype=float32)
    """

    def __init__(self, mean: float | tuple[float, ...] = 0.0, std: float | tuple[float, ...] = 1.0) -> None:
        super().__init__()
        self._mean, self._std = mean, std

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the normalized image."""
        return _ops(F).image.normalize(x, self._mean, self._std)


def _need_float32(x: Any) -> None:
    if x.dtype != np.float32:
        raise TypeError(f"a float32 image expected, received {np.dtype(x.dtype).name}; put ToTensor before this transform")


class Rotate(Block):
    """Rotate an image (C, H, W) or a batch of them; the size stays.

    Parameters
    ----------
    rotation_degrees : float
    zoom_in : bool
        Enlarge so that no padding shows.
    zoom_out : bool
        Shrink so that the whole image shows.

    Raises
    ------
    TypeError
        If the image is not float32.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.Rotate(90)
    >>> transform(mx.nd.array([[[1, 2], [3, 4]]])).asnumpy().round()
    array([[[2., 4.],
            [1., 3.]]], dtype=float32)
    """

    def __init__(self, rotation_degrees: float, zoom_in: bool = False, zoom_out: bool = False) -> None:
        super().__init__()
        self._args = rotation_degrees, zoom_in, zoom_out

    def forward(self, x: Any) -> Any:
        """Return the rotated image."""
        _need_float32(x)
        return image.imrotate(x, *self._args)


class RandomRotation(Block):
    """Rotate an image (C, H, W) by a random angle; the size stays.

    Parameters
    ----------
    angle_limits : tuple
        The smallest and the largest angle, in degrees.
    zoom_in, zoom_out : bool
        As for `Rotate`.
    rotate_with_proba : float
        The probability of a rotation, from 0 to 1.

    Raises
    ------
    ValueError
        If the angles are not in order, or the probability is none.
    TypeError
        If the image is not float32.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.RandomRotation((-10, 10))
    >>> transform(mx.nd.ones((3, 8, 8))).shape
    (3, 8, 8)
    """

    def __init__(self, angle_limits: tuple[Any, ...], zoom_in: bool = False, zoom_out: bool = False, rotate_with_proba: float = 1.0) -> None:
        super().__init__()
        smallest, largest = angle_limits
        if smallest >= largest:
            raise ValueError(f"angle_limits: the smaller angle first, then the larger one, expected; received {angle_limits}")
        if not 0 <= rotate_with_proba <= 1:
            raise ValueError(f"rotate_with_proba must be at least 0 and at most 1, received {rotate_with_proba}")
        self._args = angle_limits, zoom_in, zoom_out
        self._rotate_with_proba = rotate_with_proba

    def forward(self, x: Any) -> Any:
        """Return the rotated image, or the image itself."""
        if np.random.random() > self._rotate_with_proba:
            return x
        _need_float32(x)
        return image.random_rotate(x, *self._args)


class RandomResizedCrop(Block):
    """Cut out a random part of an image (H, W, C) and resize it.

    Parameters
    ----------
    size : int or tuple
        Width and height of the result.
    scale : tuple of float
        Smallest and largest fraction of the image's area.
    ratio : tuple of float
        Smallest and largest ratio of the part's width to its height.
    interpolation : int
        OpenCV's number of the method; 1 is bilinear.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.RandomResizedCrop((3, 2))
    >>> transform(mx.nd.zeros((6, 8, 3), dtype='uint8')).shape
    (2, 3, 3)
    """

    def __init__(self, size: int | tuple[int, ...], scale: tuple[float, ...] = (0.08, 1.0), ratio: tuple[float, ...] = (3.0 / 4.0, 4.0 / 3.0),
                 interpolation: int = 1) -> None:
        super().__init__()
        self._args = _pair(size), scale, ratio, interpolation

    def forward(self, x: Any) -> Any:
        """Return the resized part."""
        return image.random_size_crop(x, *self._args)[0]


class RandomCrop(Block):
    """Cut out a part of an image (H, W, C) at a random place, resized if the image is smaller.

    Parameters
    ----------
    size : int or tuple
        Width and height of the result.
    pad : int or tuple, optional
        Pixels to add first: one number for all sides; or an array as ``np.pad`` takes it, for height, width and channels.
    pad_value : int
        The value of these pixels.
    interpolation : int
        OpenCV's number of the method; 1 is bilinear.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.RandomCrop((3, 2))
    >>> transform(mx.nd.zeros((6, 8, 3), dtype='uint8')).shape
    (2, 3, 3)
    """

    def __init__(self, size: int | tuple[int, ...], pad: int | tuple[int, ...] | None = None, pad_value: int = 0, interpolation: int = 1) -> None:
        super().__init__()
        self._args = _pair(size), interpolation
        self._pad = ((pad, pad), (pad, pad), (0, 0)) if isinstance(pad, int) else pad
        self._pad_value = pad_value

    def forward(self, x: Any) -> Any:
        """Return the part."""
        if self._pad:
            padded = np.pad(x.asnumpy(), self._pad, mode="constant", constant_values=self._pad_value)
            x = type(x)._new(host_arrays.as_tensor(padded), x.ctx)
        return image.random_crop(x, *self._args)[0]


class CropResize(HybridBlock):
    """Cut a given part out of an image (H, W, C) or of a batch, and resize it if asked to.

    Parameters
    ----------
    x, y : int
        Left and top edge of the part.
    width, height : int
        Its size.
    size : int or tuple, optional
        Width and height of the result.
    interpolation : int, optional
        OpenCV's number of the method; on a GPU always 1, bilinear.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.CropResize(x=1, y=0, width=4, height=3)
    >>> transform(mx.nd.zeros((6, 8, 3), dtype='uint8')).shape
    (3, 4, 3)
    """

    def __init__(self, x: int, y: int, width: int, height: int, size: int | tuple[int, ...] | None = None, interpolation: int | None = None) -> None:
        super().__init__()
        self._part = x, y, width, height
        self._size, self._interpolation = size, interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the part."""
        ops = _ops(F).image
        out = ops.crop(x, *self._part)
        return ops.resize(out, self._size, False, 1 if self._interpolation is None else self._interpolation) if self._size else out


class CenterCrop(Block):
    """Cut out the middle of an image (H, W, C), resized if the image is smaller.

    Parameters
    ----------
    size : int or tuple
        Width and height of the result.
    interpolation : int
        OpenCV's number of the method; 1 is bilinear.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.CenterCrop((3, 2))
    >>> transform(mx.nd.zeros((6, 8, 3), dtype='uint8')).shape
    (2, 3, 3)
    """

    def __init__(self, size: int | tuple[int, ...], interpolation: int = 1) -> None:
        super().__init__()
        self._args = _pair(size), interpolation

    def forward(self, x: Any) -> Any:
        """Return the middle."""
        return image.center_crop(x, *self._args)[0]


class Resize(HybridBlock):
    """Resize an image (H, W, C) or a batch.

    Parameters
    ----------
    size : int or tuple
        Width and height of the result.
    keep_ratio : bool
        With one number as `size`: it is that of the shorter side, and the other follows.
    interpolation : int
        OpenCV's number of the method; on a GPU always 1, bilinear.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.Resize(4, keep_ratio=True)
    >>> transform(mx.nd.zeros((6, 12, 3), dtype='uint8')).shape
    (4, 8, 3)
    """

    def __init__(self, size: int | tuple[int, ...], keep_ratio: bool = False, interpolation: int = 1) -> None:
        super().__init__()
        self._args = size, keep_ratio, interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the resized image."""
        return _ops(F).image.resize(x, *self._args)


class _RandomImageOperator(HybridBlock):
    """A random operator of ``F.image`` on an image (H, W, C)."""

    _operator: str

    def __init__(self, *args: Any) -> None:
        super().__init__()
        self._args = args

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the changed image."""
        return getattr(_ops(F).image, self._operator)(x, *self._args)


class RandomFlipLeftRight(_RandomImageOperator):
    """Flip an image left to right with probability 1/2.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.RandomFlipLeftRight()
    >>> image = transform(mx.nd.array([[[1], [2]]])).asnumpy().ravel()
    >>> sorted(image.tolist())
    [1.0, 2.0]
    """

    _operator = "random_flip_left_right"

    def __init__(self) -> None:
        super().__init__()


class RandomFlipTopBottom(_RandomImageOperator):
    """Flip an image top to bottom with probability 1/2.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.RandomFlipTopBottom()
    >>> image = transform(mx.nd.array([[[1]], [[2]]])).asnumpy().ravel()
    >>> sorted(image.tolist())
    [1.0, 2.0]
    """

    _operator = "random_flip_top_bottom"

    def __init__(self) -> None:
        super().__init__()


def _around_one(strength):
    return max(0, 1 - strength), 1 + strength


class RandomBrightness(_RandomImageOperator):
    """Multiply the brightness by a random factor.

    Parameters
    ----------
    brightness : float
        The largest difference of the factor from 1.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.RandomBrightness(0.5)
    >>> image = transform(mx.nd.ones((2, 2, 3)) * 100)
    >>> bool(50 <= image.min().asscalar() <= 150)
    True
    """

    _operator = "random_brightness"

    def __init__(self, brightness: float) -> None:
        super().__init__(*_around_one(brightness))


class RandomContrast(_RandomImageOperator):
    """Multiply the contrast by a random factor.

    Parameters
    ----------
    contrast : float
        The largest difference of the factor from 1.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.RandomContrast(0.5)
    >>> transform(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    _operator = "random_contrast"

    def __init__(self, contrast: float) -> None:
        super().__init__(*_around_one(contrast))


class RandomSaturation(_RandomImageOperator):
    """Multiply the saturation by a random factor.

    Parameters
    ----------
    saturation : float
        The largest difference of the factor from 1.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.RandomSaturation(0.5)
    >>> transform(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    _operator = "random_saturation"

    def __init__(self, saturation: float) -> None:
        super().__init__(*_around_one(saturation))


class RandomHue(_RandomImageOperator):
    """Rotate the hue by a random factor.

    Parameters
    ----------
    hue : float
        The largest difference of the factor from 1.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.RandomHue(0.1)
    >>> transform(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    _operator = "random_hue"

    def __init__(self, hue: float) -> None:
        super().__init__(*_around_one(hue))


class RandomColorJitter(_RandomImageOperator):
    """Change brightness, contrast, saturation and hue at random, in a random order.

    Parameters
    ----------
    brightness, contrast, saturation, hue : float
        The largest difference of each factor from 1.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.RandomColorJitter(brightness=0.2, hue=0.1)
    >>> transform(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    _operator = "random_color_jitter"

    def __init__(self, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0) -> None:
        super().__init__(brightness, contrast, saturation, hue)


class RandomLighting(_RandomImageOperator):
    """Add noise along the principal components of colour, as AlexNet was trained with.

    Parameters
    ----------
    alpha : float
        Standard deviation of the noise.

    Example
    -------
    >>> transform = mx.gluon.data.vision.transforms.RandomLighting(0.1)
    >>> transform(mx.nd.ones((2, 2, 3))).shape
    (2, 2, 3)
    """

    _operator = "random_lighting"

    def __init__(self, alpha: float) -> None:
        super().__init__(alpha)


class RandomApply(Sequential):
    """Apply a transform at random.

    Parameters
    ----------
    transforms : Block
        The transform; `Compose` makes one of several.
    p : float
        The probability, from 0 to 1.

    Example
    -------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transform = transforms.RandomApply(transforms.CenterCrop(2), p=1.0)
    >>> transform(mx.nd.zeros((6, 8, 3), dtype='uint8')).shape
    (2, 2, 3)
    """

    def __init__(self, transforms: Block, p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, x: Any) -> Any:
        """Return the transformed image, or the image itself."""
        return x if self.p < random.random() else self.transforms(x)


def _take_window(pending: Pending, window: tuple[int, int, int, int], size: tuple[int, int], method: int) -> None:
    pending.crop(*window)
    pending.resize(size[1], size[0], method)


def _take_resized(transform: Any, pending: Pending) -> None:
    size, keep_ratio, method = transform._args
    height, width = resized_size(pending.rows, pending.columns, _floats(size), keep_ratio)
    pending.resize(height, width, method)


def _take_center(transform: Any, pending: Pending) -> None:
    size, method = transform._args
    _take_window(pending, center_window(pending.rows, pending.columns, size), size, method)


def _take_somewhere(transform: Any, pending: Pending) -> None:
    size, method = transform._args
    _take_window(pending, random_window(pending.rows, pending.columns, size), size, method)


def _take_any_size(transform: Any, pending: Pending) -> None:
    size, scale, ratio, method = transform._args
    _take_window(pending, random_size_window(pending.rows, pending.columns, size, scale, ratio), size, method)


def _take_flipped(transform: Any, pending: Pending) -> None:
    pending.mirrored ^= not keeps(pending.image)


# The functions that apply these transforms to a `Pending`, see `_fused`. Subclasses are not fused, since they may differ.
_GEOMETRY = {Resize: _take_resized, CenterCrop: _take_center, RandomCrop: _take_somewhere, RandomResizedCrop: _take_any_size,
             RandomFlipLeftRight: _take_flipped}
