"""Reading, resizing, cropping and rotating single images.

Images are NDArrays (height, width, channels) in RGB order, uint8 when read from a file. Random choices are drawn from Python's
`random` and NumPy's global generator, in MXNet's order: the same seeds give the same results.
"""
from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
import torch

from ..base import MXNetError, numeric_types
from ..ndarray import BilinearSampler as _bilinear_sampler
from ..ndarray import NDArray, _internal, array, from_torch
from ..ops import host_arrays
from ..ops.image.geometry import interpolation, shorter_side
from ..suggestions import shortened
from ..util import is_np_array

__all__ = ["center_crop", "color_normalize", "copyMakeBorder", "fixed_crop", "imdecode", "imread", "imresize", "imrotate", "random_crop",
           "random_rotate", "random_size_crop", "resize_short", "scale_down"]


def like(src: NDArray, tensor: torch.Tensor) -> NDArray:
    """Return `tensor` as an array of the class and context of `src`."""
    return type(src)._new(tensor, src._ctx)


def _returned(image):
    return image.as_np_ndarray() if is_np_array() else image


def imread(filename: str, *args: Any, **kwargs: Any) -> NDArray:
    """Read an image file.

    Parameters
    ----------
    filename : str
    flag : int
        1 for three channels, 0 for one (gray).
    to_rgb : bool
        RGB order if True, else BGR.
    out : NDArray, optional
        The array to write the image to.

    Returns
    -------
    NDArray
        uint8, (height, width, channels).

    Raises
    ------
    MXNetError
        If there is no such file or it is not an image.

    Example
    -------
    >>> import cv2, numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'a.png')
    >>> _ = cv2.imwrite(path, np.zeros((4, 6, 3), np.uint8))
    >>> mx.image.imread(path).shape
    (4, 6, 3)
    """
    return _returned(_internal._cvimread(filename, *args, **kwargs))


def imdecode(buf: bytes | bytearray | memoryview | np.ndarray | NDArray, *args: Any, **kwargs: Any) -> NDArray:
    """Decode the content of an image file.

    Parameters
    ----------
    buf : bytes, bytearray, numpy.ndarray or NDArray
    flag, to_rgb, out
        As in `imread`.

    Raises
    ------
    MXNetError
        If it is not an image.
    ValueError
        If `buf` is of another type.

    Example
    -------
    >>> import mxnet as mx, numpy as np, cv2
    >>> content = cv2.imencode('.png', np.zeros((4, 6, 3), np.uint8))[1].tobytes()
    >>> mx.image.imdecode(content).shape, mx.image.imdecode(content, flag=0).shape
    ((4, 6, 3), (4, 6, 1))
    """
    if not isinstance(buf, NDArray):
        if not isinstance(buf, (bytes, bytearray, memoryview, np.ndarray)):
            raise ValueError(f"imdecode: the bytes of an image file expected (bytes, bytearray, numpy.ndarray), received {type(buf).__name__}; "
                             "for a path call imread")
        content = np.ascontiguousarray(buf) if isinstance(buf, np.ndarray) else buf
        buf = from_torch(host_arrays.as_tensor(np.frombuffer(content, np.uint8), copy=True))
    return _returned(_internal._cvimdecode(buf, *args, **kwargs))


def imresize(src: NDArray, w: int, h: int, *args: Any, **kwargs: Any) -> NDArray:
    """Resize an image to width `w` and height `h`.

    Parameters
    ----------
    src : NDArray
    w, h : int
    interp : int
        OpenCV's number of the method: 0 nearest, 1 linear (default), 2 cubic, 3 area, 4 Lanczos.
    out : NDArray, optional

    Example
    -------
    >>> import mxnet as mx
    >>> mx.image.imresize(mx.nd.zeros((4, 6, 3), dtype='uint8'), 10, 5).shape
    (5, 10, 3)
    """
    return _returned(_internal._cvimresize(src, w, h, *args, **kwargs))


