"""Quantized operators: int8 and uint8 arrays with the range of real numbers that they stand for.

An int8 value q stands for ``q * M / 127.5``, a uint8 value for ``q * M / 255.5``, where M is the larger magnitude of the array's range
(min, max); the odd halves are MXNet's. Products accumulate in integers, exactly; they are computed in float64 here, whose 53 bits hold them.
Nothing in this family has a gradient.
"""
from typing import Literal, Optional

import numpy as np
import torch

from ..base import MXNetError
from .dtypes import name_of
from .registry import get, op
from .schema import AtLeast1, Shape, Training

_EIGHT_BITS = (torch.int8, torch.uint8)
_INT8, _UINT8, _INT32 = 127.5, 255.5, 2147483648.0
_OutType = Literal["auto", "int8", "uint8"]
_Layout = Optional[Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"]]


def _check_types(name, allowed, **inputs):
    """Refuse inputs of other types; shapes are inferred without types.

    Raises
    ------
    MXNetError
    """
    for what, tensor in inputs.items():
        if tensor.dtype not in allowed and not tensor.is_meta:
            raise MXNetError(f"{name}: `{what}` must be {' or '.join(map(name_of, allowed))}, received {name_of(tensor.dtype)}")


def _check_alike(name, lhs, rhs):
    if lhs.shape != rhs.shape:
        raise MXNetError(f"{name}: `lhs` and `rhs` must have one shape, received {tuple(lhs.shape)} and {tuple(rhs.shape)}")


def _limit(low, high):
    """The larger magnitude of a range, one element."""
    return torch.maximum(low.reshape(1).abs(), high.reshape(1).abs())


def _levels(data):
    """What M, the larger magnitude of the range, is divided by."""
    return {torch.uint8: _UINT8, torch.int32: _INT32}.get(data.dtype, _INT8)


def _store(values, dtype):
    """Real numbers as integers: rounded to even, cut off at the ends of the type."""
    ends = torch.iinfo(dtype)
    return values.round().clamp_(ends.min, ends.max).to(dtype)


def _calibrated(low, high, like):
    return like.new_tensor([low], dtype=torch.float32), like.new_tensor([high], dtype=torch.float32)


def _chosen(out_type, low, high):
    """``auto`` is uint8 where calibration has found nothing negative."""
    if out_type == "auto":
        return torch.uint8 if low is not None and high is not None and low >= 0 else torch.int8
    return torch.uint8 if out_type == "uint8" else torch.int8


def _rules(operator, first, types, outputs):
    """Shape and type inference. Inputs from number `first` on are ranges, one float32 each, as are all outputs but the first.

    `types` are those of the inputs before (None where several are allowed); ``outputs(in_types, attributes)`` is that of the result.
    """
    def shape_rule(in_shapes, out_shapes, **attributes):
        outs = [*out_shapes[:1], *[(1,)] * (len(out_shapes) - 1)]
        return [*in_shapes[:first], *[(1,)] * (len(in_shapes) - first)], outs

    def dtype_rule(in_types, out_types, **attributes):
        ins = [t or known for t, known in zip(in_types, [*types, *[torch.float32] * (len(in_types) - len(types))])]
        return ins, [outputs(ins, attributes), *[torch.float32] * (len(out_types) - 1)]

    operator.shape_rule(shape_rule)
    operator.dtype_rule(dtype_rule)


def _declared(ins, attributes):
    return _chosen(attributes["out_type"], attributes.get("min_calib_range"), attributes.get("max_calib_range"))


def _same(ins, attributes):
    return ins[0]


@op("_contrib_quantize", num_outputs=3, no_gradient=True)
def quantize(data, min_range, max_range, *, out_type: Literal["int8", "uint8"] = "uint8"):
    """Quantize float32 `data` for a given range. Returns the integers, and the range they stand for: two arrays of one element.

    Here the larger magnitude of the range becomes 127 (int8) or 255 (uint8).
    """
    _check_types("_contrib_quantize", (torch.float32,), data=data)
    limit = _limit(min_range, max_range)
    if out_type == "uint8":
        return _store(data * (255 / limit), torch.uint8), min_range.reshape(1).clone(), max_range.reshape(1).clone()
    return _store((data * (127 / limit)).clamp(-127, 127), torch.int8), -limit, limit


_rules(quantize, 1, [torch.float32], _declared)


@op("_contrib_quantize_v2", num_outputs=3, no_gradient=True)
def quantize_v2(data, *, out_type: _OutType = "int8", min_calib_range: Optional[float] = None, max_calib_range: Optional[float] = None):
    """Quantize float32 `data` for the calibrated range, by default for the range it has. Returns the integers and their range.

    ``auto`` is uint8 where the calibrated range has nothing negative, else int8. Data that is quantized already passes as it is.
    """
    _check_types("_contrib_quantize_v2", (torch.float32, *_EIGHT_BITS), data=data)
    calibrated = min_calib_range is not None and max_calib_range is not None
    if data.dtype in (torch.int8, torch.uint8):
        top = _levels(data)
        bottom = 0 if data.dtype == torch.uint8 else -top
        return data.clone(), *_calibrated(min_calib_range if calibrated else bottom, max_calib_range if calibrated else top, data)
    low, high = _calibrated(min_calib_range, max_calib_range, data) if calibrated else (data.min().reshape(1), data.max().reshape(1))
    limit = _limit(low, high)
    if _chosen(out_type, min_calib_range, max_calib_range) == torch.uint8:
        return _store(data * (_UINT8 / limit), torch.uint8), low, high
    return _store(data * (_INT8 / limit), torch.int8), -limit, limit


_rules(quantize_v2, 1, [None], _declared)


@op("_contrib_quantize_asym", num_outputs=3, output_names=("output", "scale", "shift"), no_gradient=True, amp=None)
def quantize_asym(data, *, min_calib_range: Optional[float] = None, max_calib_range: Optional[float] = None):
    """Quantize `data` to uint8 so that its range, or the calibrated one, fills 0 to 255: ``data * scale + shift``, rounded.

    Returns the integers, the scale and the shift.
    """
    _check_types("_contrib_quantize_asym", (torch.float32, *_EIGHT_BITS), data=data)
    if data.dtype == torch.uint8:
        return data.clone(), *_calibrated(1, 0, data)
    if data.dtype == torch.int8:
        return (data.to(torch.int16) + 128).to(torch.uint8), *_calibrated(1, 128, data)
    calibrated = min_calib_range is not None and max_calib_range is not None
    low, high = _calibrated(min_calib_range, max_calib_range, data) if calibrated else (data.min().reshape(1), data.max().reshape(1))
    scale = 255 / (high - low)
    shift = 255 - high * scale
    return (data * scale + shift + 0.5).floor_().clamp_(0, 255).to(torch.uint8), scale, shift


_rules(quantize_asym, 1, [None], lambda ins, attributes: torch.uint8)


@op("_contrib_dequantize", no_gradient=True)
def dequantize(data, min_range, max_range, *, out_type: Literal["float32"] = "float32"):
    """The real numbers (float32) that int8 or uint8 `data` of the given range stands for."""
    _check_types("_contrib_dequantize", _EIGHT_BITS, data=data)
    return data * (_limit(min_range, max_range) / _levels(data))


_rules(dequantize, 1, [None], lambda ins, attributes: torch.float32)


@op("_contrib_requantize", num_outputs=3, no_gradient=True)
def requantize(data, min_range, max_range, *, out_type: _OutType = "int8", min_calib_range: Optional[float] = None,
               max_calib_range: Optional[float] = None):
    """Turn int32 `data` into int8 or uint8, for the calibrated range or else for the one it has. Returns the integers and their range."""
    _check_types("_contrib_requantize", (torch.int32,), data=data)
    unit = _limit(min_range, max_range) / _INT32
    if min_calib_range is not None and max_calib_range is not None:
        limit = _limit(*_calibrated(min_calib_range, max_calib_range, data))
    else:
        limit = data.to(torch.float64).abs().max().reshape(1).to(torch.float32) * unit
    if _chosen(out_type, min_calib_range, max_calib_range) == torch.uint8:
        return _store(data * (unit * (255 / limit)), torch.uint8), torch.zeros_like(limit), limit
    return _store(data * (unit * (127 / limit)), torch.int8), -limit, limit


_rules(requantize, 1, [torch.int32], _declared)


def _product_range(data_range, weight_range, levels=127):
    """The range that an int32 sum of products stands for: that of 2**31 units."""
    unit = _limit(*data_range) / levels * (_limit(*weight_range) / 127)
    limit = unit * _INT32
    return -limit, limit


def _layer_inputs(attributes):
    if attributes["no_bias"]:
        return "data", "weight", "min_data", "max_data", "min_weight", "max_weight"
    return "data", "weight", "bias", "min_data", "max_data", "min_weight", "max_weight", "min_bias", "max_bias"


def _unpacked(name, no_bias, bias, *ranges):
    """Bias and ranges; without a bias those given by position stand one place further to the left."""
    given = [t for t in ((bias, *ranges) if no_bias else ranges) if t is not None]
    if len(given) < (4 if no_bias else 6):
        raise MXNetError(f"{name} expects {6 if no_bias else 9} inputs ({', '.join(_layer_inputs({'no_bias': no_bias}))})")
    return (None if no_bias else bias), given


def _layer_rules(operator, plain):
    """Rules of a layer whose parameters have the shapes that the operator `plain` infers."""
    def shape_rule(in_shapes, out_shapes, no_bias, **attributes):
        n = 2 if no_bias else 3
        ins, outs = get(plain).shape_inference(list(in_shapes[:n]), list(out_shapes[:1]), no_bias=no_bias, **attributes)
        return [*ins, *[(1,)] * (2 * n)], [*outs, (1,), (1,)]

    def dtype_rule(in_types, out_types, no_bias, **attributes):
        n = 2 if no_bias else 3
        known = [None, *[torch.int8] * (n - 1), *[torch.float32] * (2 * n)]
        return [t or k for t, k in zip(in_types, known)], [torch.int32, torch.float32, torch.float32]

    operator.shape_rule(shape_rule)
    operator.dtype_rule(dtype_rule)


@op("_contrib_quantized_fully_connected", num_outputs=3, output_names=("output", "min_output", "max_output"), inputs_rule=_layer_inputs,
    no_gradient=True)
def quantized_fully_connected(data, weight, bias=None, min_data=None, max_data=None, min_weight=None, max_weight=None, min_bias=None,
                              max_bias=None, *, num_hidden: AtLeast1, no_bias: bool = False, flatten: bool = True):
    """A fully connected layer on int8 or uint8 `data` and int8 `weight` (num_hidden, inputs) and `bias`; the ranges follow these.

    Returns int32, and the range it stands for.
    """
    bias, (low, high, w_low, w_high, *b_range) = _unpacked("_contrib_quantized_fully_connected", no_bias, bias, min_data, max_data, min_weight,
                                                           max_weight, min_bias, max_bias)
    _check_types("_contrib_quantized_fully_connected", _EIGHT_BITS, data=data)
    _check_types("_contrib_quantized_fully_connected", (torch.int8,), weight=weight, **({} if bias is None else {"bias": bias}))
    rows = data.reshape(data.shape[0], -1) if flatten else data
    if tuple(weight.shape) != (num_hidden, rows.shape[-1]) or bias is not None and tuple(bias.shape) != (num_hidden,):
        raise MXNetError(f"_contrib_quantized_fully_connected: `weight` must have shape {(num_hidden, rows.shape[-1])} and `bias` ({num_hidden},), "
                         f"received {tuple(weight.shape)} and {'none' if bias is None else tuple(bias.shape)}")
    out = rows.to(torch.float64) @ weight.to(torch.float64).t()
    if bias is not None:
        scale = (_levels(data) / _limit(low, high)) * (_INT8 / _limit(w_low, w_high)) * (_limit(*b_range) / _INT8)
        out += (bias * scale).trunc()
    return out.to(torch.int32), *_product_range((low, high), (w_low, w_high), 255 if data.dtype == torch.uint8 else 127)


_layer_rules(quantized_fully_connected, "FullyConnected")


@op("_contrib_quantized_conv", num_outputs=3, output_names=("output", "min_output", "max_output"), inputs_rule=_layer_inputs, no_gradient=True)
def quantized_conv(data, weight, bias=None, min_data=None, max_data=None, min_weight=None, max_weight=None, min_bias=None, max_bias=None, *,
                   kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = (), num_filter: AtLeast1, num_group: int = 1,
                   workspace: int = 1024, no_bias: bool = False, cudnn_tune: Optional[Literal["fastest", "limited_workspace", "off"]] = None,
                   cudnn_off: bool = False, layout: Optional[Literal["NCW", "NCHW", "NCDHW", "NHWC", "NDHWC"]] = None):
    """A convolution of uint8 or int8 `data` with int8 `weight`; the ranges follow. Returns int32, and the range it stands for.

    As in MXNet on the CPU `bias` is added as it is, so it must have been quantized in the units of the result, and the range is that of
    a product of int8 values whatever the type of `data`.
    """
    bias, (low, high, w_low, w_high, *_) = _unpacked("_contrib_quantized_conv", no_bias, bias, min_data, max_data, min_weight, max_weight,
                                                     min_bias, max_bias)
    _check_types("_contrib_quantized_conv", _EIGHT_BITS, data=data)
    _check_types("_contrib_quantized_conv", (torch.int8,), weight=weight)
    out = get("Convolution").raw(data.to(torch.float64), weight.to(torch.float64), None if bias is None else bias.to(torch.float64), kernel=kernel,
                                 stride=stride, dilate=dilate, pad=pad, num_filter=num_filter, num_group=num_group, no_bias=no_bias, layout=layout)
    return out.to(torch.int32), *_product_range((low, high), (w_low, w_high))


_layer_rules(quantized_conv, "Convolution")


@op("_contrib_quantized_pooling", num_outputs=3, output_names=("output", "min_output", "max_output"), no_gradient=True)
def quantized_pooling(data, min_data, max_data, *, kernel: Shape = (), pool_type: Literal["avg", "lp", "max", "sum"] = "max",
                      global_pool: bool = False, cudnn_off: bool = False, pooling_convention: Literal["full", "same", "valid"] = "valid",
                      stride: Shape = (), pad: Shape = (), p_value: Optional[int] = None, count_include_pad: Optional[bool] = None,
                      layout: _Layout = None):
    """The largest (``max``) or rounded mean (``avg``) values of windows of int8 or uint8 `data`; the range stays. Other types are not supported."""
    if pool_type not in ("max", "avg"):
        raise MXNetError(f"_contrib_quantized_pooling: `pool_type` must be 'max' or 'avg', received {pool_type!r}")
    _check_types("_contrib_quantized_pooling", _EIGHT_BITS, data=data)
    pooled = get("Pooling").raw(data.to(torch.float32), kernel=kernel, pool_type=pool_type, global_pool=global_pool,
                                pooling_convention=pooling_convention, stride=stride, pad=pad, count_include_pad=count_include_pad, layout=layout)
    return pooled.round().to(data.dtype), min_data.reshape(1).clone(), max_data.reshape(1).clone()


_rules(quantized_pooling, 1, [None], _same)


@op("_contrib_quantized_act", num_outputs=3, output_names=("output", "min_output", "max_output"), no_gradient=True)
def quantized_act(data, min_data, max_data, *, act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh"]):
    """``relu`` of int8 or uint8 `data`; the range stays. Other functions are not supported."""
    if act_type != "relu":
        raise MXNetError(f"_contrib_quantized_act: `act_type` must be 'relu', received {act_type!r}")
    _check_types("_contrib_quantized_act", _EIGHT_BITS, data=data)
    return data.clamp(min=0), min_data.reshape(1).clone(), max_data.reshape(1).clone()


_rules(quantized_act, 1, [None], _same)


@op("_contrib_quantized_flatten", num_outputs=3, output_names=("output", "min_output", "max_output"), no_gradient=True)
def quantized_flatten(data, min_data, max_data):
    """`data` (N, ...) as (N, product of the rest); the range stays."""
    return data.reshape(data.shape[0], -1).clone(), min_data.reshape(1).clone(), max_data.reshape(1).clone()


_rules(quantized_flatten, 1, [None], _same)


def _concat_inputs(attributes):
    n = attributes["num_args"]
    return (*(f"arg{i}" for i in range(n)), *(f"arg{i}_{end}" for i in range(n) for end in ("min", "max")))


@op("_contrib_quantized_concat", num_outputs=3, output_names=("output", "min_output", "max_output"), inputs_rule=_concat_inputs, no_gradient=True)
def quantized_concat(*data, num_args: int, dim: int = 1):
    """Join `num_args` quantized arrays along `dim`; behind them stand their ranges, min and max of each.

    The result is uint8 if all arrays are, else int8, for the smallest range that holds all theirs.
    """
    arrays, ranges = data[:num_args], data[num_args:]
    if len(ranges) != 2 * num_args:
        raise MXNetError(f"_contrib_quantized_concat: {num_args} arrays need {2 * num_args} ranges after them, received {len(ranges)}")
    _check_types("_contrib_quantized_concat", _EIGHT_BITS, **{f"arg{i}": a for i, a in enumerate(arrays)})
    dtype = torch.uint8 if all(a.dtype == torch.uint8 for a in arrays) else torch.int8
    low, high = torch.cat([r.reshape(1) for r in ranges[::2]]).min().reshape(1), torch.cat([r.reshape(1) for r in ranges[1::2]]).max().reshape(1)
    scale = (_UINT8 if dtype == torch.uint8 else _INT8) / _limit(low, high)
    parts = [_store(a * (scale * (_limit(ranges[2 * i], ranges[2 * i + 1]) / _levels(a))), dtype) for i, a in enumerate(arrays)]
    return torch.cat(parts, dim), low, high


# Here num_args counts the arrays, a third of the inputs.
quantized_concat.key_var_num_args = None


@quantized_concat.shape_rule
def _concat_shapes(in_shapes, out_shapes, num_args, dim):
    return [*in_shapes[:num_args], *[(1,)] * (2 * num_args)], [out_shapes[0], (1,), (1,)]


@quantized_concat.dtype_rule
def _concat_types(in_types, out_types, num_args, dim):
    arrays = in_types[:num_args]
    return [*arrays, *[torch.float32] * (2 * num_args)], [torch.uint8 if all(t == torch.uint8 for t in arrays) else torch.int8, torch.float32,
                                                          torch.float32]


@op("_contrib_quantized_elemwise_add", num_outputs=3, output_names=("output", "min_output", "max_output"), no_gradient=True)
def quantized_elemwise_add(lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max, *, min_calib_range: Optional[float] = None,
                           max_calib_range: Optional[float] = None):
    """The sum of two int8 or uint8 arrays: int32, or int8 (uint8 if both are) where a range is calibrated. Returns it and its range."""
    _check_types("_contrib_quantized_elemwise_add", _EIGHT_BITS, lhs=lhs, rhs=rhs)
    _check_alike("_contrib_quantized_elemwise_add", lhs, rhs)
    left, right = _limit(lhs_min, lhs_max), _limit(rhs_min, rhs_max)
    if min_calib_range is not None and max_calib_range is not None:
        low, high = _calibrated(min_calib_range, max_calib_range, lhs)
        dtype = lhs.dtype if lhs.dtype == rhs.dtype else torch.int8
        scale = (_UINT8 if dtype == torch.uint8 else _INT8) / _limit(low, high)
    else:
        high = left + right
        low, dtype, scale = -high, torch.int32, _INT32 / high
    total = lhs.to(torch.float64) * (scale * left / _levels(lhs)) + rhs.to(torch.float64) * (scale * right / _levels(rhs))
    return _store(total, dtype), low, high


_rules(quantized_elemwise_add, 2, [None, None], lambda ins, a: torch.int32 if None in (a["min_calib_range"], a["max_calib_range"])
       else ins[0] if ins[0] == ins[1] else torch.int8)


def _mul_outputs(attributes):
    return 1 if attributes["enable_float_output"] else 3


@op("_contrib_quantized_elemwise_mul", num_outputs=_mul_outputs, output_names=("output", "min_output", "max_output"), no_gradient=True, amp=None)
def quantized_elemwise_mul(lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max, *, min_calib_range: Optional[float] = None,
                           max_calib_range: Optional[float] = None, enable_float_output: bool = False):
    """The product of two int8 arrays: float32 if asked for, else int32, or int8 for a calibrated range, with its range."""
    _check_types("_contrib_quantized_elemwise_mul", (torch.int8,), lhs=lhs, rhs=rhs)
    _check_alike("_contrib_quantized_elemwise_mul", lhs, rhs)
    product = lhs.to(torch.int32) * rhs.to(torch.int32)
    unit = (_limit(lhs_min, lhs_max) / _INT8) * (_limit(rhs_min, rhs_max) / _INT8)
    if enable_float_output:
        return product * unit
    if min_calib_range is not None and max_calib_range is not None:
        low, high = _calibrated(min_calib_range, max_calib_range, lhs)
        return (product * (unit * (_INT8 / _limit(low, high)))).trunc().clamp_(-128, 127).to(torch.int8), low, high
    return product, *_product_range((lhs_min, lhs_max), (rhs_min, rhs_max))


_rules(quantized_elemwise_mul, 2, [torch.int8, torch.int8], lambda ins, a: torch.float32 if a["enable_float_output"]
       else torch.int32 if None in (a["min_calib_range"], a["max_calib_range"]) else torch.int8)


@op("_contrib_quantized_batch_norm", num_outputs=3, output_names=("output", "min_output", "max_output"), mutates=("moving_mean", "moving_var"),
    no_gradient=True, amp=None)
def quantized_batch_norm(data, gamma, beta, moving_mean, moving_var, min_data, max_data, *, eps: float = 1e-3, momentum: float = 0.9,
                         fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1,
                         cudnn_off: bool = False, min_calib_range: Optional[float] = None, max_calib_range: Optional[float] = None):
    """Batch normalization of int8 or uint8 `data` by the moving statistics (float32). Returns int8, and the calibrated range, which is required.

    `gamma` is always used, whatever `fix_gamma` says, as in MXNet.
    """
    if min_calib_range is None or max_calib_range is None:
        raise MXNetError("_contrib_quantized_batch_norm works with a calibrated range only: give `min_calib_range` and `max_calib_range`")
    _check_types("_contrib_quantized_batch_norm", _EIGHT_BITS, data=data)
    low, high = _calibrated(min_calib_range, max_calib_range, data)
    scale = _INT8 / _limit(low, high)
    factor = gamma / (moving_var + eps).sqrt()
    shape = [1] * data.dim()
    shape[axis] = -1
    signed = _store(data * (_INT8 / _UINT8), torch.int8) if data.dtype == torch.uint8 else data
    out = signed * (factor * (scale * _limit(min_data, max_data) / _INT8)).reshape(shape) + ((beta - moving_mean * factor) * scale).reshape(shape)
    return _store(out, torch.int8), low, high


@quantized_batch_norm.shape_rule
def _batch_norm_shapes(in_shapes, out_shapes, axis, **attributes):
    data = in_shapes[0] if in_shapes[0] is not None else out_shapes[0]
    channels = None if data is None else (data[axis],)
    return [data, *[channels] * 4, (1,), (1,)], [data, (1,), (1,)]


@quantized_batch_norm.dtype_rule
def _batch_norm_types(in_types, out_types, **attributes):
    return [in_types[0], *[torch.float32] * 6], [torch.int8, torch.float32, torch.float32]


@op("_contrib_quantized_embedding", num_outputs=3, output_names=("output", "min_output", "max_output"), no_gradient=True, amp=None)
def quantized_embedding(data, weight, min_weight, max_weight, *, input_dim: int, output_dim: int,
                        dtype: Literal["bfloat16", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"] = "float32",
                        sparse_grad: bool = False):
    """The rows of int8 `weight` (input_dim, output_dim) that `data` names; the range stays."""
    _check_types("_contrib_quantized_embedding", (torch.int8,), weight=weight)
    if tuple(weight.shape) != (input_dim, output_dim):
        raise MXNetError(f"_contrib_quantized_embedding: `weight` must have shape {(input_dim, output_dim)}, received {tuple(weight.shape)}")
    rows = data.to(torch.int64).clamp(0, input_dim - 1)
    return torch.nn.functional.embedding(rows, weight), min_weight.reshape(1).clone(), max_weight.reshape(1).clone()


@quantized_embedding.shape_rule
def _embedding_shapes(in_shapes, out_shapes, input_dim, output_dim, **attributes):
    data = in_shapes[0]
    return [data, (input_dim, output_dim), (1,), (1,)], [None if data is None else (*data, output_dim), (1,), (1,)]


@quantized_embedding.dtype_rule
def _embedding_types(in_types, out_types, **attributes):
    return [in_types[0] or torch.float32, torch.int8, torch.float32, torch.float32], [torch.int8, torch.float32, torch.float32]


def _rnn_inputs(attributes):
    return "data", "parameters", "state", "state_cell", "min_data", "max_data"


def _rnn_outputs(attributes):
    return 3 if attributes["state_outputs"] else 1


@op("_contrib_quantized_rnn", num_outputs=_rnn_outputs, output_names=("output", "state_output", "statecell_ouput"), inputs_rule=_rnn_inputs,
    no_gradient=True, amp=None)
def quantized_rnn(data, parameters, state, state_cell, data_scale, data_shift, *, state_size: int, num_layers: int, bidirectional: bool = False,
                  mode: Literal["gru", "lstm", "rnn_relu", "rnn_tanh"], p: float = 0.0, state_outputs: bool = False,
                  projection_size: Optional[int] = None, lstm_state_clip_min: Optional[float] = None, lstm_state_clip_max: Optional[float] = None,
                  lstm_state_clip_nan: bool = False, use_sequence_length: bool = False, training: Training = False):
    """An LSTM over uint8 `data` (T, N, C), which `quantize_asym` made with `data_scale` and `data_shift`; all else is float32, see ``RNN``.

    Other modes are not supported.
    """
    if mode != "lstm":
        raise MXNetError(f"_contrib_quantized_rnn: `mode` must be 'lstm', received {mode!r}")
    real = (data.to(torch.float32) - data_shift.reshape(1)) / data_scale.reshape(1)
    return get("RNN").raw(real, parameters, state, state_cell, state_size=state_size, num_layers=num_layers, bidirectional=bidirectional, mode=mode,
                          p=p, state_outputs=state_outputs, projection_size=projection_size, lstm_state_clip_min=lstm_state_clip_min,
                          lstm_state_clip_max=lstm_state_clip_max, lstm_state_clip_nan=lstm_state_clip_nan, training=training)


@quantized_rnn.shape_rule
def _rnn_shapes(in_shapes, out_shapes, **attributes):
    ins, outs = get("RNN").shape_inference(list(in_shapes[:4]), list(out_shapes), **attributes)
    return [*ins[:4], (1,), (1,)], outs


@quantized_rnn.dtype_rule
def _rnn_types(in_types, out_types, **attributes):
    return [in_types[0] or torch.uint8, *[torch.float32] * 5], [torch.float32] * len(out_types)


# -- attention -----------------------------------------------------------------------------------------------------------------


def _attention_outputs(attributes):
    return 3 if attributes["quantized"] and not attributes["enable_float_output"] else 1


def _attention_result(real, enable_float_output, low, high):
    """A float32 result as asked for: as it is, int8 for a calibrated range, or int32 for the one it has."""
    if enable_float_output:
        return real
    if low is not None and high is not None:
        ends = _calibrated(low, high, real)
        return _store(real * (_INT8 / _limit(*ends)), torch.int8), *ends
    limit = real.abs().max().reshape(1)
    return _store(real.to(torch.float64) * (_INT32 / limit), torch.int32), -limit, limit


@op("_sg_mkldnn_selfatt_qk", num_outputs=_attention_outputs, output_names=("output", "min_output", "max_output"), no_gradient=True,
    inputs_rule=lambda a: ("queries_keys_values", *(("min_qkv", "max_qkv") if a["quantized"] else ())), amp=None)
def selfatt_qk(queries_keys_values, min_qkv=None, max_qkv=None, *, heads: int, quantized: bool = False, enable_float_output: bool = False,
               min_calib_range: Optional[float] = None, max_calib_range: Optional[float] = None):
    """``interleaved_matmul_selfatt_qk``, with `quantized` on an int8 array and its range.

    Then it returns float32 if asked for, else int8 for the calibrated range or int32 for its own, and the range.
    """
    product = get("_contrib_interleaved_matmul_selfatt_qk").raw
    if not quantized:
        return product(queries_keys_values, heads=heads)
    return _attention_result(product(dequantize.raw(queries_keys_values, min_qkv, max_qkv), heads=heads), enable_float_output, min_calib_range,
                             max_calib_range)


@op("_sg_mkldnn_selfatt_valatt", num_outputs=_attention_outputs, output_names=("output", "min_output", "max_output"), no_gradient=True,
    inputs_rule=lambda a: ("queries_keys_values", "attention",
                           *(("min_qkv", "max_qkv", "min_attention", "max_attention") if a["quantized"] else ())), amp=None)
def selfatt_valatt(queries_keys_values, attention, min_qkv=None, max_qkv=None, min_attention=None, max_attention=None, *, heads: int,
                   quantized: bool = False, enable_float_output: bool = False, min_calib_range: Optional[float] = None,
                   max_calib_range: Optional[float] = None):
    """``interleaved_matmul_selfatt_valatt``, with `quantized` on int8 and uint8 arrays and their ranges; see ``_sg_mkldnn_selfatt_qk``."""
    product = get("_contrib_interleaved_matmul_selfatt_valatt").raw
    if not quantized:
        return product(queries_keys_values, attention, heads=heads)
    real = product(dequantize.raw(queries_keys_values, min_qkv, max_qkv), dequantize.raw(attention, min_attention, max_attention), heads=heads)
    return _attention_result(real, enable_float_output, min_calib_range, max_calib_range)


# -- calibration ---------------------------------------------------------------------------------------------------------------


def _smoothed(distribution, eps=np.float32(1e-4)):
    """Zeros become `eps`, at the cost of the others; None where that is impossible."""
    zero = distribution == 0
    zeros = int(zero.sum())
    if zeros == len(distribution):
        return None
    taken = eps * np.float32(zeros) / np.float32(len(distribution) - zeros)
    return None if taken >= 1 else (distribution + np.where(zero, eps, -taken)).astype(np.float32)


def _divergence(hist, first, last, bins):
    """How much is lost, as a Kullback-Leibler divergence, if what is outside of the histogram's bins [first, last) is cut off and the
    rest quantized to `bins` levels."""
    inner = hist[first:last].astype(np.int64)
    inner[0] = 0
    p = inner.astype(np.float32)
    p[0], p[-1] = hist[:first + 1].sum(), p[-1] + hist[last:].sum()
    # Each level takes the same number of bins; the last one takes what remains.
    width = len(inner) // bins
    level = np.minimum(np.arange(len(inner)) // width, bins - 1)
    filled = np.bincount(level, inner != 0, bins)
    mean = np.bincount(level, inner, bins) / np.maximum(filled, 1)
    q = np.where((p != 0) & (filled[level] > 0), mean[level], 0).astype(np.float32)
    p, q = _smoothed(p), _smoothed(q)
    if p is None or q is None:
        return np.inf
    p, q = p / p.sum(), q / q.sum()
    return float((p * np.log(p / q)).sum())


@op("_contrib_calibrate_entropy", num_outputs=2, output_names=("threshold", "divergence"), no_gradient=True, amp=None)
def calibrate_entropy(hist, hist_edges, *, num_quantized_bins: int = 255):
    """The threshold at which to cut off values so that quantizing the rest loses least information, and that loss.

    `hist` (n,) is a histogram around 0, `hist_edges` (n + 1,) the edges of its bins.
    """
    if hist.device.type == "meta":
        return hist.new_empty(1), hist.new_empty(1)
    n = hist.numel()
    if hist_edges.numel() != n + 1:
        raise MXNetError(f"_contrib_calibrate_entropy: {n} bins have {n + 1} edges, `hist_edges` has {hist_edges.numel()}")
    counts, edges = hist.cpu().numpy(), hist_edges.cpu().numpy()
    middle, half = n // 2, num_quantized_bins // 2
    if half > middle:
        raise MXNetError(f"_contrib_calibrate_entropy: a histogram of {n} bins is too coarse for {num_quantized_bins} levels")
    losses = [_divergence(counts, middle - i, min(middle + i + 1, n), num_quantized_bins) for i in range(half, middle + 1)]
    best = int(np.argmin(losses))
    return hist.new_tensor([edges[min(middle + half + best + 1, n)]]), hist.new_tensor([losses[best]])


@calibrate_entropy.shape_rule
def _entropy_shapes(in_shapes, out_shapes, **attributes):
    return in_shapes, [(1,), (1,)]


__all__ = ["calibrate_entropy", "dequantize", "quantize", "quantize_asym", "quantize_v2", "quantized_act", "quantized_batch_norm",
           "quantized_concat", "quantized_conv", "quantized_elemwise_add", "quantized_elemwise_mul", "quantized_embedding", "quantized_flatten",
           "quantized_fully_connected", "quantized_pooling", "quantized_rnn", "requantize"]
