"""Matrix products in OpenVINO."""
from openvino import opset15 as ops

from .conversion import Call, Value, converts


@converts("dot")
def dot(call: Call, lhs: Value, rhs: Value) -> Value:
    call.floats()
    if len(call.in_shapes[0]) != 2 or len(call.in_shapes[1]) != 2:
        call.refuse("arrays that are no matrices")
    return ops.matmul(lhs, rhs, call.transpose_a, call.transpose_b)


@converts("batch_dot", "_linalg_gemm2")
def batch_dot(call: Call, lhs: Value, rhs: Value) -> Value:
    call.floats()
    if call.attributes.get("axis", -2) != -2:
        call.refuse("axis")
    out = ops.matmul(lhs, rhs, call.transpose_a, call.transpose_b)
    alpha = call.attributes.get("alpha", 1.0)
    return out if alpha == 1.0 else ops.multiply(out, call.float(alpha))
