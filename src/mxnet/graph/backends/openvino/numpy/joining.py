"""Joining arrays of `mx.np` in OpenVINO."""
from openvino import opset15 as ops

from ..conversion import Call, Value, converts


@converts("_npi_concatenate")
def concatenate(call: Call, *inputs: Value) -> Value:
    if call.attributes.get("axis") is None:
        call.refuse("flattening")
    return ops.concat(list(inputs), call.axis(call.attributes["axis"]))
