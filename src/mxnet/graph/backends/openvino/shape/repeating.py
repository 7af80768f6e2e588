"""Repeating, padding and reversing in OpenVINO."""
from collections.abc import Iterable

from openvino import opset15 as ops

from ..conversion import Call, Value, converts, ints
from .slicing import strided


@converts("tile")
def tile(call: Call, data: Value) -> Value:
    return ops.tile(data, ints(call.reps))


@converts("broadcast_to", "broadcast_axis", "broadcast_like")
def broadcast(call: Call, data: Value, *others: Value) -> Value:
    return ops.broadcast(data, ints(call.out_shape))


@converts("Pad")
def pad(call: Call, data: Value) -> Value:
    begins, ends = call.pad_width[0::2], call.pad_width[1::2]
    return ops.pad(data, ints(begins), ints(ends), call.mode, call.const(call.constant_value))


def reversed_along(call: Call, data: Value, axes: Iterable[int]) -> Value:
    """Return the data reversed along `axes`."""
    return strided(call, data, [-1 for _ in axes], [-call.shape[a] - 1 for a in axes], [-1 for _ in axes], axes)


@converts("reverse")
def reverse(call: Call, data: Value) -> Value:
    return reversed_along(call, data, [call.axis(a) for a in call.attributes["axis"]])
