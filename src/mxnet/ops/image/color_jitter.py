"""Random brightness, contrast, saturation, hue and lighting of images."""
import torch

from ...base import MXNetError
from ...kernels.image import color_jitter as kernels
from ..host_arrays import constant, sent
from ..registry import op
from ..schema import Floats
from ..shapes import unify
from .common import normal, order, require_color, uniform
from .constants import EIGENVALUES, EIGENVECTORS, LUMA

_NOTHING, _LUMA = torch.zeros(3), torch.tensor(LUMA, dtype=torch.float64)
# Each component scaled by its deviation; a row for each channel.
_PCA = torch.tensor([[value * v for value, v in zip(EIGENVALUES, row)] for row in EIGENVECTORS])


def _saturate(values, dtype):
    """float32 values as `dtype`; only bytes have limits to keep to."""
    return values.clamp(0, 255).to(dtype) if dtype == torch.uint8 else values.to(dtype)


def _brightness(image, factor):
    result = kernels.shift(image, factor, _NOTHING)
    return result if result is not None else _saturate(image.float() * factor, image.dtype)


def _contrast(image, factor):
    sums = kernels.sums(image)
    if sums is not None:
        mean = (sums @ _LUMA).float() / (image.numel() // 3)
    else:
        pixels = image.float()
        mean = (pixels * constant(LUMA, pixels.dtype, pixels.device) * 3 if image.shape[-1] > 1 else pixels).mean()
    change = (1 - factor) * mean
    result = kernels.shift(image, factor, change.expand(3).contiguous())
    return result if result is not None else _saturate(image.float() * factor + change, image.dtype)


def _saturation(image, factor):
    if image.shape[-1] == 1:
        return image.clone()
    result = kernels.fade(image, factor, (1 - factor) * LUMA[2])
    if result is not None:
        return result
    pixels = image.float()
    # MXNet 1.9.1 (image_random-inl.h) keeps only the blue part of the gray value; models were trained with that.
    return _saturate(pixels * factor + (1 - factor) * LUMA[2] * pixels[..., 2:], image.dtype)


def _hue(image, turn):
    """Rotate the hue of an RGB image by `turn` of a full circle, by way of hue, lightness and saturation."""
    if image.shape[-1] == 1:
        return image.clone()
    result = kernels.rotate_hue(image, turn)
    if result is not None:
        return result
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


@op("_image_random_brightness", aliases=("_npx__image_random_brightness",), same_shape=True, stochastic=True)
def random_brightness(data, *, min_factor: float, max_factor: float):
    """Multiply an image (H, W, C) by a random factor in [`min_factor`, `max_factor`]; bytes stay between 0 and 255.

    Raises
    ------
    MXNetError
        If a factor is negative, or there are not 1 or 3 channels.

    Example
    -------
    >>> image = mx.nd.array([[[10, 100, 200]]], dtype="uint8")
    >>> mx.nd.image.random_brightness(image, min_factor=2, max_factor=2).asnumpy()      # leaves one factor to draw
    array([[[ 20, 200, 255]]], dtype=uint8)
    """
    require_color("image.random_brightness", data)
    _require_factors("image.random_brightness", min_factor, max_factor)
    return _brightness(data, uniform(data, *sorted((min_factor, max_factor))))


@op("_image_random_contrast", aliases=("_npx__image_random_contrast",), same_shape=True, stochastic=True)
def random_contrast(data, *, min_factor: float, max_factor: float):
    """Stretch an image (H, W, C) about its mean gray by a random factor in [`min_factor`, `max_factor`]; bytes stay between 0 and 255.

    Raises
    ------
    MXNetError
        If a factor is negative, or there are not 1 or 3 channels.

    Example
    -------
    >>> image = mx.nd.array([[[100], [120]]])                # two gray pixels
    >>> mx.nd.image.random_contrast(image, min_factor=2, max_factor=2).asnumpy().ravel()
    array([ 90., 130.], dtype=float32)
    """
    require_color("image.random_contrast", data)
    _require_factors("image.random_contrast", min_factor, max_factor)
    return _contrast(data, uniform(data, *sorted((min_factor, max_factor))))


@op("_image_random_saturation", aliases=("_npx__image_random_saturation",), same_shape=True, stochastic=True)
def random_saturation(data, *, min_factor: float, max_factor: float):
    """Strengthen the colours of an image (H, W, C) by a random factor in [`min_factor`, `max_factor`]; bytes stay between 0 and 255.

    As in MXNet the gray for factors below 1 is computed from the blue channel alone.

    Raises
    ------
    MXNetError
        If a factor is negative, or there are not 1 or 3 channels.

    Example
    -------
    >>> image = mx.nd.array([[[200, 50, 100]]], dtype="uint8")
    >>> mx.nd.image.random_saturation(image, min_factor=0, max_factor=0).asnumpy()      # no colour is left
    array([[[11, 11, 11]]], dtype=uint8)
    """
    require_color("image.random_saturation", data)
    _require_factors("image.random_saturation", min_factor, max_factor)
    return _saturation(data, uniform(data, *sorted((min_factor, max_factor))))


@op("_image_random_hue", aliases=("_npx__image_random_hue",), same_shape=True, stochastic=True)
def random_hue(data, *, min_factor: float, max_factor: float):
    """Rotate the hue of an image (H, W, C) by a random part of the circle in [`min_factor`, `max_factor`].

    Raises
    ------
    MXNetError
        If a factor is negative, or there are not 1 or 3 channels.

    Example
    -------
    >>> red = mx.nd.array([[[255, 0, 0]]], dtype="uint8")
    >>> mx.nd.image.random_hue(red, min_factor=0.5, max_factor=0.5).asnumpy()           # half a circle on is cyan
    array([[[  0, 255, 255]]], dtype=uint8)
    """
    require_color("image.random_hue", data)
    _require_factors("image.random_hue", min_factor, max_factor)
    return _hue(data, uniform(data, *sorted((min_factor, max_factor))))


@op("_image_random_color_jitter", aliases=("_npx__image_random_color_jitter",), same_shape=True, stochastic=True)
def random_color_jitter(data, *, brightness: float, contrast: float, saturation: float, hue: float):
    """Change brightness, contrast, saturation and hue of an image (H, W, C), each by up to that much, in random order.

    An amount of 0 leaves that property alone. `MXNetError` unless there are 1 or 3 channels.

    Example
    -------
    >>> image = mx.nd.array([[[100, 50, 0]]])
    >>> found = mx.nd.image.random_color_jitter(image, brightness=0.5, contrast=0, saturation=0, hue=0).asnumpy()
    >>> bool(50 <= found[0, 0, 0] <= 150), bool(found[0, 0, 0] == 2 * found[0, 0, 1])
    (True, True)
    """
    require_color("image.random_color_jitter", data)
    steps = [(_brightness, brightness, 1), (_contrast, contrast, 1), (_saturation, saturation, 1), (_hue, hue, 0)]
    out = data.clone()
    for i in order(data):
        change, most, center = steps[i]
        if most > 0:
            out = change(out, uniform(data, center - most, center + most))
    return out


@random_color_jitter.shape_rule
def _(in_shapes, out_shapes, **_):
    data = unify(in_shapes[0], out_shapes[0])
    if data is not None and (len(data) != 3 or data[2] not in (-1, 1, 3)):
        return in_shapes, out_shapes  # the operator's call raises the error
    return [data], [data]


def _lighting(image, alpha):
    if image.shape[-1] == 1:
        return image.clone()
    shift = sent(_PCA, image.device) @ alpha
    result = kernels.shift(image, 1, shift)
    if result is not None:
        return result
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
    >>> image = mx.nd.zeros((1, 1, 3)) + 100
    >>> mx.nd.image.adjust_lighting(image, alpha=(-1, 0, 0)).asnumpy().round(1)         # the first one is brightness
    array([[[131.5, 132.2, 132.4]]], dtype=float32)
    """
    require_color("image.adjust_lighting", data)
    if len(alpha) != 3:
        raise MXNetError(f"image.adjust_lighting: `alpha` must have 3 numbers, received {alpha}")
    return _lighting(data, constant(alpha, torch.float32, data.device))


@op("_image_random_lighting", aliases=("_npx__image_random_lighting",), same_shape=True, stochastic=True)
def random_lighting(data, *, alpha_std: float = 0.05):
    """`adjust_lighting` by normally distributed numbers with standard deviation `alpha_std` (Krizhevsky et al. 2012).

    Example
    -------
    >>> image = mx.nd.zeros((2, 2, 3)) + 100
    >>> shift = mx.nd.image.random_lighting(image, alpha_std=0.1) - image
    >>> bool((shift == shift[0, 0]).min())                   # all pixels are shifted alike
    True
    """
    require_color("image.random_lighting", data)
    return _lighting(data, normal(data, 3, alpha_std))
