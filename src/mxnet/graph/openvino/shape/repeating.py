"""Repeating, padding and reversing in OpenVINO."""
from openvino import opset15 as ops

from ..conversion import converts, ints
from .slicing import strided


@converts("tile")
def tile(call, data):
    return ops.tile(data, ints(call.reps))


@converts("broadcast_to", "broadcast_axis", "broadcast_like")
def broadcast(call, data, *others):
    return ops.broadcast(data, ints(call.out_shape))


@converts("Pad")
def pad(call, data):
    begins, ends = call.pad_width[0::2], call.pad_width[1::2]
    return ops.pad(data, ints(begins), ints(ends), call.mode, call.const(call.constant_value))


def reversed_along(call, data, axes):
    """The data reversed along `axes`."""
    return strided(call, data, [-1 for _ in axes], [-call.shape[a] - 1 for a in axes], [-1 for _ in axes], axes)


@converts("reverse")
def reverse(call, data):
    return reversed_along(call, data, [call.axis(a) for a in call.attributes["axis"]])
