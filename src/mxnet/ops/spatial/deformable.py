"""Convolutions whose sampling points are moved by a learned offset."""
from typing import Literal, Optional

import torch

from ...base import MXNetError
from ...kernels.conv.deformable import patches as compiled_patches
from ...suggestions import shortened
from ..axes import require_ndim
from ..host_arrays import constant
from ..nn.common import check_bias
from ..registry import op
from ..schema import AtLeast1, Shape
from ..shapes import known, unify
from . import deformable_on_gpu
from .on_gpu import on_gpu
from .sampling import bilinear_gather

_Layout = Optional[Literal["NCDHW", "NCHW", "NCW"]]


def _size(shape, kernel, stride, dilate, pad):
    return tuple((s + 2 * p - (k - 1) * d - 1) // t + 1 if s >= 0 else -1
                 for s, k, t, d, p in zip(shape, kernel, stride, dilate, pad))


def _check(operator, data, offset, mask, weight, bias, kernel, stride, dilate, pad, num_filter, num_group, num_deformable_group, no_bias,
           layout):
    """Raise an error for inconsistent attributes and inputs, which would cause reads outside of the arrays."""
    require_ndim(operator, data, 4)
    check_bias(operator, bias, no_bias)
    if layout not in (None, "NCHW"):
        raise MXNetError(f"{operator}: `layout` must be 'NCHW', received {shortened(layout)}")
    for name, sizes, least in (("kernel", kernel, 1), ("stride", stride, 1), ("dilate", dilate, 1), ("pad", pad, 0)):
        if len(sizes) != 2 or min(sizes) < least:
            raise MXNetError(f"{operator}: `{name}` must be 2 numbers of at least {least}, received {sizes}")
    n, channels, height, width = data.shape
    for name, groups, divided, size in (("num_group", num_group, "channels of the data", channels), ("num_group", num_group, "filters", num_filter),
                                        ("num_deformable_group", num_deformable_group, "channels of the data", channels)):
        if groups < 1 or size % groups:
            raise MXNetError(f"{operator}: `{name}` must divide the {size} {divided}, received {groups}")
    size = _size((height, width), kernel, stride, dilate, pad)
    if min(size) < 1:
        raise MXNetError(f"{operator}: `kernel` {kernel} must fit into the padded data, received shape {tuple(data.shape)} and pad {pad}")
    taps = kernel[0] * kernel[1] * num_deformable_group
    for name, tensor, wanted in (("offset", offset, (n, 2 * taps, *size)), ("mask", mask, (n, taps, *size)),
                                 ("weight", weight, (num_filter, channels // num_group, *kernel)), ("bias", bias, (num_filter,))):
        if tensor is not None and tuple(tensor.shape) != wanted:
            raise MXNetError(f"{operator}: `{name}` must have shape {wanted}, received {tuple(tensor.shape)}")


def _convolve(operator, data, offset, mask, weight, bias, kernel, stride, dilate, pad, num_filter, num_group, num_deformable_group, no_bias,
              layout, outside):
    stride, dilate, pad = stride or (1, 1), dilate or (1, 1), pad or (0, 0)
    _check(operator, data, offset, mask, weight, bias, kernel, stride, dilate, pad, num_filter, num_group, num_deformable_group, no_bias, layout)
    if on_gpu(data):
        out = deformable_on_gpu.convolve(data, offset, mask, weight, num_group, num_deformable_group, kernel, stride, dilate, pad, outside)
        return out if bias is None else out + bias.reshape(-1, 1, 1)
    n, channels, height, width = data.shape
    rows, columns = _size((height, width), kernel, stride, dilate, pad)
    taps = kernel[0] * kernel[1]

    read = compiled_patches(data, offset, mask, num_deformable_group, kernel, stride, dilate, pad, outside == "zero")
    if read is not None:  # (n, rows, columns, taps, channels)
        by_group = read.reshape(n, rows * columns, taps, num_group, channels // num_group).permute(0, 3, 1, 2, 4).flatten(3)
        filters = weight.reshape(num_group, num_filter // num_group, channels // num_group, taps).transpose(2, 3).flatten(2)
        out = torch.matmul(filters, by_group.transpose(2, 3)).reshape(n, num_filter, rows, columns)
        return out if bias is None else out + bias.reshape(-1, 1, 1)

    # Axes: image, deformable group, channel within it, tap of the kernel, row, column.
    def line(values, axis):
        return constant(values, data.dtype, data.device).reshape([-1 if i == axis else 1 for i in range(6)])

    moves = offset.reshape(n, num_deformable_group, 1, taps, 2, rows, columns)
    y = (line([i * dilate[0] for i in range(kernel[0]) for _ in range(kernel[1])], 3)
         + line([i * stride[0] - pad[0] for i in range(rows)], 4) + moves[:, :, :, :, 0])
    x = (line([j * dilate[1] for _ in range(kernel[0]) for j in range(kernel[1])], 3)
         + line([j * stride[1] - pad[1] for j in range(columns)], 5) + moves[:, :, :, :, 1])
    planes = torch.arange(n * channels, device=data.device).reshape(n, num_deformable_group, channels // num_deformable_group, 1, 1, 1)
    base = planes * (height * width)
    values = bilinear_gather(data.reshape(-1), base, y, x, height, width, outside)
    if outside == "edge":
        values = values * ((y >= 0) & (y < height) & (x >= 0) & (x < width))
    if mask is not None:
        values = values * mask.reshape(n, num_deformable_group, 1, taps, rows, columns)
    patches = values.reshape(n, num_group, channels // num_group * taps, rows * columns)
    out = torch.matmul(weight.reshape(num_group, num_filter // num_group, patches.shape[2]), patches).reshape(n, num_filter, rows, columns)
    return out if bias is None else out + bias.reshape(-1, 1, 1)


def _rule(in_shapes, out_shapes, *, kernel, stride, dilate, pad, num_filter, num_group, num_deformable_group, no_bias, **_):
    """Shape inference of both operators: offset, mask, weight and bias follow from the data."""
    data, out = in_shapes[0], out_shapes[0]
    if data is None or len(data) != 4 or len(kernel) != 2:
        return in_shapes, out_shapes
    size = _size(data[2:], kernel, stride or (1, 1), dilate or (1, 1), pad or (0, 0))
    if known(data) and (data[1] % num_group or num_filter % num_group or data[1] % num_deformable_group):
        raise MXNetError(f"deformable convolution: num_group={num_group} must divide the {data[1]} channels and num_filter={num_filter}, "
                         f"num_deformable_group={num_deformable_group} the channels")
    taps = kernel[0] * kernel[1] * num_deformable_group
    extra = [(data[0], 2 * taps, *size)]
    if len(in_shapes) == (4 if no_bias else 5):  # with a mask
        extra.append((data[0], taps, *size))
    extra.append((num_filter, data[1] // num_group if data[1] >= 0 else -1, *kernel))
    extra.append((num_filter,))
    return ([data, *(unify(s, e) for s, e in zip(in_shapes[1:], extra))], [unify(out, (data[0], num_filter, *size))])


@op("_contrib_DeformableConvolution", aliases=("_npx_deformable_convolution",), complete_rule="shape",
    inputs_rule=lambda a: ("data", "offset", "weight") if a["no_bias"] else ("data", "offset", "weight", "bias"), names_output=True, amp="float32")
def deformable_convolution(data, offset, weight, bias=None, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (),
                           num_filter: AtLeast1, num_group: int = 1, num_deformable_group: int = 1, workspace: int = 1024,
                           no_bias: bool = False, layout: _Layout = None):
    """Convolution of `data` (N, C, H, W) whose taps are moved by `offset` (N, 2 * taps * num_deformable_group, H', W') (Dai et al. 2017).

    `weight` is (num_filter, C / num_group, kernel...), `bias` (num_filter,), the result (N, num_filter, H', W') as of `Convolution`. The
    offsets of a tap are (down, right) in pixels, and it reads by bilinear interpolation; what lies outside the data counts as 0. The channels
    of a deformable group share their offsets. `workspace` is a hint that nothing needs here.

    Raises
    ------
    MXNetError
        If the shapes do not fit, or the groups do not divide the channels.

    Example
    -------
    >>> x, w = mx.nd.array([[[[1, 2, 4, 8]]]]), mx.nd.ones((1, 1, 1, 1))
    >>> half_a_pixel_right = mx.nd.array([0, 0.5]).reshape((1, 2, 1, 1)).tile((1, 1, 1, 4))
    >>> mx.nd.contrib.DeformableConvolution(x, half_a_pixel_right, w, kernel=(1, 1), num_filter=1, no_bias=True).asnumpy()
    array([[[[1.5, 3. , 6. , 8. ]]]], dtype=float32)
    """
    return _convolve("DeformableConvolution", data, offset, None, weight, bias, kernel, stride, dilate, pad, num_filter, num_group,
                     num_deformable_group, no_bias, layout, "edge")


@op("_contrib_ModulatedDeformableConvolution", aliases=("_npx_modulated_deformable_convolution",), complete_rule="shape",
    inputs_rule=lambda a: ("data", "offset", "mask", "weight") if a["no_bias"] else ("data", "offset", "mask", "weight", "bias"), amp=None)
def modulated_deformable_convolution(data, offset, mask, weight, bias=None, *, kernel: Shape, stride: Shape = (), dilate: Shape = (),
                                     pad: Shape = (), num_filter: AtLeast1, num_group: int = 1, num_deformable_group: int = 1,
                                     workspace: int = 1024, no_bias: bool = False, im2col_step: AtLeast1 = 64, layout: _Layout = None):
    """`DeformableConvolution` whose taps are also weighted by `mask` (N, taps * num_deformable_group, H', W') (Zhu et al. 2019).

    Other inputs and attributes are those of `DeformableConvolution`. `im2col_step` and `workspace` bound MXNet's memory and change
    nothing here.

    Raises
    ------
    MXNetError
        If the shapes do not fit, or the groups do not divide the channels.

    Example
    -------
    >>> x, w, stay = mx.nd.array([[[[1, 2, 4, 8]]]]), mx.nd.ones((1, 1, 1, 1)), mx.nd.zeros((1, 2, 1, 4))
    >>> mask = mx.nd.array([[[[1, 0.5, 0, 1]]]])
    >>> mx.nd.contrib.ModulatedDeformableConvolution(x, stay, mask, w, kernel=(1, 1), num_filter=1, no_bias=True).asnumpy()
    array([[[[1., 1., 0., 8.]]]], dtype=float32)
    """
    return _convolve("ModulatedDeformableConvolution", data, offset, mask, weight, bias, kernel, stride, dilate, pad, num_filter, num_group,
                     num_deformable_group, no_bias, layout, "zero")


deformable_convolution.shape_rule(_rule)
modulated_deformable_convolution.shape_rule(_rule)
