"""Dropout in OpenVINO: the identity, in inference."""
from ..conversion import Call, Value, converts


@converts("Dropout")
def dropout(call: Call, data: Value) -> Value:
    if call.mode == "always":
        call.refuse("draws random numbers")
    return data
