"""Operators on images: the `mx.nd.image` family, and OpenCV's decoding, resizing and padding (`_cv*`).

Images are (H, W, C), or (N, H, W, C) where an operator takes batches; `to_tensor` turns them into (C, H, W).
"""
import torch
import torch.nn.functional as F

from ..base import MXNetError
from .axes import require_ndim
from .integers import convert
from .random_state import generator
from .registry import op
from .schema import AtLeast0, Device, Floats, Shape
from .shapes import unify

_LUMA = (0.299, 0.587, 0.114)


@op("_image_to_tensor", aliases=("_npx__image_to_tensor",))
def to_tensor(data):
    """Images with values in [0, 255] as float32 in [0, 1]: (H, W, C) to (C, H, W), also in batches.

    Raises
    ------
    MXNetError
        If `data` is neither 3-D nor 4-D.

    Example
    -------
    >>> import mxnet as mx
    >>> image = mx.nd.array([[[255, 0, 51]]], dtype="uint8")         # one pixel
    >>> mx.nd.image.to_tensor(image).asnumpy()
    array([[[1. ]],
    <BLANKLINE>
           [[0. ]],
    <BLANKLINE>
           [[0.2]]], dtype=float32)
    """
    require_ndim("image.to_tensor", data, 3, 4)
    return data.movedim(-1, -3).to(torch.float32, memory_format=torch.contiguous_format).div(255)


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

    Whole numbers stay such: fractions are cut off, so convert images with `to_tensor` first.

    Raises
    ------
    MXNetError
        If there are not 1 or 3 channels, or `mean` or `std` has another number of values.

    Example
    -------
    >>> import mxnet as mx
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
    mean, std = (torch.tensor(v, dtype=pixels.dtype, device=data.device).reshape(-1, 1, 1) for v in (mean, std))
    out = (pixels - mean) / std
    return out if out.dtype is data.dtype else convert(convert(out, torch.int64), data.dtype)


