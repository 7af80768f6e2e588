"""Matrix products of `mx.np` in OpenVINO."""
from openvino import opset15 as ops

from ..conversion import Call, Value, converts


@converts("_np_dot", "_npi_matmul")
def matmul(call: Call, lhs: Value, rhs: Value) -> Value:
    call.floats()
    if call.name == "_np_dot" and max(map(len, call.in_shapes)) > 2:
        call.refuse("arrays with more than two axes")
    if min(map(len, call.in_shapes)) < 2:
        call.refuse("vectors")
    return ops.matmul(lhs, rhs, False, False)
