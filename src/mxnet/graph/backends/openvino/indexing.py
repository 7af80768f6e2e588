"""Lookups by index in OpenVINO."""
import torch
from openvino import opset15 as ops

from .conversion import Call, Value, constant, converts


def row_indices(call: Call, indices: Value, size: int) -> Value:
    """Return the indices, clamped to the existing rows."""
    indices = call.cast(indices, torch.int64)
    return ops.minimum(ops.maximum(indices, constant(0, torch.int64)), constant(size - 1, torch.int64))


@converts("take")
def take(call: Call, data: Value, indices: Value) -> Value:
    axis = call.axis(call.attributes["axis"])
    if call.mode != "clip":
        call.refuse(f"mode {call.mode}")
    return ops.gather(data, row_indices(call, indices, call.shape[axis]), constant(axis, torch.int64))


@converts("one_hot")
def one_hot(call: Call, indices: Value) -> Value:
    values = (constant(v, call.out_types[0]) for v in (call.on_value, call.off_value))
    return ops.one_hot(call.cast(indices, torch.int64), constant(call.depth, torch.int64), *values, -1)
