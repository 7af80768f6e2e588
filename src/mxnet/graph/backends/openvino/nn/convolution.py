"""Convolutions in OpenVINO."""
from collections.abc import Sequence

from openvino import opset15 as ops

from ..conversion import Call, Value, converts
from ..integers import sums


def _windows(call: Call) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    n = len(call.kernel)
    return call.stride or (1,) * n, call.dilate or (1,) * n, call.pad or (0,) * n


@converts("Convolution", "Convolution_v1")
def convolution(call: Call, data: Value, weight: Value, bias: Value = None) -> Value:
    if call.layout is not None and call.layout[1] != "C":
        call.refuse(f"layout {call.layout}")
    strides, dilations, pads = _windows(call)
    groups, shape = call.num_group, call.in_shapes[1]
    if groups == 1:
        out = ops.convolution(data, weight, strides, pads, pads, dilations)
    else:
        weight = call.reshape(weight, (groups, shape[0] // groups, *shape[1:]))
        out = ops.group_convolution(data, weight, strides, pads, pads, dilations)
    return out if bias is None else ops.add(out, call.per_channel(bias, len(shape)))


@converts("Deconvolution")
def deconvolution(call: Call, data: Value, weight: Value, bias: Value = None) -> Value:
    if call.layout is not None and call.layout[1] != "C" or any(call.target_shape):
        call.refuse("layout or target_shape")
    strides, dilations, pads = _windows(call)
    groups, shape = call.num_group, call.in_shapes[1]
    more = {"output_padding": list(call.adj)} if call.adj else {}
    if groups == 1:
        out = ops.convolution_backprop_data(data, weight, strides, pads_begin=pads, pads_end=pads, dilations=dilations, **more)
    else:
        weight = call.reshape(weight, (groups, shape[0] // groups, *shape[1:]))
        out = ops.group_convolution_backprop_data(data, weight, strides, pads_begin=pads, pads_end=pads, dilations=dilations, **more)
    return out if bias is None else ops.add(out, call.per_channel(bias, len(shape)))


@converts("_contrib_quantized_conv", integers=True)
def quantized_conv(call: Call, *inputs: Value) -> list:
    return sums(call, inputs)
