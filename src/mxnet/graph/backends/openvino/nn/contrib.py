"""Operators of `ops.nn.contrib` in OpenVINO."""
from ..conversion import Call, Value, converts


@converts("_contrib_gradientmultiplier")
def gradient_multiplier(call: Call, data: Value) -> Value:
    return data
