"""Attention in OpenVINO."""
import math
from collections.abc import Iterable

import torch
from openvino import opset15 as ops

from ..conversion import Call, Value, constant, converts
from ..integers import Ranged, arrays, calibrated, results


@converts("_contrib_div_sqrt_dim")
def div_sqrt_dim(call: Call, data: Value) -> Value:
    return ops.divide(data, call.float(math.sqrt(call.shape[-1])))


def _heads(call: Call, data: Value, shape: Iterable[int], heads: int, parts: int) -> tuple[list[Value], int]:
    """Split (T, N, heads * parts * size) into `parts` arrays of (N * heads, T, size); return these and the size."""
    length, batch, width = shape
    size = width // (heads * parts)
    if size * heads * parts != width:
        call.refuse(f"{width} features are no multiple of {heads * parts}")
    split = ops.split(call.reshape(data, (length, batch * heads, parts, size)), constant(2, torch.int64), parts).outputs()
    return [call.transpose(call.reshape(s, (length, batch * heads, size)), (1, 0, 2)) for s in split], size


def _attention_scores(call: Call, queries: Value, keys: Value, size: int) -> Value:
    scale = call.float(1 / math.sqrt(size))
    return ops.matmul(ops.multiply(queries, scale), keys, False, True)


def _mixed(call: Call, attention: Value, values: Value) -> Value:
    return call.reshape(call.transpose(ops.matmul(attention, values, False, False), (1, 0, 2)), call.out_shape)


@converts("_contrib_interleaved_matmul_selfatt_qk")
def selfatt_qk(call: Call, data: Value) -> Value:
    (queries, keys, _), size = _heads(call, data, call.shape, call.heads, 3)
    return _attention_scores(call, queries, keys, size)


@converts("_contrib_interleaved_matmul_selfatt_valatt")
def selfatt_valatt(call: Call, data: Value, attention: Value) -> Value:
    return _mixed(call, attention, _heads(call, data, call.shape, call.heads, 3)[0][2])


@converts("_contrib_interleaved_matmul_encdec_qk")
def encdec_qk(call: Call, queries: Value, keys_values: Value) -> Value:
    (queries,), size = _heads(call, queries, call.in_shapes[0], call.heads, 1)
    return _attention_scores(call, queries, _heads(call, keys_values, call.in_shapes[1], call.heads, 2)[0][0], size)


@converts("_contrib_interleaved_matmul_encdec_valatt")
def encdec_valatt(call: Call, keys_values: Value, attention: Value) -> Value:
    return _mixed(call, attention, _heads(call, keys_values, call.shape, call.heads, 2)[0][1])


def _maybe_integers(call: Call, out: Value) -> list | Value:
    if call.enable_float_output:
        return out
    return results(calibrated(call, out, call.out_types[0])) if call.out_types[0] is not torch.int32 else call.refuse("its range is not calibrated")


@converts("_sg_mkldnn_selfatt_qk", integers=True)
def quantized_selfatt_qk(call: Call, data: Ranged, *ends: Value) -> list | Value:
    array, = arrays(call, (data,), 1)
    return _maybe_integers(call, selfatt_qk(call, array.value))


@converts("_sg_mkldnn_selfatt_valatt", integers=True)
def quantized_selfatt_valatt(call: Call, data: Ranged, attention: Ranged, *ends: Value) -> list | Value:
    array, weights = arrays(call, (data, attention), 2)
    return _maybe_integers(call, selfatt_valatt(call, array.value, weights.value))
