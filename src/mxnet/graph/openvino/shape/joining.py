"""Joining arrays in OpenVINO."""
from openvino import opset15 as ops

from ..conversion import Call, Value, converts, ints


@converts("Concat")
def concat(call: Call, *inputs: Value) -> Value:
    return ops.concat(list(inputs), call.axis(call.dim))


@converts("stack")
def stack(call: Call, *inputs: Value) -> Value:
    axis = call.axis(call.attributes["axis"], len(call.out_shape))
    return ops.concat([ops.unsqueeze(x, ints([axis])).output(0) for x in inputs], axis)
