"""Fully connected layers in OpenVINO."""
import math

from openvino import opset15 as ops

from ..conversion import Call, Value, converts
from ..integers import sums


@converts("FullyConnected")
def fully_connected(call: Call, data: Value, weight: Value, bias: Value = None) -> Value:
    if call.flatten and len(call.shape) != 2:
        data = call.reshape(data, (call.shape[0], math.prod(call.shape[1:])))
    out = ops.matmul(data, weight, False, True)
    return out if bias is None else ops.add(out, bias)


@converts("_contrib_quantized_fully_connected", integers=True)
def quantized_fully_connected(call: Call, *inputs: Value) -> list:
    return sums(call, inputs)