def copyMakeBorder(src: NDArray, top: int, bot: int, left: int, right: int, *args: Any, **kwargs: Any) -> NDArray:
    """Add a border to an image.

    Parameters
    ----------
    src : NDArray
    top, bot, left, right : int
        Its widths in pixels.
    type : int
        OpenCV's number: 0 constant (default), 1 reflect, 2 reflect without the edge, 3 replicate the edge, 4 wrap.
    values : tuple of float
        The constant, for each channel.
    value : float
        The old form of `values`.
    out : NDArray, optional

    Example
    -------
    >>> mx.image.copyMakeBorder(mx.nd.zeros((2, 3, 3), dtype='uint8'), 1, 1, 2, 2).shape
    (4, 7, 3)
    """
    return _internal._cvcopyMakeBorder(src, top, bot, left, right, *args, **kwargs)


def scale_down(src_size: Sequence[int], size: Sequence[int]) -> tuple[int, int]:
    """Return the size of a crop, reduced proportionally to fit into an image; both are (width, height).

    Example
    -------
    >>> import mxnet as mx
    >>> mx.image.scale_down((640, 480), (720, 120))
    (640, 106)
    """
    width, height = size
    most_width, most_height = src_size
    if most_height < height:
        width, height = width * most_height / height, most_height
    if most_width < width:
        width, height = most_width, height * most_width / width
    return int(width), int(height)


def resize_to(src: NDArray, width: int, height: int, interp: int) -> NDArray:
    """Resize as `imresize` does, also by MXNet's methods 9 and 10."""
    return imresize(src, width, height, interp=interpolation(interp, src.shape[:2], (height, width)))


def resize_short(src: NDArray, size: int, interp: int = 2) -> NDArray:
    """Resize an image so that its shorter side has `size` pixels.

    Parameters
    ----------
    src : NDArray
    size : int
    interp : int
        0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos, 9 by the sizes, 10 random.

    Example
    -------
    >>> mx.image.resize_short(mx.nd.zeros((6, 12, 3), dtype='uint8'), 3).shape
    (3, 6, 3)
    """
    height, width = shorter_side(*src.shape[:2], size)
    return resize_to(src, width, height, interp)


def fixed_crop(src: NDArray, x0: int, y0: int, w: int, h: int, size: Sequence[int] | None = None, interp: int = 2) -> NDArray:
    """Crop the window of `w` x `h` pixels at column `x0` and row `y0`, and resize it if `size` (width, height) is given.

    Example
    -------
    >>> mx.image.fixed_crop(mx.nd.zeros((6, 8, 3), dtype='uint8'), x0=1, y0=2, w=4, h=3).shape
    (3, 4, 3)
    """
    out = src[y0:y0 + h, x0:x0 + w]
    if size is None or (w, h) == tuple(size):
        return out
    return imresize(out, *size, interp=interpolation(interp, (h, w), size[::-1]))


def random_crop(src: NDArray, size: Sequence[int], interp: int = 2) -> tuple[NDArray, tuple[int, int, int, int]]:
    """Crop a window of `size` (width, height) at a random position; a smaller image is cropped to the aspect ratio and enlarged.

    Returns
    -------
    NDArray
    tuple of int
        (x, y, width, height) of the window.

    Example
    -------
    >>> part, (x, y, width, height) = mx.image.random_crop(mx.nd.zeros((6, 8, 3), dtype='uint8'), (3, 2))
    >>> part.shape, width, height
    ((2, 3, 3), 3, 2)
    """
    window = random_window(*src.shape[:2], size)
    return fixed_crop(src, *window, size, interp), window


def random_window(height: int, width: int, size: Sequence[int]) -> tuple[int, int, int, int]:
    """Return the window (x, y, width, height) of `random_crop` in an image of the given height and width."""
    new_width, new_height = scale_down((width, height), size)
    x0 = random.randint(0, width - new_width)
    y0 = random.randint(0, height - new_height)
    return x0, y0, new_width, new_height


