"""Quantizing in OpenVINO."""
import torch

from ..conversion import Call, Value, converts
from ..integers import Ranged, arrays, calibrated, results


@converts("_contrib_quantize_v2", integers=True)
def quantize_v2(call: Call, data: Value | Ranged) -> list:
    if isinstance(data, Ranged):
        return results(data)
    if call.in_types[0] is not torch.float32:
        call.refuse("integers whose range is not known ahead")
    return results(_symmetric(calibrated(call, data, call.out_types[0])))


def _symmetric(array: Ranged) -> Ranged:
    """int8 says that its range is symmetric."""
    if array.dtype is torch.uint8:
        return array
    top = max(abs(array.low), abs(array.high))
    return array._replace(low=-top, high=top)


@converts("_contrib_requantize", integers=True)
def requantize(call: Call, data: Ranged, *ends: Value) -> list:
    array, = arrays(call, (data,), 1)
    made = _symmetric(calibrated(call, array.value, call.out_types[0]))
    return results(made if made.dtype is not torch.uint8 else made._replace(low=0.0, high=max(abs(made.low), abs(made.high))))


@converts("_contrib_dequantize", integers=True)
def dequantize(call: Call, data: Ranged, *ends: Value) -> Value:
    array, = arrays(call, (data,), 1)
    if array.dtype is torch.int32:
        call.refuse("sums of products")
    return array.value
