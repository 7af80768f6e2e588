"""Joining arrays in OpenVINO."""
from openvino import opset15 as ops

from ..conversion import Call, Value, converts, ints
from ..integers import arrays, quantized, results


@converts("Concat")
def concat(call: Call, *inputs: Value) -> Value:
    return ops.concat(list(inputs), call.axis(call.dim))


@converts("stack")
def stack(call: Call, *inputs: Value) -> Value:
    axis = call.axis(call.attributes["axis"], len(call.out_shape))
    return ops.concat([ops.unsqueeze(x, ints([axis])).output(0) for x in inputs], axis)


@converts("_contrib_quantized_concat", integers=True)
def quantized_concat(call: Call, *inputs: Value) -> list:
    parts = arrays(call, inputs, call.num_args)
    low, high, dtype = min(p.low for p in parts), max(p.high for p in parts), call.out_types[0]
    parts = [p if (p.low, p.high, p.dtype) == (low, high, dtype) else quantized(p.value, dtype, low, high) for p in parts]
    return results(parts[0].like(ops.concat([p.value for p in parts], call.axis(call.dim)))._replace(low=low, high=high))
