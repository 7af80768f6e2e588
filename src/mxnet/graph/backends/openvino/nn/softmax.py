"""Softmax operators in OpenVINO."""
from openvino import opset15 as ops

from ..conversion import Call, Value, converts


def _scaled(call: Call, data: Value) -> Value:
    if call.attributes.get("use_length") or call.attributes.get("dtype") is not None:
        call.refuse("a length or another type")
    return ops.divide(data, call.float(call.temperature)) if call.temperature not in (None, 1.0) else data


@converts("softmax")
def softmax(call: Call, data: Value, length: Value = None) -> Value:
    return ops.softmax(_scaled(call, data), call.axis(call.attributes["axis"]))


@converts("log_softmax")
def log_softmax(call: Call, data: Value) -> Value:
    return ops.log_softmax(_scaled(call, data), call.axis(call.attributes["axis"]))


@converts("softmin")
def softmin(call: Call, data: Value) -> Value:
    return ops.softmax(ops.negative(_scaled(call, data)), call.axis(call.attributes["axis"]))


@converts("SoftmaxActivation")
def softmax_activation(call: Call, data: Value) -> Value:
    return ops.softmax(data, 1 if call.mode == "channel" else len(call.shape) - 1)