def _resized_size(height, width, size, keep_ratio):
    """(height, width) after resizing to `size`, which is (width, height) or one number."""
    if len(size) not in (1, 2) or min(size) <= 0:
        raise MXNetError(f"image.resize: `size` must be one or two numbers above 0, (width, height), received {size}")
    if len(size) == 2:
        return size[1], size[0]
    if not keep_ratio:
        return size[0], size[0]
    return (height * size[0] // width, size[0]) if height > width else (size[0], width * size[0] // height)


_CV2_TYPES = (torch.uint8, torch.int16, torch.float32, torch.float64)


def _cv2_resize(image, height, width, interp, operator):
    """One (H, W, C) image on the CPU, resized by OpenCV as MXNet does."""
    import cv2
    if image.dtype not in _CV2_TYPES:
        raise MXNetError(f"{operator}: expected an image of type uint8, int16, float32 or float64, received {image.dtype}; "
                         "convert with astype")
    if not 0 <= interp <= 5:
        raise MXNetError(f"{operator}: `interp` must be one of OpenCV's methods 0 to 5, received {interp}")
    resized = cv2.resize(image.detach().numpy(), (width, height), interpolation=interp)
    return torch.from_numpy(resized).reshape(height, width, image.shape[-1])


@op("_image_resize", aliases=("_npx__image_resize",))
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
    >>> import mxnet as mx
    >>> image = mx.nd.zeros((20, 40, 3), dtype="uint8")
    >>> mx.nd.image.resize(image, size=(8, 6)).shape, mx.nd.image.resize(image, size=10, keep_ratio=True).shape
    ((6, 8, 3), (10, 20, 3))
    """
    require_ndim("image.resize", data, 3, 4)
    height, width = _resized_size(data.shape[-3], data.shape[-2], size, keep_ratio)
    if data.device.type == "cpu":
        if data.dim() == 3:
            return _cv2_resize(data, height, width, interp, "image.resize")
        return torch.stack([_cv2_resize(image, height, width, interp, "image.resize") for image in data])
    if interp not in (0, 1) and data.device.type != "meta":
        raise MXNetError(f"image.resize: only interp=0 (nearest) and 1 (linear) are supported on {data.device}, received {interp}")
    images = data.movedim(-1, -3).to(torch.float32)
    images = images if data.dim() == 4 else images.unsqueeze(0)
    out = F.interpolate(images, (height, width), mode="bilinear" if interp else "nearest")
    out = (out if data.dim() == 4 else out.squeeze(0)).movedim(-3, -1)
    return (out if data.is_floating_point() else out.round()).to(data.dtype).contiguous()


@resize.shape_rule
def _(in_shapes, out_shapes, *, size, keep_ratio, interp):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None and len(data) in (3, 4) and (min(data[-3:-1]) > 0 or not keep_ratio):
        out = unify(out, (*data[:-3], *_resized_size(data[-3], data[-2], size, keep_ratio), data[-1]))
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
    >>> import mxnet as mx
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


def _require_image(operator, data):
    if data.dim() != 3:
        raise MXNetError(f"{operator}: the image must have shape (height, width, channels), received {tuple(data.shape)}")


def _require_colours(operator, data):
    _require_image(operator, data)
    if data.shape[-1] not in (1, 3):
        raise MXNetError(f"{operator}: the last axis of the image must hold 1 or 3 channels, received {tuple(data.shape)}")


@op("_image_flip_left_right", aliases=("_npx__image_flip_left_right",), same_shape=True)
def flip_left_right(data):
    """Mirror an image (H, W, C) horizontally. `MXNetError` unless there are 1 or 3 channels.

    Example
    -------
    >>> import mxnet as mx
    >>> image = mx.nd.array([[1, 2], [3, 4]]).reshape((2, 2, 1))
    >>> mx.nd.image.flip_left_right(image)[:, :, 0].asnumpy()
    array([[2., 1.],
           [4., 3.]], dtype=float32)
    """
    _require_colours("image.flip_left_right", data)
    return data.flip(1)


@op("_image_flip_top_bottom", aliases=("_npx__image_flip_top_bottom",), same_shape=True)
def flip_top_bottom(data):
    """Mirror an image (H, W, C) vertically. `MXNetError` unless there are 1 or 3 channels.

    Example
    -------
    >>> import mxnet as mx
    >>> image = mx.nd.array([[1, 2], [3, 4]]).reshape((2, 2, 1))
    >>> mx.nd.image.flip_top_bottom(image)[:, :, 0].asnumpy()
    array([[3., 4.],
           [1., 2.]], dtype=float32)
    """
    _require_colours("image.flip_top_bottom", data)
    return data.flip(0)


def _uniform(data, low, high):
    """A random number on the device of `data`, as a tensor, so that nothing waits for it."""
    return torch.empty((), device=data.device).uniform_(low, high, generator=generator(data.device))


def _flip_or_not(data, axis):
    keep = _uniform(data, 0, 1) < 0.5
    if data.device.type != "cpu" or torch.compiler.is_compiling():
        return torch.where(keep, data, data.flip(axis))  # nothing waits for the random number
    return data.clone() if keep else data.flip(axis)


@op("_image_random_flip_left_right", aliases=("_npx__image_random_flip_left_right",), same_shape=True, draws=True)
def random_flip_left_right(data):
    """Mirror an image (H, W, C) horizontally, or not, with equal chances. `MXNetError` unless there are 1 or 3 channels.

    Example
    -------
    >>> import mxnet as mx
    >>> image = mx.nd.array([1, 2]).reshape((1, 2, 1))
    >>> seen = {tuple(mx.nd.image.random_flip_left_right(image).asnumpy().ravel().tolist()) for _ in range(50)}
    >>> sorted(seen)
    [(1.0, 2.0), (2.0, 1.0)]
    """
    _require_colours("image.random_flip_left_right", data)
    return _flip_or_not(data, 1)


@op("_image_random_flip_top_bottom", aliases=("_npx__image_random_flip_top_bottom",), same_shape=True, draws=True)
def random_flip_top_bottom(data):
    """Mirror an image (H, W, C) vertically, or not, with equal chances. `MXNetError` unless there are 1 or 3 channels.

    Example
    -------
    >>> import mxnet as mx
    >>> image = mx.nd.array([1, 2]).reshape((2, 1, 1))
    >>> seen = {tuple(mx.nd.image.random_flip_top_bottom(image).asnumpy().ravel().tolist()) for _ in range(50)}
    >>> sorted(seen)
    [(1.0, 2.0), (2.0, 1.0)]
    """
    _require_colours("image.random_flip_top_bottom", data)
    return _flip_or_not(data, 0)


def _saturate(values, dtype):
    """float32 values as `dtype`; only bytes have limits to keep to."""
    return values.clamp(0, 255).to(dtype) if dtype == torch.uint8 else values.to(dtype)


def _brightness(image, factor):
    return _saturate(image.float() * factor, image.dtype)


def _contrast(image, factor):
    pixels = image.float()
    gray = pixels * pixels.new_tensor(_LUMA) * 3 if image.shape[-1] > 1 else pixels
    return _saturate(pixels * factor + (1 - factor) * gray.mean(), image.dtype)


def _saturation(image, factor):
    if image.shape[-1] == 1:
        return image.clone()
    pixels = image.float()
    # MXNet 1.9.1 (image_random-inl.h) keeps only the blue part of the gray value; models were trained with that.
    return _saturate(pixels * factor + (1 - factor) * _LUMA[2] * pixels[..., 2:], image.dtype)


def _hue(image, turn):
    """Turn the hue of an RGB image by `turn` of a full circle, by way of hue, lightness and saturation."""
    if image.shape[-1] == 1:
        return image.clone()
    r, g, b = image.permute(2, 0, 1).float().contiguous().div_(255).unbind()
    high, low = torch.maximum(torch.maximum(r, g), b), torch.minimum(torch.minimum(r, g), b)
    spread, total = high - low, high + low
    gray = spread <= torch.finfo(torch.float32).eps
    safe = spread.masked_fill(gray, 1)
    light = total / 2
    saturation = (spread / torch.minimum(total, 2 - total).masked_fill_(gray, 1)).masked_fill_(gray, 0)
    hue = torch.where(high == r, (g - b) / safe, torch.where(high == g, (b - r) / safe + 2, (r - g) / safe + 4))
    hue = hue.masked_fill_(gray, 0) + turn * 6
    top = torch.where(light <= 0.5, light * (1 + saturation), light + saturation - light * saturation)
    bottom = 2 * light - top

    def channel(shift):
        # Each channel rises, stays, falls and stays over the six sectors of the circle.
        position = hue + shift
        position -= (position / 6).floor_().mul_(6)
        return bottom + (top - bottom) * torch.minimum(position, 4 - position).clamp_(0, 1)

    return _saturate(torch.stack([channel(2), channel(0), channel(4)], -1) * 255, image.dtype)


def _require_factors(operator, min_factor, max_factor):
    if min_factor < 0 or max_factor < 0:
        raise MXNetError(f"{operator}: min_factor and max_factor should be greater equal to 0, received {min_factor} and {max_factor}")


@op("_image_random_brightness", aliases=("_npx__image_random_brightness",), same_shape=True, draws=True)
def random_brightness(data, *, min_factor: float, max_factor: float):
    """Multiply an image (H, W, C) by a random factor in [`min_factor`, `max_factor`]; bytes stay between 0 and 255.

    Raises
    ------
    MXNetError
        If a factor is negative, or there are not 1 or 3 channels.

    Example
    -------
    >>> import mxnet as mx
    >>> image = mx.nd.array([[[10, 100, 200]]], dtype="uint8")
    >>> mx.nd.image.random_brightness(image, min_factor=2, max_factor=2).asnumpy()      # leaves one factor to draw
    array([[[ 20, 200, 255]]], dtype=uint8)
    """
    _require_colours("image.random_brightness", data)
    _require_factors("image.random_brightness", min_factor, max_factor)
    return _brightness(data, _uniform(data, *sorted((min_factor, max_factor))))


@op("_image_random_contrast", aliases=("_npx__image_random_contrast",), same_shape=True, draws=True)
def random_contrast(data, *, min_factor: float, max_factor: float):
    """Stretch an image (H, W, C) about its mean gray by a random factor in [`min_factor`, `max_factor`]; bytes stay between 0 and 255.

    Raises
    ------
    MXNetError
        If a factor is negative, or there are not 1 or 3 channels.

    Example
    -------
    >>> import mxnet as mx
    >>> image = mx.nd.array([[[100], [120]]])                # two gray pixels
    >>> mx.nd.image.random_contrast(image, min_factor=2, max_factor=2).asnumpy().ravel()
    array([ 90., 130.], dtype=float32)
    """
    _require_colours("image.random_contrast", data)
    _require_factors("image.random_contrast", min_factor, max_factor)
    return _contrast(data, _uniform(data, *sorted((min_factor, max_factor))))


@op("_image_random_saturation", aliases=("_npx__image_random_saturation",), same_shape=True, draws=True)
def random_saturation(data, *, min_factor: float, max_factor: float):
    """Strengthen the colours of an image (H, W, C) by a random factor in [`min_factor`, `max_factor`]; bytes stay between 0 and 255.

    As in MXNet the gray that a factor below 1 leads to comes from the blue channel alone.

    Raises
    ------
    MXNetError
        If a factor is negative, or there are not 1 or 3 channels.

    Example
    -------
    >>> import mxnet as mx
    >>> image = mx.nd.array([[[200, 50, 100]]], dtype="uint8")
    >>> mx.nd.image.random_saturation(image, min_factor=0, max_factor=0).asnumpy()      # no colour is left
    array([[[11, 11, 11]]], dtype=uint8)
    """
    _require_colours("image.random_saturation", data)
    _require_factors("image.random_saturation", min_factor, max_factor)
    return _saturation(data, _uniform(data, *sorted((min_factor, max_factor))))


@op("_image_random_hue", aliases=("_npx__image_random_hue",), same_shape=True, draws=True)
def random_hue(data, *, min_factor: float, max_factor: float):
    """Turn the hue of an image (H, W, C) by a random part of the circle in [`min_factor`, `max_factor`].

    Raises
    ------
    MXNetError
        If a factor is negative, or there are not 1 or 3 channels.

    Example
    -------
    >>> import mxnet as mx
    >>> red = mx.nd.array([[[255, 0, 0]]], dtype="uint8")
    >>> mx.nd.image.random_hue(red, min_factor=0.5, max_factor=0.5).asnumpy()           # half a circle on is cyan
    array([[[  0, 255, 255]]], dtype=uint8)
    """
    _require_colours("image.random_hue", data)
    _require_factors("image.random_hue", min_factor, max_factor)
    return _hue(data, _uniform(data, *sorted((min_factor, max_factor))))


@op("_image_random_color_jitter", aliases=("_npx__image_random_color_jitter",), same_shape=True, draws=True)
def random_color_jitter(data, *, brightness: float, contrast: float, saturation: float, hue: float):
    """Change brightness, contrast, saturation and hue of an image (H, W, C), each by up to that much, in random order.

    An amount of 0 leaves that property alone. `MXNetError` unless there are 1 or 3 channels.

    Example
    -------
    >>> import mxnet as mx
    >>> image = mx.nd.array([[[100, 50, 0]]])
    >>> found = mx.nd.image.random_color_jitter(image, brightness=0.5, contrast=0, saturation=0, hue=0).asnumpy()
    >>> bool(50 <= found[0, 0, 0] <= 150), bool(found[0, 0, 0] == 2 * found[0, 0, 1])
    (True, True)
    """
    _require_colours("image.random_color_jitter", data)
    steps = [(_brightness, brightness, 1), (_contrast, contrast, 1), (_saturation, saturation, 1), (_hue, hue, 0)]
    out = data.clone()
    for i in torch.randperm(4, generator=generator(data.device), device=data.device).cpu().tolist():
        change, most, center = steps[i]
        if most > 0:
            out = change(out, _uniform(data, center - most, center + most))
    return out


# The principal components of the colours of ImageNet, each scaled by its eigenvalue.
_PCA = ((55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009),
        (55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140),
        (55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203))


def _lighting(image, alpha):
    if image.shape[-1] == 1:
        return image.clone()
    shift = torch.tensor(_PCA, device=image.device) @ alpha
    # Line by line: three numbers at a time are too few for a processor's vectors.
    lines = image.flatten(1)
    return _saturate(lines.float() + shift.repeat(image.shape[1]), image.dtype).view(image.shape)


@op("_image_adjust_lighting", aliases=("_npx__image_adjust_lighting",), same_shape=True)
def adjust_lighting(data, *, alpha: Floats):
    """Add the principal components of ImageNet's colours, weighted by the three numbers `alpha`, to an image (H, W, C).

    Raises
    ------
    MXNetError
        If `alpha` does not have 3 numbers, or there are not 1 or 3 channels.

    Example
    -------
    >>> import mxnet as mx
    >>> image = mx.nd.zeros((1, 1, 3)) + 100
    >>> mx.nd.image.adjust_lighting(image, alpha=(-1, 0, 0)).asnumpy().round(1)         # the first one is brightness
    array([[[131.5, 132.2, 132.4]]], dtype=float32)
    """
    _require_colours("image.adjust_lighting", data)
    if len(alpha) != 3:
        raise MXNetError(f"image.adjust_lighting: `alpha` must have 3 numbers, received {alpha}")
    return _lighting(data, torch.tensor(alpha, device=data.device))


@op("_image_random_lighting", aliases=("_npx__image_random_lighting",), same_shape=True, draws=True)
def random_lighting(data, *, alpha_std: float = 0.05):
    """`adjust_lighting` by normally distributed numbers with standard deviation `alpha_std` (Krizhevsky et al. 2012).

    Example
    -------
    >>> import mxnet as mx
    >>> image = mx.nd.zeros((2, 2, 3)) + 100
    >>> shift = mx.nd.image.random_lighting(image, alpha_std=0.1) - image
    >>> bool((shift == shift[0, 0]).min())                   # all pixels are shifted alike
    True
    """
    _require_colours("image.random_lighting", data)
    return _lighting(data, torch.empty(3, device=data.device).normal_(0, alpha_std, generator=generator(data.device)))


def _decode(encoded, flag, to_rgb, what):
    import cv2
    image = cv2.imdecode(encoded, cv2.IMREAD_COLOR if flag else cv2.IMREAD_GRAYSCALE) if encoded.size else None
    if image is None:
        raise MXNetError(f"Decoding failed. Invalid image file: {what} is not an image that OpenCV reads")
    if flag and to_rgb:
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    return torch.from_numpy(image).reshape(*image.shape[:2], -1)


@op("_cvimdecode", aliases=("_npi_cvimdecode",))
def cvimdecode(buf, *, flag: AtLeast0 = 1, to_rgb: bool = True):
    """The image in the bytes `buf` of a file, as uint8 (H, W, C): in colour (RGB, or BGR without `to_rgb`), or gray with flag=0.

    Programs call it as ``mx.image.imdecode``.

    Raises
    ------
    MXNetError
        If `buf` is not of type uint8, or holds no image that OpenCV reads.

    Example
    -------
    >>> import mxnet as mx
    >>> buf = mx.nd.array(list(b"P6 1 1 255 " + bytes([255, 128, 0])), dtype="uint8")    # a file in the PPM format: one orange pixel
    >>> mx.image.imdecode(buf).asnumpy()
    array([[[255, 128,   0]]], dtype=uint8)
    """
    if buf.dtype != torch.uint8:
        raise MXNetError(f"imdecode: input needs to be uint8 buffer, received {buf.dtype}")
    return _decode(buf.cpu().numpy().reshape(-1), flag, to_rgb, f"a buffer of {buf.numel()} bytes")


@op("_cvimread", aliases=("_npi_cvimread",))
def cvimread(*, filename: str, flag: int = 1, to_rgb: bool = True, device: Device = None):
    """The image in a file, as `_cvimdecode` gives it. Programs call it as ``mx.image.imread``.

    Raises
    ------
    MXNetError
        If there is no such file, or it is no image that OpenCV reads.

    Example
    -------
    >>> import mxnet as mx
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "orange.ppm")
    ...     with open(path, "wb") as file:
    ...         count = file.write(b"P6 1 1 255 " + bytes([255, 128, 0]))
    ...     mx.image.imread(path).asnumpy()
    array([[[255, 128,   0]]], dtype=uint8)
    """
    import numpy as np
    try:
        encoded = np.fromfile(filename, dtype=np.uint8)
    except OSError as error:
        raise MXNetError(f"imread: '{filename}' couldn't open file: {error.strerror or error}") from None
    return _decode(encoded, flag, to_rgb, f"'{filename}'")


@op("_imdecode")
def imdecode_file(mean, *, index: int, x0: int, y0: int, x1: int, y1: int, c: int, size: int):
    """What ``mx.nd.imdecode`` is in files of old graphs. A graph holds no image's bytes, so it can't be run."""
    raise MXNetError(f"_imdecode: the {size} bytes of the image are not among the inputs of a graph; decode with mx.nd.imdecode or "
                     "mx.image.imdecode, and pass the array")


def _unknown_image(in_shapes, out_shapes, **_):
    return in_shapes, [unify(out_shapes[0], (-1, -1, -1))]


for _operator in (cvimdecode, cvimread):
    _operator.shape_rule(_unknown_image)

    @_operator.dtype_rule
    def _(in_types, out_types, **_):
        return [torch.uint8] * len(in_types), [torch.uint8]


@op("_cvimresize", aliases=("_npi_cvimresize",))
def cvimresize(src, *, w: int, h: int, interp: int = 1):
    """Resize an image (H, W, C) to width `w` and height `h`, by OpenCV's method `interp`. Programs call it as ``mx.image.imresize``.

    Raises
    ------
    MXNetError
        If `src` is not 3-D, a size is below 1, or OpenCV takes no such type or method.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.image.imresize(mx.nd.array([[[0], [4]]]), w=4, h=1).asnumpy().ravel()
    array([0., 1., 3., 4.], dtype=float32)
    """
    _require_image("imresize", src)
    if w < 1 or h < 1:
        raise MXNetError(f"imresize: w and h should be greater equal to 1, received w={w}, h={h}")
    return _cv2_resize(src.cpu(), h, w, interp, "imresize")


@cvimresize.shape_rule
def _(in_shapes, out_shapes, *, w, h, interp):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None and len(data) == 3:
        out = unify(out, (h, w, data[2]))
    return [data], [out]


@op("_cvcopyMakeBorder")
def cv_copy_make_border(src, *, top: int, bot: int, left: int, right: int, type: int = 0, value: float = 0.0, values: Floats = ()):
    """Put a border around an image (H, W, C): of OpenCV's border `type`, filled with `values` for each channel, or `value` for the first three.

    Programs call it as ``mx.image.copyMakeBorder``.

    Raises
    ------
    MXNetError
        If `src` is not 3-D.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.image.copyMakeBorder(mx.nd.array([[[7]]]), top=0, bot=1, left=1, right=1, value=5)[:, :, 0].asnumpy()
    array([[5., 7., 5.],
           [5., 5., 5.]], dtype=float32)
    """
    import cv2
    _require_image("copyMakeBorder", src)
    fill = tuple(values) or (value, value, value, 0)
    bordered = cv2.copyMakeBorder(src.cpu().numpy(), top, bot, left, right, type, value=fill)
    return torch.from_numpy(bordered).reshape(bordered.shape[0], bordered.shape[1], src.shape[2])


@cv_copy_make_border.shape_rule
def _(in_shapes, out_shapes, *, top, bot, left, right, **_):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None and len(data) == 3:
        out = unify(out, (data[0] + top + bot if data[0] >= 0 else -1, data[1] + left + right if data[1] >= 0 else -1, data[2]))
    return [data], [out]
