"""Dropout in OpenVINO: nothing, in inference."""
from ..conversion import converts


@converts("Dropout")
def dropout(call, data):
    if call.mode == "always":
        call.refuse("draws random numbers")
    return data
