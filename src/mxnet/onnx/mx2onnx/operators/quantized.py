"""Layers on 8-bit integers, as ``mx.contrib.quantization`` makes them: each is written as the layer on real numbers between DequantizeLinear and
QuantizeLinear, the form (QDQ) that runtimes convert to integer kernels.

A value of the Symbol is represented by `Integers`, which has its real numbers; the ends of its range are constants of the file, so that a
network must be calibrated.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ....graph.int8.fused_nodes import Integers as FusedLayer
from ....ops.quantization.arithmetic import INT8, INT32, UINT8
from ....ops.registry import get
from ....symbol.fused import elemwise_add, stands_for
from ....symbol.node import topological
from ..builder import Integers, Unsupported
from ..registry import exports, write

if TYPE_CHECKING:
    from ..builder import Builder, Value

_LEVELS = {np.dtype(np.int8): INT8, np.dtype(np.uint8): UINT8, np.dtype(np.int32): INT32}
_MOST = float(np.finfo(np.float32).max)
_ALIKE = {"_contrib_quantized_pooling": "Pooling", "_contrib_quantized_act": "Activation", "_contrib_quantized_flatten": "Flatten"}
_PRODUCTS = {"_contrib_quantized_conv": "Convolution", "_contrib_quantized_fully_connected": "FullyConnected"}


def _number(value, what):
    if value is None or value.array is None or value.array.size != 1:
        raise Unsupported(f"{what} of its input follows from the data when the network runs; calibrate the network (calib_mode 'naive' or 'entropy')")
    return float(value.array.reshape(()))


def _calibrated(low, high):
    if low is None or high is None:
        raise Unsupported("its range follows from the data when the network runs; calibrate the network (calib_mode 'naive' or 'entropy')")
    return float(low), float(high)


def _limit(low, high):
    """Return the larger magnitude of a range, given as two values."""
    return max(abs(_number(low, "the lower end")), abs(_number(high, "the upper end")))


def _ends(on, low, high):
    return [on.const([end], np.float32) for end in (low, high)]


def _as_integers(x, low, high):
    """Return an 8-bit value of the Symbol as `Integers`, with the scale of its range."""
    if x.dtype not in _LEVELS or x.dtype == np.int32:
        raise Unsupported(f"int8 or uint8 is expected, received {x.dtype}")
    unit = float(np.float32(_limit(low, high)) / np.float32(_LEVELS[x.dtype]))
    return x if isinstance(x, Integers) and x.unit == unit else Integers(x.name, x.dtype, x.shape, x.array, unit)


def _quantized(on, real, limit, dtype, scale=None):
    """Quantize real numbers to integers of a type, for the range of this magnitude; `scale` is the divisor, by default the unit."""
    unit = float(np.float32(limit) / np.float32(_LEVELS[np.dtype(dtype)]))
    scale = unit if scale is None else scale
    values = on.QuantizeLinear(real, np.array(scale if scale > 0 else _MOST, np.float32), np.zeros((), dtype), dtype=dtype, out_shape=real.shape)
    made = Integers(values.name, values.dtype, values.shape, None, unit)
    on.nodes[-1].outputs[0] = made
    return made


@exports("_contrib_quantize_v2")
def quantize_v2(on: Builder, x: Value, *, out_type: str, min_calib_range: Any, max_calib_range: Any) -> list[Value]:
    low, high = _calibrated(min_calib_range, max_calib_range)
    if x.dtype in _LEVELS:  # it is quantized already
        return [x, *_ends(on, low, high)]
    limit = max(abs(low), abs(high))
    return [_quantized(on, x, limit, on.dtype), *_ends(on, *((low, high) if on.dtype == np.uint8 else (-limit, limit)))]


@exports("_contrib_quantize")
def quantize(on: Builder, x: Value, low: Value, high: Value, *, out_type: str) -> list[Value]:
    """Quantize so that the magnitude of the range becomes 127 or 255; dequantization returns slightly less, as in MXNet."""
    limit = _limit(low, high)
    if out_type == "uint8":
        return [_quantized(on, x, limit, np.uint8, limit / 255), low, high]
    return [_quantized(on, on.Clip(x, -limit, limit), limit, np.int8, limit / 127), *_ends(on, -limit, limit)]


@exports("_contrib_dequantize", ignores=("out_type",))
def dequantize(on: Builder, x: Value, low: Value, high: Value) -> Value:
    return _as_integers(x, low, high).real(on)


@exports("_contrib_requantize", ignores=("out_type",))
def requantize(on: Builder, x: Value, low: Value, high: Value, *, min_calib_range: Any, max_calib_range: Any) -> list[Value]:
    """Requantize sums of products. Their range implies a slightly larger unit than their factors do, as in MXNet."""
    if not isinstance(x, Integers):
        raise Unsupported("its input is expected from a layer on integers")
    limit = max(map(abs, _calibrated(min_calib_range, max_calib_range)))
    meaning = _limit(low, high) / INT32
    scale = limit / (255 if on.dtype == np.uint8 else 127) * (x.unit / meaning)
    return [_quantized(on, x.real(on), limit, on.dtype, scale), *_ends(on, 0 if on.dtype == np.uint8 else -limit, limit)]


def _given(node, inputs):
    """Return the inputs by name."""
    return dict(zip(node.input_names(), inputs, strict=True))


def _ranged(given, name, pattern=("min_{}", "max_{}")):
    """Return an input as `Integers`, and the magnitude of its range."""
    low, high = (given[end.format(name)] for end in pattern)
    return _as_integers(given[name], low, high), _limit(low, high)


def _sums(on, real, unit, data, data_limit, weight_limit):
    """Return the outputs of a product on integers: int32 values, and the ends of their range."""
    limit = data_limit / (255 if data.dtype == np.uint8 else 127) * (weight_limit / 127) * INT32
    return [Integers(real.name, np.dtype(np.int32), real.shape, None, unit, real), *_ends(on, -limit, limit)]


@exports(*_PRODUCTS)
def product(on: Builder, *inputs: Value, node: Any, operator: str) -> Any:
    given = _given(node, inputs)
    (data, data_limit), (weight, weight_limit) = _ranged(given, "data"), _ranged(given, "weight")
    unit, bias = data.unit * weight.unit, None
    if given.get("bias") is not None:
        bias, bias_limit = _ranged(given, "bias")
        if bias.array is None:
            raise Unsupported("its bias is expected among the parameters")
        units = np.float32(_LEVELS[data.dtype] / data_limit) * np.float32(INT8 / weight_limit) * np.float32(bias_limit / INT8)
        bias = _scaled(on, np.trunc(bias.array * units).astype(np.int32), unit)
    real = write(on, get(_PRODUCTS[operator]), node.parsed(), data.real(on), weight.real(on), *([] if bias is None else [bias]))
    real.shape = on.shape
    return _sums(on, real, unit, data, data_limit, weight_limit)


def _scaled(on, values, unit):
    """Dequantize integer parameters, by one unit or one for each output channel."""
    unit = np.asarray(unit, np.float32)
    unit, axis = (unit.reshape(()), None) if unit.size == 1 else (unit, 0)
    zero = None if values.dtype == np.int32 else np.zeros(unit.shape, values.dtype)
    return on.DequantizeLinear(values, unit, zero, axis=axis, dtype=np.float32, out_shape=values.shape)


@exports("_sg_mkldnn_conv", "_sg_mkldnn_fully_connected")
def fused(on: Builder, *inputs: Value, node: Any) -> Any:
    """Write a layer fused with the operators after it."""
    graph = stands_for(node)
    if graph is not None:
        return _chain(on, graph, inputs)
    layer, given = FusedLayer(node), _given(node, inputs)
    data, data_limit = _ranged(given, "data", layer.ranges["data"])
    constants = {name: torch.from_numpy(value.array) for name, value in given.items() if value is not None and value.array is not None}
    missing = [name for name in layer.recipe.inputs if name not in ("data", "sum") and name not in constants]
    if missing:
        raise Unsupported(f"{', '.join(missing)} of it are expected among the parameters")
    weights = layer.weights(constants, torch.tensor([data.unit]))
    unit = data.unit * weights.unit.numpy().astype(np.float64)
    arrays = [_scaled(on, weights.values.numpy(), weights.unit.numpy())]
    if weights.bias is not None:
        arrays.append(_scaled(on, np.rint(weights.bias.numpy() / unit).clip(-2**31, 2**31 - 1).astype(np.int32), unit))
    out = write(on, layer.recipe.product, {**layer.recipe.attributes, "no_bias": len(arrays) == 1}, data.real(on), *arrays)
    for op, attributes in layer.recipe.following:
        out.shape = on.shape
        out = on.Add(out, _ranged(given, "sum", layer.ranges["sum"])[0].real(on)) if op is elemwise_add else write(on, op, attributes, out)
    out.shape = on.shape
    if layer.dtype is torch.int32:
        return _sums(on, out, float(unit.reshape(())), data, data_limit, float(weights.limit))
    if layer.ends is None or layer.dtype is torch.float32:
        return out
    return [_quantized(on, out, max(map(abs, layer.ends)), on.dtype), *_ends(on, *layer.ends)]


def _chain(on, graph, inputs):
    """Write a fused layer on real numbers as the nodes of its graph."""
    values, given = {}, iter(inputs)
    for node in topological(graph):
        if node.op is None:
            values[id(node)] = next(given)
            continue
        out = write(on, node.op, node.op.with_defaults(node.parsed()), *(values[id(source)] for source, _ in node.inputs))
        values[id(node)] = (out if not isinstance(out, (list, tuple)) else out[0])
        values[id(node)].shape = on.shape
    return values[id(graph[0][0])]


@exports(*_ALIKE)
def alike(on: Builder, x: Value, low: Value, high: Value, *, node: Any, operator: str) -> list[Value]:
    """Write operators that keep the range."""
    data = _as_integers(x, low, high)
    out = write(on, get(_ALIKE[operator]), node.parsed(), data.real(on))
    out.shape = on.shape
    return [_quantized(on, out, _limit(low, high), x.dtype), low, high]


@exports("_contrib_quantized_concat")
def concat(on: Builder, *inputs: Value, node: Any) -> Any:
    count = len(inputs) // 3
    arrays, lows, highs = inputs[:count], inputs[count::2], inputs[count + 1::2]
    low, high = min(_number(v, "the lower end") for v in lows), max(_number(v, "the upper end") for v in highs)
    reals = [_as_integers(*three).real(on) for three in zip(arrays, lows, highs)]
    out = write(on, get("Concat"), node.parsed(), *reals)
    out.shape = on.shape
    return [_quantized(on, out, max(abs(low), abs(high)), on.dtype), *_ends(on, low, high)]


@exports("_contrib_quantized_elemwise_add")
def add(on: Builder, lhs: Value, rhs: Value, *ends: Value, min_calib_range: Any, max_calib_range: Any) -> Any:
    lhs, rhs = _as_integers(lhs, *ends[:2]), _as_integers(rhs, *ends[2:])
    out = on.Add(lhs.real(on), rhs.real(on), out_shape=on.shape)
    if None in (min_calib_range, max_calib_range):
        limit = _limit(*ends[:2]) + _limit(*ends[2:])
        return [Integers(out.name, np.dtype(np.int32), out.shape, None, limit / INT32, out), *_ends(on, -limit, limit)]
    return [_quantized(on, out, max(abs(min_calib_range), abs(max_calib_range)), on.dtype), *_ends(on, min_calib_range, max_calib_range)]


@exports("_contrib_quantized_elemwise_mul")
def multiply(on: Builder, lhs: Value, rhs: Value, *ends: Value, min_calib_range: Any, max_calib_range: Any, enable_float_output: bool) -> Any:
    """Write products; on a calibrated range they are rounded towards zero."""
    left, right = _as_integers(lhs, *ends[:2]), _as_integers(rhs, *ends[2:])
    out = on.Mul(left.real(on), right.real(on), out_shape=on.shape)
    if enable_float_output:
        return out
    if None in (min_calib_range, max_calib_range):
        return _sums(on, out, left.unit * right.unit, left, _limit(*ends[:2]), _limit(*ends[2:]))
    limit = max(abs(min_calib_range), abs(max_calib_range))
    cut = on.Mul(on.Mul(on.Sign(out), on.Floor(on.Div(on.Abs(out), limit / INT8))), limit / INT8, out_shape=on.shape)
    return [_quantized(on, cut, limit, np.int8), *_ends(on, min_calib_range, max_calib_range)]


@exports("_contrib_quantized_batch_norm")
def batch_norm(on: Builder, x: Value, gamma: Value, beta: Value, mean: Value, variance: Value, low: Value, high: Value, *, node: Any,
               min_calib_range: Any, max_calib_range: Any) -> Any:
    """Write batch normalization: as in MXNet, `gamma` is used regardless of `fix_gamma`, and uint8 is converted to int8 first."""
    ends = _calibrated(min_calib_range, max_calib_range)
    data = _as_integers(x, low, high)
    if x.dtype == np.uint8:
        data = _quantized(on, data.real(on), _limit(low, high), np.int8)
    out = write(on, get("BatchNorm"), {**node.parsed(), "fix_gamma": False}, data.real(on), gamma, beta, mean, variance)
    out.shape = on.shape
    return [_quantized(on, out, max(map(abs, ends)), np.int8), *_ends(on, *ends)]


@exports("_contrib_quantized_embedding")
def embedding(on: Builder, indices: Value, weight: Value, low: Value, high: Value, *, node: Any) -> Any:
    rows = _as_integers(weight, low, high)
    result = write(on, get("Embedding"), node.parsed(), indices, rows)
    made = Integers(result.name, weight.dtype, on.shape, None, rows.unit)
    on.nodes[-1].outputs[0] = made
    return [made, low, high]
