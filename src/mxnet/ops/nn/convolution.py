"""Convolution and its transpose, over one to three spatial axes."""
from typing import Literal, Optional

import torch

from ...base import MXNetError
from ...kernels.conv.convolution import deconvolution as compiled_deconvolution
from ...suggestions import shortened
from ..dtypes import same_type
from ..quantization.arithmetic import Quantized, holding, in_units_of_product, product_range
from ..quantization.form import EightBits, Int8, quantized_form
from ..registry import op
from ..schema import AtLeast1, Shape
from .common import (
    LAYOUTS,
    assign,
    bias_inputs,
    channels_last,
    check_bias,
    shape_to_channels_first,
    shape_to_channels_last,
    to_channels_first,
    to_channels_last,
)

_CONVOLVE = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}
_TRANSPOSE = {1: torch.conv_transpose1d, 2: torch.conv_transpose2d, 3: torch.conv_transpose3d}

Layout = Optional[Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"]]
Tuning = Optional[Literal["off", "limited_workspace", "fastest"]]


@op("Convolution", aliases=("_npx_convolution",), inputs_rule=bias_inputs, result_type="inputs", inplace_safe=True, compute_bound=True,
    complete_rule=True, names_output=True, amp=("low", "low"))
def convolution(data, weight, bias=None, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (), num_filter: AtLeast1,
                num_group: int = 1, workspace: int = 1024, no_bias: bool = False, cudnn_tune: Tuning = None, cudnn_off: bool = False,
                layout: Layout = None):
    """Convolve `data` (N, C, spatial...) with `weight` (num_filter, C / num_group, kernel...) and add `bias` (num_filter,) unless `no_bias`.

    Each spatial size becomes ``floor((size + 2 * pad - dilate * (kernel - 1) - 1) / stride) + 1``. With a layout that ends in
    C, data, weight and result all have their channels last. `workspace`, `cudnn_tune` and `cudnn_off` are hints that
    nothing needs here.

    Raises
    ------
    MXNetError
        If the kernel does not fit the data, or the groups do not divide the channels.

    Example
    -------
    >>> x, w = mx.nd.ones((1, 1, 4, 4)), mx.nd.ones((2, 1, 3, 3))
    >>> mx.nd.Convolution(x, w, kernel=(3, 3), num_filter=2, no_bias=True).shape
    (1, 2, 2, 2)
    """
    shape = weight.shape
    if data.dtype is torch.int8:  # what does not fit into the result becomes the largest number, as with the oneDNN of MXNet
        wide = (t if t is None else t.double() for t in (data, weight, bias))
        return convolution.raw(*wide, kernel=kernel, stride=stride, dilate=dilate, pad=pad, num_filter=num_filter, num_group=num_group,
                               no_bias=no_bias, layout=layout).clamp_(-128, 127).to(torch.int8)
    if layout is None or layout[1] == "C":
        if (shape[0] != num_filter or shape[2:] != kernel or data.dim() != len(shape)
                or not _consistent(kernel, stride, dilate, pad, layout, bias, no_bias)):
            _refuse("Convolution", data, weight, bias, kernel, stride, dilate, pad, num_filter, num_group, no_bias, layout)
        if stride and max(stride) > _LONG:
            stride = tuple(min(s, size + 2 * p) for s, size, p in zip(stride, data.shape[2:], pad or (0,) * len(stride)))
        if kernel == (1, 1) and shape[1] < _NARROW and stride and max(stride) > 1:
            data, stride, pad = _strided(data, stride, pad), (1, 1), (0, 0)
        return _CONVOLVE[len(kernel)](data, weight, bias, stride or 1, pad or 0, dilate or 1, num_group)
    if (shape[0] != num_filter or shape[1:-1] != kernel or data.dim() != len(shape)
            or not _consistent(kernel, stride, dilate, pad, layout, bias, no_bias)):
        _refuse("Convolution", data, weight, bias, kernel, stride, dilate, pad, num_filter, num_group, no_bias, layout)
    data = to_channels_first(data)
    if kernel == (1, 1) and shape[-1] < _NARROW and stride and max(stride) > 1:
        data, stride, pad = _strided(data, stride, pad), (1, 1), (0, 0)
    out = _CONVOLVE[len(kernel)](data, to_channels_first(weight), bias, stride or 1, pad or 0, dilate or 1, num_group)
    return to_channels_last(out)


_FAR = 2 ** 31 - 1  # beyond it torch's sums of sizes overflow, and it reads elsewhere
_NARROW = 8  # channels; the gradient of fewer filters writes beyond its end in oneDNN on AVX2, if data lie channels last and the step is 2
_LONG = 4096  # a step from which on it is shortened to what leaves the data as well: the gradient takes memory for all of it


def _strided(data, stride, pad):
    """Return the pixels (N, C, H, W) that filters of one pixel read."""
    if pad and any(pad):
        data = torch.nn.functional.pad(data, (pad[1], pad[1], pad[0], pad[0]))
    return data[:, :, ::stride[0], ::stride[1]]


def _apart(images, stride, pad, adj):
    """Return the images (N, C, H, W) with zeros between their pixels, as a transposed convolution with such a step has them."""
    sizes = [(size - 1) * s + 1 for size, s in zip(images.shape[2:], stride)]
    wide = images.new_zeros((*images.shape[:2], *(size + a for size, a in zip(sizes, adj))))
    wide[:, :, :sizes[0]:stride[0], :sizes[1]:stride[1]] = images
    return wide[:, :, pad[0]:wide.shape[2] - pad[0], pad[1]:wide.shape[3] - pad[1]]


def _consistent(kernel, stride, dilate, pad, layout, bias, no_bias):
    """Return True if each attribute has one number for each axis of the kernel, and the bias is present exactly without `no_bias`."""
    ndim = len(kernel)
    return (len(stride or kernel) == len(dilate or kernel) == len(pad or kernel) == ndim and max(*pad, *dilate, 0, 0) <= _FAR
            and (layout is None or len(layout) == ndim + 2) and (bias is None) is no_bias and ndim in _CONVOLVE)


def _refuse(name, data, weight, bias, kernel, stride, dilate, pad, num_filter, num_group, no_bias, layout):
    """Raise the error for inconsistent arguments, which torch would accept: it reads the sizes from the weight and broadcasts single numbers."""
    check_bias(name, bias, no_bias)
    _convolution_shape_rule([tuple(t.shape) for t in (data, weight, bias) if t is not None], [None], kernel=kernel, stride=stride,
                            dilate=dilate, pad=pad, num_filter=num_filter, num_group=num_group, layout=layout, name=name)


def _check_window(name, shape, kernel, stride, dilate, pad, num_filter, num_group, layout):
    ndim = len(kernel)
    if not 1 <= ndim <= 3:
        raise MXNetError(f"{name}: `kernel` must have 1 to 3 sizes, received {kernel}")
    if layout is not None and len(layout) != ndim + 2:
        raise MXNetError(f"{name}: `layout` must name the {ndim + 2} axes that `kernel` {kernel} asks for, received {shortened(layout)}")
    if len(shape) != ndim + 2:
        raise MXNetError(f"{name}: `kernel` {kernel} needs {ndim + 2}-D data, received shape {tuple(shape)}")
    for attribute, sizes, least in (("kernel", kernel, 1), ("stride", stride, 1), ("dilate", dilate, 1), ("pad", pad, 0)):
        if len(sizes) != ndim or min(sizes) < least:
            raise MXNetError(f"{name}: `{attribute}` must be {ndim} numbers of at least {least}, as `kernel` {kernel}, received {sizes}")
        if max(sizes) > _FAR:
            raise MXNetError(f"{name}: `{attribute}` must lie below 2**31, received {sizes}")
    if num_filter < 1 or num_group < 1 or num_filter % num_group:
        raise MXNetError(f"{name}: `num_filter` must be a positive multiple of `num_group`, received {num_filter} and {num_group}")
    if shape[1] >= 0 and shape[1] % num_group:
        raise MXNetError(f"{name}: `num_group` {num_group} does not divide the {shape[1]} channels of the data")


def _convolution_shape_rule(in_shapes, out_shapes, *, kernel, stride, dilate, pad, num_filter, num_group, layout, name="Convolution", **_):
    if in_shapes[0] is None:
        return in_shapes, out_shapes
    ndim, last = len(kernel), channels_last(layout)
    stride, dilate, pad = stride or (1,) * ndim, dilate or (1,) * ndim, pad or (0,) * ndim
    data = shape_to_channels_first(in_shapes[0]) if last else in_shapes[0]
    _check_window(name, data, kernel, stride, dilate, pad, num_filter, num_group, layout)
    arrange = shape_to_channels_last if last else tuple
    assign(in_shapes, 1, arrange((num_filter, data[1] // num_group if data[1] >= 0 else -1, *kernel)), f"{name}'s weight")
    assign(in_shapes, 2, (num_filter,), f"{name}'s bias")
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilate)]
    sizes = []
    for size, r, s, p in zip(data[2:], reach, stride, pad):
        if 0 <= size + 2 * p < r and size >= 0:
            raise MXNetError(f"{name}: kernel size exceeds input: a kernel that reaches over {r} does not fit size {size} padded by {p}")
        sizes.append((size + 2 * p - r) // s + 1 if size >= 0 else -1)
    assign(out_shapes, 0, arrange((data[0], num_filter, *sizes)), f"{name}'s output")
    # The output's shape determines the batch size, and with stride 1 also the input's size.
    out = shape_to_channels_first(out_shapes[0]) if last else out_shapes[0]
    back = [o + r - 1 - 2 * p if o >= 0 and s == 1 else size for o, r, s, p, size in zip(out[2:], reach, stride, pad, data[2:])]
    assign(in_shapes, 0, arrange((out[0], data[1], *back)), f"{name}'s data")
    return in_shapes, out_shapes


convolution.shape_rule(_convolution_shape_rule)
convolution.dtype_rule(same_type)


@quantized_form(convolution, "_contrib_quantized_conv", result=torch.int32, must=True)
def quantized_conv(data: EightBits, weight: Int8, bias: Int8 = None, **attributes) -> Quantized:
    """A convolution of uint8 or int8 `data` with int8 `weight`; the ranges follow. Returns int32, and the range that it represents.

    The range is that of the products, and `bias` (int8) is turned into their units first, as MXNet does on GPUs. On CPUs it adds the
    integers as they are, and says of uint8 `data` that they stand for twice what they do.

    Example
    -------
    >>> x, w = mx.nd.array([[[1, -2, 5]]], dtype='int8'), mx.nd.array([[[3, 4]]], dtype='int8')
    >>> low, high = mx.nd.array([-1]), mx.nd.array([1])
    >>> out, *ends = mx.nd.contrib.quantized_conv(x, w, low, high, low, high, kernel=(2,), num_filter=1, no_bias=True)
    >>> out.asnumpy()
    array([[[-5, 14]]], dtype=int32)
    """
    exact = holding(weight.values[:1].numel())
    out = convolution.raw(data.values.to(exact), weight.values.to(exact), **{**attributes, "no_bias": True})
    if bias is not None:
        own = in_units_of_product(bias, data, weight)
        out = out.to(torch.float64) + (own if channels_last(attributes["layout"]) else own.reshape(-1, *[1] * (out.dim() - 2)))
    return Quantized(out.to(torch.int32), *product_range(data, weight))


# The operator of MXNet before 0.9, kept for old files; the same mathematics.
convolution_v1 = op("Convolution_v1", complete_rule="shape", inputs_rule=bias_inputs, names_output=True, amp="float32")(convolution.raw)
convolution_v1.shape_rule(_convolution_shape_rule)
convolution_v1.dtype_rule(same_type)


def _transposed_padding(sizes, kernel, stride, dilate, pad, adj, target_shape):
    """Padding and output adjustment, which a target shape determines."""
    ndim = len(kernel)
    if not any(target_shape):
        return pad or (0,) * ndim, adj or (0,) * ndim
    if len(target_shape) != ndim:
        raise MXNetError(f"Deconvolution: `target_shape` must have {ndim} sizes, as `kernel` {kernel}, received {target_shape}")
    pads, adjs = [], []
    for size, k, s, d, target in zip(sizes, kernel, stride, dilate, target_shape):
        excess = s * (size - 1) + d * (k - 1) + 1 - target
        if excess < 0:
            raise MXNetError(f"Deconvolution: too big target shape {target_shape} for data of spatial shape {tuple(sizes)}")
        pads.append((excess + 1) // 2)
        adjs.append(excess % 2)
    return tuple(pads), tuple(adjs)


@op("Deconvolution", aliases=("_npx_deconvolution",), inputs_rule=bias_inputs, result_type="inputs", inplace_safe=True, compute_bound=True,
    complete_rule="shape", names_output=True, amp="low")
def deconvolution(data, weight, bias=None, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (), adj: Shape = (),
                  target_shape: Shape = (), num_filter: AtLeast1, num_group: int = 1, workspace: int = 512, no_bias: bool = True,
                  cudnn_tune: Tuning = None, cudnn_off: bool = False, layout: Layout = None):
    """The transpose of a convolution: `data` (N, C, spatial...), `weight` (C, num_filter / num_group, kernel...).

    `bias` (num_filter,) is added unless `no_bias`; with a `layout` that ends in C the channels come last, as in `Convolution`. Each spatial
    size becomes ``stride * (size - 1) + dilate * (kernel - 1) + 1 - 2 * pad + adj``, or that of `target_shape`, from which padding and
    adjustment are then computed. `workspace`, `cudnn_tune` and `cudnn_off` are hints that nothing needs here.

    Raises
    ------
    MXNetError
        If the target shape is too big, or the groups do not divide the channels.

    Example
    -------
    >>> x, w = mx.nd.ones((1, 1, 2, 2)), mx.nd.ones((1, 3, 2, 2))
    >>> mx.nd.Deconvolution(x, w, kernel=(2, 2), stride=(2, 2), num_filter=3).shape
    (1, 3, 4, 4)
    """
    last = channels_last(layout)
    if last:
        data, weight = to_channels_first(data), to_channels_first(weight)
    if (weight.shape[2:] != kernel or weight.shape[1] * num_group != num_filter or data.dim() != weight.dim() or adj or target_shape
            or not _consistent(kernel, stride, dilate, pad, layout, bias, no_bias)):
        check_bias("Deconvolution", bias, no_bias)
        _deconvolution_shape_rule([tuple(t.shape) for t in (data, weight, bias) if t is not None], [None], kernel=kernel, stride=stride,
                                  dilate=dilate, pad=pad, adj=adj, target_shape=target_shape, num_filter=num_filter, num_group=num_group,
                                  layout=layout and LAYOUTS.get(len(layout) - 2))
    if target_shape:
        pad, adj = _transposed_padding(data.shape[2:], kernel, stride or (1,) * len(kernel), dilate or (1,) * len(kernel), pad, adj,
                                       target_shape)
    out = None
    if len(kernel) == 2 and num_group == 1:
        out = compiled_deconvolution(data, weight, bias, stride or (1, 1), pad or (0, 0), adj or (0, 0), dilate or (1, 1))
    if out is None and kernel == (1, 1) and weight.shape[1] < _NARROW and stride and max(stride) > 1:
        out = _TRANSPOSE[2](data, weight, None, 1, 0, 0, num_group)
        out = _apart(out, stride, pad or (0, 0), adj or (0, 0))
        out = out if bias is None else out + bias[:, None, None]
    if out is None:
        out = _TRANSPOSE[len(kernel)](data, weight, bias, stride or 1, pad or 0, adj or 0, num_group, dilate or 1)
    return to_channels_last(out) if last else out


@deconvolution.shape_rule
def _deconvolution_shape_rule(in_shapes, out_shapes, *, kernel, stride, dilate, pad, adj, target_shape, num_filter, num_group, layout, **_):
    if in_shapes[0] is None:
        return in_shapes, out_shapes
    ndim, last = len(kernel), channels_last(layout)
    stride, dilate, pad, adj = stride or (1,) * ndim, dilate or (1,) * ndim, pad or (0,) * ndim, adj or (0,) * ndim
    data = shape_to_channels_first(in_shapes[0]) if last else in_shapes[0]
    _check_window("Deconvolution", data, kernel, stride, dilate, pad, num_filter, num_group, layout)
    if len(adj) != ndim or min(adj) < 0:
        raise MXNetError(f"Deconvolution: `adj` must be {ndim} numbers of at least 0, as `kernel` {kernel}, received {adj}")
    arrange = shape_to_channels_last if last else tuple
    assign(in_shapes, 1, arrange((data[1], num_filter // num_group, *kernel)), "Deconvolution's weight")
    assign(in_shapes, 2, (num_filter,), "Deconvolution's bias")
    sizes = [-1] * ndim
    if min(data[2:]) >= 0:
        pad, adj = _transposed_padding(data[2:], kernel, stride, dilate, pad, adj, target_shape)
        if any(a > s - 1 for a, s in zip(adj, stride)):
            raise MXNetError(f"Deconvolution: `adj` {adj} must be smaller than `stride` {stride}")
        sizes = [s * (size - 1) + d * (k - 1) + 1 - 2 * p + a
                 for size, k, s, d, p, a in zip(data[2:], kernel, stride, dilate, pad, adj)]
    assign(out_shapes, 0, arrange((data[0], num_filter, *sizes)), "Deconvolution's output")
    return in_shapes, out_shapes


deconvolution.dtype_rule(same_type)
