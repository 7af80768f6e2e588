"""Reshaping operators in OpenVINO. All shapes are known, so each becomes a plain Reshape."""
from openvino import opset15 as ops

from ..conversion import Call, Value, converts
from ..integers import Ranged, arrays, results


@converts("Reshape", "reshape_like", "Flatten", "expand_dims", "squeeze")
def reshape(call: Call, data: Value, *others: Value) -> Value:
    return call.reshape(data, call.out_shape)


@converts("transpose")
def transpose(call: Call, data: Value) -> Value:
    ndim = len(call.shape)
    return call.transpose(data, [a % ndim for a in call.axes] if call.axes else range(ndim - 1, -1, -1))


@converts("SwapAxis")
def swap_axis(call: Call, data: Value) -> Value:
    axes = list(range(len(call.shape)))
    a, b = call.axis(call.dim1), call.axis(call.dim2)
    axes[a], axes[b] = b, a
    return call.transpose(data, axes)


@converts("depth_to_space")
def depth_to_space(call: Call, data: Value) -> Value:
    return ops.depth_to_space(data, "blocks_first", call.block_size)


@converts("space_to_depth")
def space_to_depth(call: Call, data: Value) -> Value:
    return ops.space_to_depth(data, "blocks_first", call.block_size)


@converts("_contrib_quantized_flatten", integers=True)
def quantized_flatten(call: Call, data: Ranged, *ends: Value) -> list:
    array, = arrays(call, (data,), 1)
    return results(array.like(call.reshape(array.value, call.out_shape)))
