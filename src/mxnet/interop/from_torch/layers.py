"""Layers: convolutions, fully connected ones, normalization, pooling, dropout, resizing."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch

from ... import symbol as sym
from ...symbol import Symbol
from .registry import converts
from .values import Call, Value, is_static


def _each(numbers: Any, count: int) -> tuple[int, ...]:
    """A number for each spatial axis, of which torch allows one for all."""
    numbers = tuple(numbers) if isinstance(numbers, (list, tuple)) else (numbers,)
    return numbers * count if len(numbers) == 1 else numbers


# -- products --------------------------------------------------------------------------------------------------------------------

@converts("conv1d", "conv2d", "conv3d")
def conv(call: Call, data: Value, weight: Value, bias: Value | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
         groups: int = 1) -> Value:
    sizes = call.sizes(weight.shape)
    count = len(sizes) - 2
    if len(data.shape) != count + 2:
        raise call.refuse("the input has no axis for the batch")
    dilate = _each(dilation, count)
    if padding == "valid":
        padding = 0
    elif padding == "same":
        totals = [d * (k - 1) for d, k in zip(dilate, sizes[2:])]
        if any(total % 2 for total in totals):
            raise call.refuse("`padding` is 'same', and an axis needs more behind than before")
        padding = [total // 2 for total in totals]
    inputs = [data.symbol, weight.symbol, *([] if bias is None else [bias.symbol])]
    return call.value(sym.Convolution(*inputs, kernel=sizes[2:], stride=_each(stride, count), pad=_each(padding, count), dilate=dilate,
                                      num_filter=sizes[0], num_group=groups, no_bias=bias is None))


@converts("convolution")
def convolution(call: Call, data: Value, weight: Value, bias: Value | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
                output_padding: Any, groups: int) -> Value:
    if transposed:
        return conv_transpose(call, data, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(call, data, weight, bias, stride, padding, dilation, groups)


@converts("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(call: Call, data: Value, weight: Value, bias: Value | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                   groups: int = 1, dilation: Any = 1) -> Value:
    sizes = call.sizes(weight.shape)
    count = len(sizes) - 2
    inputs = [data.symbol, weight.symbol, *([] if bias is None else [bias.symbol])]
    return call.value(sym.Deconvolution(*inputs, kernel=sizes[2:], stride=_each(stride, count), pad=_each(padding, count),
                                        adj=_each(output_padding, count), dilate=_each(dilation, count),
                                        num_filter=sizes[1] * groups, num_group=groups, no_bias=bias is None))


@converts("linear")
def linear(call: Call, data: Value, weight: Value, bias: Value | None = None) -> Value:
    if len(data.shape) < 2:
        raise call.refuse("the input has no axis for the batch")
    inputs = [data.symbol, weight.symbol, *([] if bias is None else [bias.symbol])]
    return call.value(sym.FullyConnected(*inputs, num_hidden=call.sizes(weight.shape)[0], flatten=False, no_bias=bias is None))


@converts("addmm")
def addmm(call: Call, bias: Value, first: Value, second: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    product = sym.dot(first.symbol, second.symbol)
    offset = bias.symbol if beta == 1 else bias.symbol * beta
    if len(bias.shape) == 1:
        offset = sym.reshape(offset, shape=(1, -1))
    return call.value(sym.broadcast_add(product if alpha == 1 else product * alpha, offset))


@converts("mm", "mv", "dot")
def mm(call: Call, first: Value, second: Value) -> Value:
    return call.value(sym.dot(first.symbol, second.symbol))


@converts("bmm")
def bmm(call: Call, first: Value, second: Value) -> Value:
    return call.value(sym.batch_dot(first.symbol, second.symbol))


@converts("baddbmm")
def baddbmm(call: Call, offset: Value, first: Value, second: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    product = sym.batch_dot(first.symbol, second.symbol)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return call.value(product)
    return call.value(sym.broadcast_add(product, offset.symbol if beta == 1 else offset.symbol * beta))


@converts("matmul")
def matmul(call: Call, first: Value, second: Value) -> Value:
    ranks = len(first.shape), len(second.shape)
    if min(ranks) < 1 or ranks == (1, 1) or ranks[1] <= 2 and ranks[0] >= 1:
        return mm(call, first, second)
    if ranks[0] < 2:
        raise call.refuse("a vector is multiplied by several matrices")
    batch = call.shape[:-2]
    a, b = (as_matrices(call, v, batch) for v in (first, second))
    product = sym.batch_dot(a, b)
    return call.value(product if len(batch) == 1 else with_batch(call, product, batch))


def as_matrices(call: Call, value: Value, batch: Sequence[Any]) -> Symbol:
    """An array of matrices with one axis for all of the batch."""
    shape = (*batch, *value.shape[-2:])
    symbol = call.broadcast(value, shape)
    for _ in range(len(batch) - 1):
        symbol = sym.reshape(symbol, shape=(-3, -2))
    return symbol


def with_batch(call: Call, symbol: Symbol, batch: Sequence[Any]) -> Symbol:
    """Return what one axis holds along the axes of the batch again."""
    inner = call.sizes(batch[1:], "more than the first size varies")
    for size in reversed(inner):
        symbol = sym.reshape(symbol, shape=(-4, -1, size, -2))
    return symbol


# -- normalization -----------------------------------------------------------------------------------------------------------------

@converts("batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional", "native_batch_norm")
def batch_norm(call: Call, data: Value, weight: Value | None, bias: Value | None, mean: Value | None, var: Value | None, training: bool,
               momentum: Any, eps: float, *rest: Any) -> Any:
    if mean is None or var is None:
        raise call.refuse("there are no running statistics")
    if momentum is None:
        raise call.refuse("`momentum` is None")
    channels, = call.sizes(data.shape[1:2])
    gamma = weight or call.constant(torch.ones(channels, dtype=mean.dtype))
    beta = bias or call.constant(torch.zeros(channels, dtype=mean.dtype))
    out = call.value(sym.BatchNorm(data.symbol, gamma.symbol, beta.symbol, mean.symbol, var.symbol, eps=eps, momentum=1 - momentum,
                                   fix_gamma=weight is None, use_global_stats=call.training and not training))
    return [out, None, None, None, None] if isinstance(call.results, (list, tuple)) else out


@converts("_native_batch_norm_legit_no_training")
def batch_norm_in_prediction(call: Call, data: Value, weight: Value | None, bias: Value | None, mean: Value, var: Value, momentum: Any,
                             eps: float) -> Any:
    return batch_norm(call, data, weight, bias, mean, var, False, momentum, eps)


@converts("layer_norm", "native_layer_norm")
def layer_norm(call: Call, data: Value, axes: Sequence[Any], weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5,
               *rest: Any) -> Any:
    sizes = call.sizes(axes)
    total = 1
    for size in sizes:
        total *= size
    gamma = weight or call.constant(torch.ones(sizes, dtype=data.dtype))
    beta = bias or call.constant(torch.zeros(sizes, dtype=data.dtype))
    flat = (*data.shape[:-len(sizes)], total)
    if len(sizes) > 1:
        scale, offset = (sym.reshape(v.symbol, shape=(-1,)) for v in (gamma, beta))
        result = sym.LayerNorm(call.reshape(data, flat), scale, offset, axis=-1, eps=eps)
    else:
        result = sym.LayerNorm(data.symbol, gamma.symbol, beta.symbol, axis=-1, eps=eps)
    if len(sizes) > 1:
        result = call.reshape(Value(flat, data.dtype, result), data.shape)
    out = call.value(result)
    return [out, None, None] if isinstance(call.results, (list, tuple)) else out


@converts("group_norm")
def group_norm(call: Call, data: Value, groups: int, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5, *rest: Any) -> Value:
    channels, = call.sizes(data.shape[1:2])
    gamma = weight or call.constant(torch.ones(channels, dtype=data.dtype))
    beta = bias or call.constant(torch.zeros(channels, dtype=data.dtype))
    # MXNet's GroupNorm scales groups, not channels.
    ones, zeros = (call.constant(torch.full((groups,), n, dtype=data.dtype)) for n in (1.0, 0.0))
    normal = sym.GroupNorm(data.symbol, ones.symbol, zeros.symbol, num_groups=groups, eps=eps)
    shape = (1, -1, *[1] * (len(data.shape) - 2))
    return call.value(sym.broadcast_add(sym.broadcast_mul(normal, sym.reshape(gamma.symbol, shape=shape)), sym.reshape(beta.symbol, shape=shape)))


@converts("instance_norm")
def instance_norm(call: Call, data: Value, weight: Value | None, bias: Value | None, mean: Value | None, var: Value | None, use_input_stats: bool,
                  momentum: Any, eps: float, *rest: Any) -> Value:
    if mean is not None or not use_input_stats:
        raise call.refuse("it has running statistics")
    channels, = call.sizes(data.shape[1:2])
    gamma = weight or call.constant(torch.ones(channels, dtype=data.dtype))
    beta = bias or call.constant(torch.zeros(channels, dtype=data.dtype))
    return call.value(sym.InstanceNorm(data.symbol, gamma.symbol, beta.symbol, eps=eps))


@converts("dropout", "feature_dropout", "native_dropout")
def dropout(call: Call, data: Value, p: float, train: bool | None = None) -> Any:
    axes = tuple(range(2, len(data.shape))) if "feature" in call.target._schema.name else ()
    frozen = call.training and train is False  # in a module that trains, this layer does not
    out = data if not p or frozen else call.value(sym.Dropout(data.symbol, p=p, axes=axes) if axes else sym.Dropout(data.symbol, p=p), data.dtype)
    return [out, None] if isinstance(call.results, (list, tuple)) else out


@converts("softmax", "_softmax")
def softmax(call: Call, data: Value, axis: int, *rest: Any) -> Value:
    return call.value(sym.softmax(call.cast(data, call.stored), axis=axis))


@converts("log_softmax", "_log_softmax")
def log_softmax(call: Call, data: Value, axis: int, *rest: Any) -> Value:
    return call.value(sym.log_softmax(call.cast(data, call.stored), axis=axis))


# -- pooling -----------------------------------------------------------------------------------------------------------------------

def _pool(call: Call, data: Value, kind: Literal["avg", "max"], kernel: Any, stride: Any, padding: Any, ceil: bool, **attributes: Any) -> Value:
    count = len(data.shape) - 2
    if count < 1:
        raise call.refuse("the input has no axis for the batch")
    kernel, pad = _each(kernel, count), _each(padding, count)
    stride = _each(stride, count) if stride else kernel
    if ceil:
        # MXNet keeps a last window that begins behind the data, torch does not.
        for size, out, k, s, p in zip(data.shape[2:], call.shape[2:], kernel, stride, pad):
            if is_static(size) and is_static(out) and int(out) != -(-(int(size) + 2 * p - k) // s) + 1:
                raise call.refuse("`ceil_mode` drops a window that would begin behind the data")
    return call.value(sym.Pooling(data.symbol, kernel=kernel, stride=stride, pad=pad, pool_type=kind,
                                  pooling_convention="full" if ceil else "valid", **attributes), data.dtype)


@converts("max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices")
def max_pool(call: Call, data: Value, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False) -> Any:
    if set(_each(dilation, 1)) != {1}:
        raise call.refuse("`dilation` is not 1")
    out = _pool(call, data, "max", kernel, stride, padding, ceil)
    return [out, None] if isinstance(call.results, (list, tuple)) else out


@converts("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(call: Call, data: Value, kernel: Any, stride: Any = (), padding: Any = 0, ceil: bool = False, count_include_pad: bool = True,
             divisor: int | None = None) -> Value:
    if divisor is not None:
        raise call.refuse("`divisor_override` is given")
    return _pool(call, data, "avg", kernel, stride, padding, ceil, count_include_pad=count_include_pad)


def _adaptive(call: Call, data: Value, kind: Literal["avg", "max"], sizes: Any) -> Value:
    count = len(data.shape) - 2
    if count < 1:
        raise call.refuse("the input has no axis for the batch")
    sizes = [old if new is None else new for old, new in zip(data.shape[2:], _each(sizes, count))]
    if all(is_static(s) and int(s) == 1 for s in sizes):
        return call.value(sym.Pooling(data.symbol, kernel=(1,) * count, global_pool=True, pool_type=kind), data.dtype)
    before, after = call.sizes(data.shape[2:]), call.sizes(sizes)
    if before == after:
        return data
    if not any(old % new for old, new in zip(before, after)):
        kernel = tuple(old // new for old, new in zip(before, after))
        return call.value(sym.Pooling(data.symbol, kernel=kernel, stride=kernel, pool_type=kind), data.dtype)
    if kind == "avg" and count == 2:
        return call.value(sym.contrib.AdaptiveAvgPooling2D(data.symbol, output_size=after), data.dtype)
    raise call.refuse(f"windows of several sizes are pooled: {before} becomes {after}")


@converts("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "_adaptive_avg_pool2d")
def adaptive_avg_pool(call: Call, data: Value, sizes: Any) -> Value:
    return _adaptive(call, data, "avg", sizes)


@converts("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(call: Call, data: Value, sizes: Any) -> list[Value | None]:
    return [_adaptive(call, data, "max", sizes), None]


# -- resizing ----------------------------------------------------------------------------------------------------------------------

def _check_scales(call: Call, data: Value, scales: Any) -> None:
    """Refuse factors of which no whole number of pixels results: torch reads the image at the factors, MXNet at the ratio of the sizes."""
    before, after = call.sizes(data.shape[2:]), call.sizes(call.shape[2:])
    factors = scales[0] if len(scales) == 1 and isinstance(scales[0], (list, tuple)) else scales
    if any(factor is not None and size * factor != result for size, factor, result in zip(before, factors, after)):
        raise call.refuse(f"the image is enlarged by {tuple(factors)}, of which no whole number of pixels results: {before} becomes {after}")


@converts("upsample_nearest2d")
def upsample_nearest(call: Call, data: Value, sizes: Any, *scales: Any) -> Value:
    _check_scales(call, data, scales)
    before, after = call.sizes(data.shape[2:]), call.sizes(call.shape[2:])
    factor = after[0] // before[0]
    if after != tuple(size * factor for size in before):
        raise call.refuse(f"the image is not enlarged by a whole number along both axes: {before} becomes {after}")
    return call.value(sym.UpSampling(data.symbol, scale=factor, sample_type="nearest"), data.dtype)


@converts("upsample_bilinear2d")
def upsample_bilinear(call: Call, data: Value, sizes: Any, align_corners: bool, *scales: Any) -> Value:
    _check_scales(call, data, scales)
    height, width = call.sizes(call.shape[2:])
    return call.value(sym.contrib.BilinearResize2D(data.symbol, height=height, width=width, align_corners=align_corners), data.dtype)
