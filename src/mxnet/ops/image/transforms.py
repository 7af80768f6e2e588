"""Type, size and orientation of images."""
from typing import Any

import torch

from ...base import MXNetError
from ...kernels.image.color_jitter import mirror
from ..axes import require_ndim
from ..host_arrays import constant
from ..integers import convert
from ..registry import op
from ..schema import Floats, Shape
from ..shapes import unify
from . import resampling
from .common import require_color, uniform
from .geometry import shorter_side
from .opencv import cv2_resize


@op("_image_to_tensor", aliases=("_npx__image_to_tensor",), complete_rule="shape")
def to_tensor(data):
    """Images with values in [0, 255] as float32 in [0, 1]: (H, W, C) to (C, H, W), also in batches.

    Raises
    ------
    MXNetError
        If `data` is neither 3-D nor 4-D.

    Example
    -------
    >>> image = mx.nd.array([[[255, 0, 51]]], dtype="uint8")         # one pixel
    >>> mx.nd.image.to_tensor(image).asnumpy()
    array([[[1. ]],
    <BLANKLINE>
           [[0. ]],
    <BLANKLINE>
           [[0.2]]], dtype=float32)
    """
    require_ndim("image.to_tensor", data, 3, 4)
    return data.movedim(-1, -3).to(torch.float32, memory_format=torch.contiguous_format).contiguous().div(255)


@to_tensor.shape_rule
def _(in_shapes, out_shapes):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None and len(data) in (3, 4):
        out = unify(out, (*data[:-3], data[-1], *data[-3:-1]))
    return [data], [out]


@to_tensor.dtype_rule
def _(in_types, out_types):
    return [in_types[0] or torch.uint8], [torch.float32]


@op("_image_normalize", aliases=("_npx__image_normalize",), same_shape=True)
def normalize(data, *, mean: Floats = (0.0, 0.0, 0.0, 0.0), std: Floats = (1.0, 1.0, 1.0, 1.0)):
    """``(data - mean) / std`` of (C, H, W) or (N, C, H, W), with one number for each channel or one for all.

    Integers stay integers: results are truncated, so convert images with `to_tensor` first.

    Raises
    ------
    MXNetError
        If there are not 1 or 3 channels, or `mean` or `std` has another number of values.

    Example
    -------
    >>> x = mx.nd.ones((3, 1, 1))
    >>> mx.nd.image.normalize(x, mean=(0, 1, 2), std=(1, 2, 4)).asnumpy().ravel()
    array([ 1.  ,  0.  , -0.25], dtype=float32)
    """
    require_ndim("image.normalize", data, 3, 4)
    channels = data.shape[-3]
    if channels not in (1, 3):
        raise MXNetError(f"image.normalize: the channel axis must have 1 or 3 elements, received shape {tuple(data.shape)}; "
                         "to_tensor brings it to the front")
    mean, std = (value[:1] if value == default else value
                 for value, default in ((mean, (0.0,) * 4), (std, (1.0,) * 4)))
    for name, value in (("mean", mean), ("std", std)):
        if len(value) not in (1, channels):
            raise MXNetError(f"image.normalize: invalid {name}: it must have 1 or {channels} elements for shape {tuple(data.shape)}, "
                             f"received {value}")
    pixels = data if data.is_floating_point() else data.float()
    shift, scale = (constant(v, pixels.dtype, data.device).reshape(-1, 1, 1) for v in (mean, std))
    out = (pixels - shift) / scale
    return out if out.dtype is data.dtype else convert(convert(out, torch.int64), data.dtype)


def resized_size(height: int, width: int, size: tuple[int, ...], keep_ratio: bool) -> tuple[int, int]:
    """(height, width) after resizing to `size`, which is (width, height) or one number."""
    if len(size) not in (1, 2) or min(size) <= 0:
        raise MXNetError(f"image.resize: `size` must be one or two numbers above 0, (width, height), received {size}")
    if len(size) == 2:
        return size[1], size[0]
    if not keep_ratio:
        return size[0], size[0]
    return shorter_side(height, width, size[0])


@op("_image_resize", aliases=("_npx__image_resize",), complete_rule="shape")
def resize(data, *, size: Shape = (), keep_ratio: bool = False, interp: int = 1):
    """Resize images (H, W, C) or (N, H, W, C) to `size`: (width, height), or one number for both.

    Parameters
    ----------
    keep_ratio : bool
        With one number: make that the shorter side.
    interp : int
        OpenCV's number of the method: 0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos. Only 0 and 1 on a GPU.

    Raises
    ------
    MXNetError
        If `data` is neither 3-D nor 4-D, `size` is not one or two numbers above 0, or OpenCV takes no such type or method.

    Example
    -------
    >>> image = mx.nd.zeros((20, 40, 3), dtype="uint8")
    >>> mx.nd.image.resize(image, size=(8, 6)).shape, mx.nd.image.resize(image, size=10, keep_ratio=True).shape
    ((6, 8, 3), (10, 20, 3))
    """
    require_ndim("image.resize", data, 3, 4)
    height, width = resized_size(data.shape[-3], data.shape[-2], size, keep_ratio)
    if data.device.type == "cpu":
        if data.dim() == 3:
            return cv2_resize(data, height, width, interp, "image.resize")
        return torch.stack([cv2_resize(image, height, width, interp, "image.resize") for image in data])
    if interp not in (0, 1) and data.device.type != "meta":
        raise MXNetError(f"image.resize: only interp=0 (nearest) and 1 (linear) are supported on {data.device}, received {interp}")
    return (resampling.linear if interp else resampling.nearest)(data, height, width)