def center_crop(src: NDArray, size: Sequence[int], interp: int = 2) -> tuple[NDArray, tuple[int, int, int, int]]:
    """Crop the central window of `size` (width, height); a smaller image is cropped to the aspect ratio and enlarged.

    Returns
    -------
    NDArray
    tuple of int
        (x, y, width, height) of the window.

    Example
    -------
    >>> import mxnet as mx
    >>> image, window = mx.image.center_crop(mx.nd.zeros((20, 30, 3)), (10, 8))
    >>> image.shape, window
    ((8, 10, 3), (10, 6, 10, 8))
    """
    window = center_window(*src.shape[:2], size)
    return fixed_crop(src, *window, size, interp), window


def center_window(height: int, width: int, size: Sequence[int]) -> tuple[int, int, int, int]:
    """Return the window (x, y, width, height) of `center_crop` in an image of the given height and width."""
    new_width, new_height = scale_down((width, height), size)
    return (width - new_width) // 2, (height - new_height) // 2, new_width, new_height


def random_size_crop(src: NDArray, size: Sequence[int], area: float | Sequence[float], ratio: Sequence[float], interp: int = 2,
                     **kwargs: Any) -> tuple[NDArray, tuple[int, int, int, int]]:
    """Crop a window of random position, area and aspect ratio and resize it to `size` (width, height).

    Parameters
    ----------
    src : NDArray
    size : tuple of int
    area : float or tuple of float
        Range of the fraction of the image that the window covers; a single number is the minimum, with the maximum 1.
    ratio : tuple of float
        Range of width / height.
    interp : int

    Returns
    -------
    NDArray
    tuple of int
        (x, y, width, height) of the window. If ten attempts find none that fits, it is that of `center_crop`.

    Example
    -------
    >>> part, _ = mx.image.random_size_crop(mx.nd.zeros((6, 8, 3), dtype='uint8'), (3, 2), area=(0.5, 1), ratio=(0.75, 1.33))
    >>> part.shape
    (2, 3, 3)
    """
    if "min_area" in kwargs:
        warnings.warn("`min_area` is the old name of `area`", DeprecationWarning, stacklevel=2)
        area = kwargs.pop("min_area")
    if kwargs:
        raise TypeError(f"random_size_crop: received the unknown arguments {', '.join(kwargs)}")
    window = random_size_window(*src.shape[:2], size, area, ratio)
    return fixed_crop(src, *window, size, interp), window


def random_size_window(height: int, width: int, size: Sequence[int], area: float | Sequence[float],
                       ratio: Sequence[float]) -> tuple[int, int, int, int]:
    """Return the window (x, y, width, height) of `random_size_crop` in an image of the given height and width."""
    least, most = (area, 1.0) if isinstance(area, numeric_types) else area
    for _ in range(10):
        pixels = random.uniform(least, most) * height * width
        aspect = np.exp(random.uniform(np.log(ratio[0]), np.log(ratio[1])))
        new_width, new_height = int(round(np.sqrt(pixels * aspect))), int(round(np.sqrt(pixels / aspect)))
        if new_width <= width and new_height <= height:
            x0 = random.randint(0, width - new_width)
            y0 = random.randint(0, height - new_height)
            return x0, y0, new_width, new_height
    return center_window(height, width, size)


def color_normalize(src: NDArray, mean: Any, std: Any = None) -> NDArray:
    """Subtract `mean` from an image and divide it by `std`, in place; each a number or NDArray, or None.

    Example
    -------
    >>> mx.image.color_normalize(mx.nd.array([[[3, 2, 1]]]), mx.nd.array([1, 2, 3]), mx.nd.array([2, 2, 2])).asnumpy()
    array([[[ 1.,  0., -1.]]], dtype=float32)
    """
    if mean is not None:
        src -= mean
    if std is not None:
        src /= std
    return src


def _zoom(angles, height, width, zoom_in):
    """Return the scale of the sampling grid for a result without padding (`zoom_in`), or with the complete image."""
    radius, corner = torch.hypot(height, width), torch.atan(height / width)
    angles = angles.abs()
    reach = [torch.maximum(torch.abs(radius * f(corner + angles)), torch.abs(radius * f(corner - angles))) for f in (torch.cos, torch.sin)]
    if zoom_in:
        return torch.minimum(width / reach[0], height / reach[1])
    return torch.maximum(reach[0] / width, reach[1] / height)


