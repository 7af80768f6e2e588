"""What of `ops.nn.contrib` OpenVINO computes."""
from ..conversion import Call, Value, converts


@converts("_contrib_gradientmultiplier")
def gradient_multiplier(call: Call, data: Value) -> Value:
    return data