@resize.shape_rule
def _(in_shapes, out_shapes, *, size, keep_ratio, interp):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None and len(data) in (3, 4) and (min(data[-3:-1]) > 0 or not keep_ratio):
        out = unify(out, (*data[:-3], *resized_size(data[-3], data[-2], size, keep_ratio), data[-1]))
    return [data], [out]


@op("_image_crop", aliases=("_npx__image_crop",))
def crop(data, *, x: int, y: int, width: int, height: int):
    """The window of `width` x `height` pixels at column `x` and row `y` of (H, W, C) or (N, H, W, C) images.

    Raises
    ------
    MXNetError
        If the window does not lie in the image, or there are not 1 or 3 channels.

    Example
    -------
    >>> image = mx.nd.arange(12).reshape((3, 4, 1))
    >>> mx.nd.image.crop(image, x=1, y=0, width=2, height=3)[:, :, 0].asnumpy()
    array([[ 1.,  2.],
           [ 5.,  6.],
           [ 9., 10.]], dtype=float32)
    """
    require_ndim("image.crop", data, 3, 4)
    if data.shape[-1] not in (1, 3):
        raise MXNetError(f"image.crop: the last axis of the image must hold 1 or 3 channels, received {tuple(data.shape)}")
    rows, columns = data.shape[-3:-1]
    if min(width, height) <= 0 or min(x, y) < 0 or x + width > columns or y + height > rows:
        raise MXNetError(f"image.crop: the window x={x}, y={y}, width={width}, height={height} does not lie in an image of "
                         f"width {columns} and height {rows}")
    return data[..., y:y + height, x:x + width, :].clone(memory_format=torch.contiguous_format)


@op("_image_flip_left_right", aliases=("_npx__image_flip_left_right",), same_shape=True)
def flip_left_right(data):
    """Mirror an image (H, W, C) horizontally. `MXNetError` unless there are 1 or 3 channels.

    Example
    -------
    >>> image = mx.nd.array([[1, 2], [3, 4]]).reshape((2, 2, 1))
    >>> mx.nd.image.flip_left_right(image)[:, :, 0].asnumpy()
    array([[2., 1.],
           [4., 3.]], dtype=float32)
    """
    require_color("image.flip_left_right", data)
    return _mirrored(data)


@op("_image_flip_top_bottom", aliases=("_npx__image_flip_top_bottom",), same_shape=True)
def flip_top_bottom(data):
    """Mirror an image (H, W, C) vertically. `MXNetError` unless there are 1 or 3 channels.

    Example
    -------
    >>> image = mx.nd.array([[1, 2], [3, 4]]).reshape((2, 2, 1))
    >>> mx.nd.image.flip_top_bottom(image)[:, :, 0].asnumpy()
    array([[3., 4.],
           [1., 2.]], dtype=float32)
    """
    require_color("image.flip_top_bottom", data)
    return data.flip(0)


def _mirrored(data):
    result = mirror(data)
    return data.flip(1) if result is None else result


def keeps(data: torch.Tensor) -> Any:
    """Draw a random boolean tensor on the device of `data`: True (half of the time) if the image is not mirrored."""
    return uniform(data, 0, 1, torch.float64) < 0.5


def _flip_or_not(data, axis):
    keep = keeps(data)
    if data.device.type != "cpu" or torch.compiler.is_compiling():
        return torch.where(keep, data, data.flip(axis))  # without waiting for the random number
    return data.clone() if keep else _mirrored(data) if axis == 1 else data.flip(axis)


@op("_image_random_flip_left_right", aliases=("_npx__image_random_flip_left_right",), same_shape=True, stochastic=True)
def random_flip_left_right(data):
    """Mirror an image (H, W, C) horizontally, or not, with equal chances. `MXNetError` unless there are 1 or 3 channels.

    Example
    -------
    >>> image = mx.nd.array([1, 2]).reshape((1, 2, 1))
    >>> seen = {tuple(mx.nd.image.random_flip_left_right(image).asnumpy().ravel().tolist()) for _ in range(50)}
    >>> sorted(seen)
    [(1.0, 2.0), (2.0, 1.0)]
    """
    require_color("image.random_flip_left_right", data)
    return _flip_or_not(data, 1)


@op("_image_random_flip_top_bottom", aliases=("_npx__image_random_flip_top_bottom",), same_shape=True, stochastic=True)
def random_flip_top_bottom(data):
    """Mirror an image (H, W, C) vertically, or not, with equal chances. `MXNetError` unless there are 1 or 3 channels.

    Example
    -------
    >>> image = mx.nd.array([1, 2]).reshape((2, 1, 1))
    >>> seen = {tuple(mx.nd.image.random_flip_top_bottom(image).asnumpy().ravel().tolist()) for _ in range(50)}
    >>> sorted(seen)
    [(1.0, 2.0), (2.0, 1.0)]
    """
    require_color("image.random_flip_top_bottom", data)
    return _flip_or_not(data, 0)
