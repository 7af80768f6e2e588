"""Joining arrays of `mx.np` in OpenVINO."""
from openvino import opset15 as ops

from ..conversion import converts


@converts("_npi_concatenate")
def concatenate(call, *inputs):
    if call.attributes.get("axis") is None:
        call.refuse("flattening")
    return ops.concat(list(inputs), call.axis(call.attributes["axis"]))
