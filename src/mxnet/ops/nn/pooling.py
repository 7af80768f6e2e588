"""Pooling over one to three spatial axes, with MXNet's ways of rounding."""
import math
from collections.abc import Callable
from typing import Literal, Optional

import torch

from ...base import MXNetError
from ...kernels.nn.max_pooling import max_pool2d
from ...suggestions import shortened
from ..quantization.arithmetic import Quantized
from ..quantization.form import EightBits, quantized_form
from ..registry import op
from ..schema import Shape
from .common import assign, channels_last, shape_to_channels_first, shape_to_channels_last, to_channels_first, to_channels_last

_functional = torch.nn.functional
_MAX = {1: torch.max_pool1d, 2: torch.max_pool2d, 3: torch.max_pool3d}
_AVERAGE: dict[int, Callable] = {1: torch.avg_pool1d, 2: torch._C._nn.avg_pool2d, 3: torch._C._nn.avg_pool3d}
_MOST_PADDED = 1 << 25  # elements, beyond twice the data and the result
_Layout = Optional[Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"]]


def _output_size(size, kernel, stride, pad, convention):
    if convention == "same":
        return -(-(size + 2 * pad) // stride)
    if convention == "full":
        return -(-(size + 2 * pad - kernel) // stride) + 1
    return (size + 2 * pad - kernel) // stride + 1


def _sum_pool(data, kernel, stride, pad, ceil):
    if data.dim() == 3:
        # Only the whole kernel as divisor gives the sum back, so clipped windows must count their padding.
        return torch.avg_pool1d(data, kernel, stride, pad, ceil, True) * kernel[0] if not ceil else \
            _sum_pool(data.unsqueeze(2), (1, *kernel), (1, *stride), (0, *pad), ceil).squeeze(2)
    return _AVERAGE[data.dim() - 2](data, kernel, stride, pad, ceil, True, 1)


def _window_sizes(data, sizes, kernel, stride, pad, out_sizes, include_pad):
    """Return the number of elements of each window's average, in a shape that broadcasts against the sums."""
    count = None
    for axis, (size, k, s, p, n) in enumerate(zip(sizes, kernel, stride, pad, out_sizes)):
        start = torch.arange(n, dtype=data.dtype, device=data.device) * s - p
        end = (start + k).clamp_(max=size + p if include_pad else size)
        # A window without data averages to 0.
        extent = (end - (start if include_pad else start.clamp_(min=0))).clamp_(min=1).view(-1, *[1] * (len(sizes) - 1 - axis))
        count = extent if count is None else count * extent
    return count


def _root(total, p):
    """The p-th root, with gradient 0 at 0."""
    zero = total == 0
    safe = torch.where(zero, 1, total)
    return torch.where(zero, 0, safe.sqrt() if p == 2 else safe.sign() * safe.abs().pow(1 / p))


def _global_pool(data, pool_type, p):
    axes = tuple(range(2, data.dim()))
    if pool_type == "avg":
        return data.mean(axes, keepdim=True)
    if pool_type == "max":
        return _MAX[len(axes)](data, data.shape[2:])
    if pool_type == "sum" or p == 1:
        return data.sum(axes, keepdim=True)
    return _root(data.pow(p).sum(axes, keepdim=True), p)


def _window_pool(data, kernel, stride, pad, convention, pool_type, p, include_pad):
    # A longer step leaves the data as well, and would be padded for.
    stride = tuple(min(s, max(size + 2 * q, 1)) for s, size, q in zip(stride, data.shape[2:], pad))
    sizes, ceil, explicit = data.shape[2:], False, any(2 * q > k for q, k in zip(pad, kernel))
    if len(kernel) == 3 and pool_type != "max" and any(size < k for size, k in zip(sizes, kernel)):
        explicit = True  # torch's 3-D average requires data as large as the kernel before padding
    # (In one dimension torch adds another axis.)
    if data.is_cuda and data.requires_grad and len(kernel) < 3 and pool_type != "max" and any(pad) and not data.is_contiguous():
        explicit = True  # torch's gradient is wrong for padded averages of channels last: pytorch/pytorch#188344
    if convention != "valid":
        if convention == "same":
            _check_same("Pooling", data.shape, pad)
        out_sizes = [_output_size(*sizes_of_axis, convention) for sizes_of_axis in zip(sizes, kernel, stride, pad)]
        # torch rounds up, too, but drops a window that starts behind the data and its padding.
        ceil = convention == "full" and all((n - 1) * s < size + q for n, s, size, q in zip(out_sizes, stride, sizes, pad))
        explicit = explicit or not ceil
    if not explicit:
        if pool_type == "max":
            if len(kernel) == 2:
                return max_pool2d(data, kernel, stride, pad, ceil)
            return _MAX[len(kernel)](data, kernel, stride, pad, 1, ceil)
        if pool_type == "avg":
            return _AVERAGE[len(kernel)](data, kernel, stride, pad, ceil, include_pad)
        if pool_type == "sum" or p == 1:
            return _sum_pool(data, kernel, stride, pad, ceil)
        return _root(_sum_pool(data.pow(p), kernel, stride, pad, ceil), p)
    if convention == "valid":
        out_sizes = [_output_size(*sizes_of_axis, convention) for sizes_of_axis in zip(sizes, kernel, stride, pad)]
    if pool_type == "lp" and p != 1:
        data = data.pow(p)
    beyond = [max((n - 1) * s + k - size - q, 0) for size, k, s, q, n in zip(sizes, kernel, stride, pad, out_sizes)]
    amounts = [a for q, b in zip(reversed(pad), reversed(beyond)) for a in (q, b)]
    # Windows are measured for no map, too.
    padded = math.prod((*[max(n, 1) for n in data.shape[:2]], *[size + q + b + p for size, q, b, p in zip(sizes, pad, beyond, pad)]))
    if padded > _MOST_PADDED + 2 * (data.numel() + math.prod((*data.shape[:2], *out_sizes))):
        raise MXNetError(f"Pooling: pad={tuple(pad)} around data of shape {tuple(data.shape)} makes {padded} elements of padding; kernels of size "
                         f"{tuple(kernel)} need less")
    data = _functional.pad(data, amounts, value=torch.finfo(data.dtype).min if pool_type == "max" else 0)
    if pool_type == "max":
        return _MAX[len(kernel)](data, kernel, stride)
    total = _sum_pool(data, kernel, stride, (0,) * len(kernel), False)
    if pool_type == "avg":
        return total / _window_sizes(total, sizes, kernel, stride, pad, out_sizes, include_pad)
    return total if pool_type == "sum" or p == 1 else _root(total, p)


@op("Pooling", aliases=("_npx_pooling",), layout_agnostic=lambda a: a["layout"] in (None, "NCHW"), result_type="data", compute_bound=True,
    complete_rule=True, names_input=True, names_output=True, amp=("inputs", "inputs"), inplace_safe=lambda a: a["pool_type"] == "max")
def pooling(data, *, kernel: Shape = (), pool_type: Literal["avg", "lp", "max", "sum"] = "max", global_pool: bool = False,
            cudnn_off: bool = False, pooling_convention: Literal["full", "same", "valid"] = "valid", stride: Shape = (), pad: Shape = (),
            p_value: Optional[int] = None, count_include_pad: Optional[bool] = None, layout: _Layout = None):
    """Pool over windows of the spatial axes of `data` (N, C, spatial...), or over all of them with `global_pool`.

    Along an axis there are ``(size + 2 * pad - kernel) / stride + 1`` windows, rounded down or up depending on `pooling_convention` (``valid``,
    ``full``), or ``size / stride`` rounded up (``same``). `pool_type` is what becomes of a window's values: their largest one, their
    average, their sum, or (``lp``) the `p_value`-th root of the sum of their `p_value`-th powers. An average counts the padding unless
    `count_include_pad` is False. With a layout that ends in C the channels come last. `cudnn_off` has no effect.

    Raises
    ------
    MXNetError
        If the kernel does not fit the data, or `p_value` is missing or not 1, 2 or 3 for ``lp``.

    Example
    -------
    >>> x = mx.nd.array([[[1, 5, 2, 4]]])
    >>> mx.nd.Pooling(x, kernel=(2,), stride=(2,), pool_type="max").asnumpy()
    array([[[5., 4.]]], dtype=float32)
    """
    last = channels_last(layout)
    if last:
        data = to_channels_first(data)
    ndim = data.dim() - 2
    if (ndim not in _MAX or not global_pool and not len(kernel) == ndim == len(stride or kernel) == len(pad or kernel)
            or pool_type == "lp" and p_value not in (1, 2, 3) or layout is not None and len(layout) != ndim + 2):
        stride, pad = _check("Pooling", data.shape, kernel, stride, pad, pool_type, p_value, global_pool, layout)
    dtype = data.dtype
    if pool_type == "lp" and p_value != 1 and dtype.itemsize < 4:
        data = data.float()  # float16 holds no power of more than 255
    if global_pool:
        out = _global_pool(data, pool_type, p_value)
    else:
        out = _window_pool(data, kernel, stride or (1,) * ndim, pad or (0,) * ndim, pooling_convention, pool_type, p_value,
                           count_include_pad is not False)
    out = out if out.dtype is dtype else out.to(dtype)
    return to_channels_last(out) if last else out


def _check(name, shape, kernel, stride, pad, pool_type, p_value, global_pool, layout=None):
    """Stride and pad with a number for each axis: as in MXNet there may be more, which nothing reads."""
    if not 3 <= len(shape) <= 5:
        raise MXNetError(f"{name}: data must have 3 to 5 axes (batch, channel, spatial...), received shape {tuple(shape)}")
    if pool_type == "lp" and p_value not in (1, 2, 3):
        raise MXNetError(f"{name}: `p_value` must be 1, 2 or 3 for pool_type 'lp', received {p_value}")
    if layout is not None and len(layout) != len(shape):
        raise MXNetError(f"{name}: `layout` must name {len(shape)} axes for {len(shape)}-D data, received {shortened(layout)}")
    if global_pool:
        return stride, pad
    if not kernel:
        raise MXNetError(f"{name}: `kernel` must be given where `global_pool` is not set, received {kernel}")
    if len(kernel) != len(shape) - 2:
        raise MXNetError(f"{name}: `kernel` must have {len(shape) - 2} sizes for {len(shape)}-D data, received {kernel}")
    for attribute, sizes, least in (("kernel", kernel, 1), ("stride", stride, 1), ("pad", pad, 0)):
        if sizes and (len(sizes) < len(kernel) or min(sizes[:len(kernel)]) < least):
            raise MXNetError(f"{name}: `{attribute}` must be {len(kernel)} sizes of at least {least}, received {sizes}")
    return stride[:len(kernel)], pad[:len(kernel)]


def _check_same(name, shape, pad):
    if len(shape) != 3 or any(pad):
        raise MXNetError(f"{name}: convention 'same' is for 3-D data without padding, received shape {tuple(shape)} and pad {pad}")


def _pooling_shape_rule(in_shapes, out_shapes, *, kernel, pool_type, global_pool, pooling_convention, stride, pad, p_value=None,
                        layout=None, name="Pooling", **_):
    if in_shapes[0] is None:
        return in_shapes, out_shapes
    last = channels_last(layout)
    data = shape_to_channels_first(in_shapes[0]) if last else in_shapes[0]
    stride, pad = _check(name, data, kernel, stride, pad, pool_type, p_value, global_pool, layout)
    if global_pool:
        out = (*data[:2], *[1] * (len(data) - 2))
    else:
        stride, pad = stride or (1,) * len(kernel), pad or (0,) * len(kernel)
        if pooling_convention == "same":
            _check_same(name, data, pad)
        sizes = []
        for size, k, s, p in zip(data[2:], kernel, stride, pad):
            if 0 <= size + 2 * p < k and size >= 0:
                raise MXNetError(f"{name}: a kernel of at most {size + 2 * p} expected, the padded size of the data; received {k}")
            sizes.append(_output_size(size, k, s, p, pooling_convention) if size >= 0 else -1)
        out = (*data[:2], *sizes)
    assign(out_shapes, 0, shape_to_channels_last(out) if last else out, f"{name}'s output")
    return in_shapes, out_shapes


pooling.shape_rule(_pooling_shape_rule)


@quantized_form(pooling, "_contrib_quantized_pooling", when=lambda attributes: attributes["pool_type"] in ("max", "avg"))
def quantized_pooling(data: EightBits, *, pool_type, **attributes) -> Quantized:
    """The largest (``max``) or rounded mean (``avg``) values of windows of int8 or uint8 `data`; the range stays. Other types are not supported.

    Example
    -------
    >>> q, low, high = mx.nd.array([[[1, -2, 7, 5]]], dtype='int8'), mx.nd.array([-1]), mx.nd.array([1])
    >>> mx.nd.contrib.quantized_pooling(q, low, high, kernel=(2,), stride=(2,))[0].asnumpy()
    array([[[1, 7]]], dtype=int8)
    """
    if pool_type not in ("max", "avg"):
        raise MXNetError(f"_contrib_quantized_pooling: `pool_type` must be 'max' or 'avg', received {shortened(pool_type)}")
    pooled = pooling.raw(data.values.to(torch.float32), pool_type=pool_type, **attributes)
    return data.with_values(pooled.round().to(data.values.dtype))


@op("Pooling_v1", complete_rule="shape", names_output=True)
def pooling_v1(data, *, kernel: Shape = (), pool_type: Literal["avg", "max", "sum"] = "max", global_pool: bool = False,
               pooling_convention: Literal["full", "valid"] = "valid", stride: Shape = (), pad: Shape = ()):
    """The pooling of MXNet before 0.9, kept for old files, over `data` (N, C, H, W).

    Attributes are those of `Pooling`, from which it differs at the border: padding is zeros even for a maximum, and an average always
    divides by the whole kernel. Among equal maxima in a window each gets the whole gradient.

    Raises
    ------
    MXNetError
        If `data` is not 4-D, or the kernel does not fit it.

    Example
    -------
    >>> x = -mx.nd.ones((1, 1, 2, 2))
    >>> mx.nd.Pooling_v1(x, kernel=(2, 2), stride=(2, 2), pad=(1, 1), pool_type="max").asnumpy().ravel()
    array([0., 0., 0., 0.], dtype=float32)
    >>> mx.nd.Pooling(x, kernel=(2, 2), stride=(2, 2), pad=(1, 1), pool_type="max").asnumpy().ravel()
    array([-1., -1., -1., -1.], dtype=float32)
    """
    _require_maps(tuple(data.shape))
    if global_pool:
        return _global_pool(data, pool_type, None)
    stride, pad = _check("Pooling_v1", data.shape, kernel, stride, pad, pool_type, None, False)
    stride, pad = stride or (1,) * len(kernel), pad or (0,) * len(kernel)
    if any(pad):
        data = _functional.pad(data, [p for q in reversed(pad) for p in (q, q)])
        pad = (0,) * len(kernel)
    if pool_type == "avg":
        return _window_pool(data, kernel, stride, pad, pooling_convention, "sum", None, True) / math.prod(kernel)
    return _window_pool(data, kernel, stride, pad, pooling_convention, pool_type, None, True)


@pooling_v1.gradient
def _pooling_v1_gradient(out_grads, inputs, outputs, *, kernel=(), pool_type="max", global_pool=False, pooling_convention="valid", stride=(),
                         pad=()):
    data, out, grad = inputs[0], outputs[0], out_grads[0]
    kernel, stride, pad = (data.shape[2:], (1, 1), (0, 0)) if global_pool else (kernel, stride[:2] or (1, 1), pad[:2] or (0, 0))
    padded = _functional.pad(data, (pad[1], pad[1], pad[0], pad[0]))
    # Windows may begin in the padding and end behind it, where nothing counts; those that begin behind it are left out.
    sizes = [min(n, -(-p // s)) for n, p, s in zip(out.shape[2:], padded.shape[2:], stride)]
    out, grad = (t[..., :sizes[0], :sizes[1]] for t in (out, grad))
    ends = [(n - 1) * s + k for n, s, k in zip(sizes, stride, kernel)]
    beyond = [max(e - n, 0) for e, n in zip(ends, padded.shape[2:])]
    padded = _functional.pad(padded, (0, beyond[1], 0, beyond[0]), value=torch.nan)
    result = torch.zeros_like(padded)
    share = grad / math.prod(kernel) if pool_type == "avg" else grad
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            window = (..., slice(i, i + (sizes[0] - 1) * stride[0] + 1, stride[0]), slice(j, j + (sizes[1] - 1) * stride[1] + 1, stride[1]))
            result[window] += torch.where(padded[window] == out, share, 0) if pool_type == "max" else share
    return result[:, :, pad[0]:pad[0] + data.shape[2], pad[1]:pad[1] + data.shape[3]].contiguous()


def _require_maps(shape):
    if len(shape) != 4:
        raise MXNetError(f"Pooling_v1: data must be (N, C, H, W), received shape {shape}")


@pooling_v1.shape_rule
def _pooling_v1_shape_rule(in_shapes, out_shapes, **attributes):
    if in_shapes[0] is not None:
        _require_maps(in_shapes[0])
    return _pooling_shape_rule(in_shapes, out_shapes, name="Pooling_v1", **attributes)
