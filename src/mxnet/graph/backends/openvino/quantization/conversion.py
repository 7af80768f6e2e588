"""Quantization and dequantization in OpenVINO."""
import numpy as np
import torch
from openvino import opset15 as ops

from ..conversion import Call, Value, constant, converts
from ..integers import Ranged, Shifted, arrays, calibrated, results


@converts("_contrib_quantize_v2", integers=True)
def quantize_v2(call: Call, data: Value | Ranged) -> list:
    if isinstance(data, Ranged):
        return results(data)
    if call.in_types[0] is not torch.float32:
        call.refuse("integers whose range is not known ahead")
    return results(_symmetric(calibrated(call, data, call.out_types[0])))


def _symmetric(array: Ranged) -> Ranged:
    """Return an int8 array with a symmetric range; uint8 unchanged."""
    if array.dtype is torch.uint8:
        return array
    top = max(abs(array.low), abs(array.high))
    return array._replace(low=-top, high=top)


@converts("_contrib_quantize_asym", integers=True)
def quantize_asym(call: Call, data: Value | Ranged) -> list:
    low, high = call.attributes["min_calib_range"], call.attributes["max_calib_range"]
    if low is None or high is None or isinstance(data, Ranged) or call.in_types[0] is not torch.float32:
        call.refuse("its range is not calibrated" if low is None or high is None else "integers that are shifted")
    if low == high:
        low, high = min(low, 0.), max(high, 0.)
    if not low < high:
        call.refuse(f"integers for the range from {low} to {high}")
    unit = (high - low) / 255
    ends = [constant(end, torch.float32) for end in (low, high)]
    return [Shifted(ops.fake_quantize(data, *ends, *ends, 256).output(0), low, unit),
            *(constant(np.asarray([number], np.float32), torch.float32) for number in (1 / unit, -low / unit))]


@converts("_contrib_requantize", integers=True)
def requantize(call: Call, data: Ranged, *ends: Value) -> list:
    array, = arrays(call, (data,), 1)
    array = _symmetric(calibrated(call, array.value, call.out_types[0]))
    return results(array if array.dtype is not torch.uint8 else array._replace(low=0.0, high=max(abs(array.low), abs(array.high))))


@converts("_contrib_dequantize", integers=True)
def dequantize(call: Call, data: Ranged, *ends: Value) -> Value:
    array, = arrays(call, (data,), 1)
    if array.dtype is torch.int32:
        call.refuse("sums of products")
    return array.value