def imrotate(src: NDArray, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False) -> NDArray:
    """Rotate an image, or a batch of images.

    Parameters
    ----------
    src : NDArray
        float32, (channels, height, width) or (N, channels, height, width).
    rotation_degrees : float or NDArray
        For a batch also one angle for each image.
    zoom_in : bool
        Enlarge the image so that no padding is visible.
    zoom_out : bool
        Shrink the image so that all of it is visible.

    Raises
    ------
    ValueError
        If both zooms are True, the number of axes is wrong, or the number of angles differs from that of images.
    TypeError
        If the image is not float32, or several angles are given for a single image.

    Example
    -------
    >>> mx.image.imrotate(mx.nd.array([[[1, 2], [3, 4]]]), 90).asnumpy().round()
    array([[[2., 4.],
            [1., 3.]]], dtype=float32)
    """
    if zoom_in and zoom_out:
        raise ValueError("imrotate: zoom_in or zoom_out expected, received both")
    if src.dtype != np.float32:
        raise TypeError(f"imrotate: float32 images expected, received {np.dtype(src.dtype).name}; convert with astype")
    if src.ndim == 3:
        if not isinstance(rotation_degrees, Number):
            raise TypeError(f"imrotate: one angle, a number, expected for one image, received {type(rotation_degrees).__name__}")
        return imrotate(src.expand_dims(axis=0), rotation_degrees, zoom_in, zoom_out)[0]
    if src.ndim != 4:
        raise ValueError(f"imrotate: an image (C, H, W) or a batch (N, C, H, W) expected, received shape {src.shape}")
    count, _, height, width = src.shape
    device = src.context.torch_device
    if isinstance(rotation_degrees, Number):
        degrees = torch.full((count,), float(rotation_degrees), device=device)
    else:
        degrees = rotation_degrees._data.to(device, torch.float32)
    if len(degrees) != count:
        raise ValueError(f"imrotate: an angle for each of {count} images expected, received {len(degrees)}")
    angles = (degrees * (np.pi / 180)).reshape(-1, 1, 1)
    middle_y, middle_x = (height - 1) / 2, (width - 1) / 2
    y = (torch.arange(height, device=device) - middle_y).reshape(1, -1, 1)
    x = (torch.arange(width, device=device) - middle_x).reshape(1, 1, -1)
    # Scaled to [-1, 1] after the rotation, which keeps the aspect ratio.
    grid = torch.stack([(x * angles.cos() - y * angles.sin()) / middle_x, (x * angles.sin() + y * angles.cos()) / middle_y], dim=1)
    if zoom_in or zoom_out:
        sides = (torch.tensor(float(side), device=device) for side in (height, width))
        grid = grid * _zoom(angles, *sides, zoom_in).unsqueeze(-1)
    return _bilinear_sampler(src, like(src, grid))


def random_rotate(src: NDArray, angle_limits: Sequence[float], zoom_in: bool = False, zoom_out: bool = False) -> NDArray:
    """Rotate by random angles between two limits in degrees, one for each image; see `imrotate`.

    Example
    -------
    >>> mx.image.random_rotate(mx.nd.ones((3, 8, 8)), (-10, 10)).shape
    (3, 8, 8)
    """
    if src.ndim == 3:
        return imrotate(src, np.random.uniform(*angle_limits), zoom_in, zoom_out)
    return imrotate(src, array(np.random.uniform(*angle_limits, size=src.shape[0])), zoom_in, zoom_out)


def check_per_channel(name: str, values: Any, default: Any) -> np.ndarray | None:
    """Check a mean or deviation, 1 or 3 numbers, and return it; True selects the default.

    Raises
    ------
    MXNetError
        If it is something else.
    """
    if values is None:
        return None
    if values is True:
        return np.array(default)
    if isinstance(values, (list, tuple)):
        values = np.array(values)
    if not isinstance(values, (np.ndarray, NDArray)) or len(values.shape) != 1 or values.shape[0] not in (1, 3):
        raise MXNetError(f"{name} must be True, None or an array of 1 or 3 numbers, received {shortened(values)}")
    return values
