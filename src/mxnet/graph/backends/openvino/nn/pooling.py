"""Pooling in OpenVINO."""
from openvino import opset15 as ops

from ..conversion import Call, Value, converts, ints
from ..integers import Ranged, arrays, quantized, results


@converts("Pooling")
def pooling(call: Call, data: Value) -> Value:
    if call.layout is not None and call.layout[1] != "C":
        call.refuse(f"layout {call.layout}")
    kind, sizes = call.pool_type, call.shape[2:]
    if kind not in ("max", "avg"):
        call.refuse(f"pool_type {kind}")
    axes = ints(range(2, len(call.shape)))
    if call.global_pool:
        return (ops.reduce_max if kind == "max" else ops.reduce_mean)(data, axes, True)
    n = len(call.kernel)
    # As in MXNet, numbers beyond the axes are ignored.
    kernel, strides, pads = call.kernel, (call.stride or (1,) * n)[:n], (call.pad or (0,) * n)[:n]
    # Padding behind the data that makes the number of windows, rounded down, the one MXNet has.
    needed = [(o - 1) * s + k - size - p for o, s, k, size, p in zip(call.out_shape[2:], strides, kernel, sizes, pads)]
    ends = [max(e, p) if e > p else p for e, p in zip(needed, pads)]
    if any(2 * p > k for p, k in zip(pads, kernel)) or any(e >= k for e, k in zip(ends, kernel)):
        call.refuse("windows that lie outside of the data")
    if kind == "max":
        return ops.max_pool(data, strides, [1] * n, pads, ends, kernel, "floor", "explicit", "i64", 0)
    exclude = call.count_include_pad is False or not any((*pads, *ends))
    if not exclude and any(e > p for e, p in zip(ends, pads)):
        call.refuse("an average over windows that reach behind the padding")
    return ops.avg_pool(data, strides, pads, ends, kernel, exclude, "floor", "explicit")


@converts("_contrib_quantized_pooling", integers=True)
def quantized_pooling(call: Call, data: Ranged, *ends: Value) -> list:
    array, = arrays(call, (data,), 1)
    pooled = pooling(call, array.value)
    # Maxima are on the grid already, means are not.
    return results(array.like(pooled) if call.pool_type == "max" else quantized(pooled, array.dtype, array.low, array.high))
