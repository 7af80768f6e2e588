"""Operators between real numbers and quantized ones."""
from collections.abc import Callable
from typing import Literal, Optional

import torch

from ..registry import Operator, op
from ..schema import Finite
from ..shapes import unify
from .arithmetic import EIGHT_BITS, INT8, UINT8, as_arrays, calibrated, check_types, levels, limit_of, ranged, store

OutType = Literal["auto", "int8", "uint8"]
Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _chosen(out_type: str, low: Optional[float], high: Optional[float]) -> torch.dtype:
    """``auto`` is uint8 where calibration has found nothing negative."""
    if out_type == "auto":
        return torch.uint8 if low is not None and high is not None and low >= 0 else torch.int8
    return torch.uint8 if out_type == "uint8" else torch.int8


def _declared(attributes: dict) -> torch.dtype:
    return _chosen(attributes["out_type"], attributes.get("min_calib_range"), attributes.get("max_calib_range"))


def _range(data: torch.Tensor, low: Optional[float], high: Optional[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """The calibrated range, or the one that `data` has."""
    return calibrated(low, high, data) or (data.min().reshape(1), data.max().reshape(1))


def _scale(count: float, limit: torch.Tensor) -> torch.Tensor:
    """Return the number of levels in a real unit: 0 for a range of zeros alone, and finite for the smallest ranges."""
    return torch.where(limit == 0, torch.zeros_like(limit), count / limit).clamp_(max=torch.finfo(limit.dtype).max)


def _rules(operator: Operator, known: Optional[torch.dtype], result: Callable[[dict], torch.dtype]) -> None:
    """Inference for one array, of the type `known` if not None, whose other inputs and outputs are ranges: one float32 each."""
    def shape_rule(in_shapes, out_shapes, **attributes):
        both = unify(in_shapes[0], out_shapes[0])
        return [both, *[(1,)] * (len(in_shapes) - 1)], [both, *[(1,)] * (len(out_shapes) - 1)]

    def dtype_rule(in_types, out_types, **attributes):
        ins = [in_types[0] or known, *(t or torch.float32 for t in in_types[1:])]
        return ins, [result(attributes), *[torch.float32] * (len(out_types) - 1)]

    operator.shape_rule(shape_rule)
    operator.dtype_rule(dtype_rule)
    if "max_calib_range" in operator.attributes:
        operator.calibrates = "input", 0


@op("_contrib_quantize", num_outputs=3, no_gradient=True)
def quantize(data: torch.Tensor, min_range: torch.Tensor, max_range: torch.Tensor, *, out_type: Literal["int8", "uint8"] = "uint8") -> Three:
    """Quantize float32 `data` for a given range. Returns the integers, and the range that they represent: two arrays of one element.

    Here the larger magnitude of the range becomes 127 (int8) or 255 (uint8).

    Example
    -------
    >>> q, low, high = mx.nd.contrib.quantize(mx.nd.array([-1, 0.5, 2]), mx.nd.array([-4]), mx.nd.array([4]), out_type='int8')
    >>> q.asnumpy()
    array([-32,  16,  64], dtype=int8)
    """
    check_types("_contrib_quantize", (torch.float32,), data=data)
    limit = ranged("_contrib_quantize", "data", data, min_range, max_range).limit
    if out_type == "uint8":
        return store(data * _scale(255, limit), torch.uint8), min_range.reshape(1).clone(), max_range.reshape(1).clone()
    return store((data * _scale(127, limit)).clamp(-127, 127), torch.int8), -limit, limit


_rules(quantize, torch.float32, _declared)


@op("_contrib_quantize_v2", num_outputs=3, no_gradient=True)
def quantize_v2(data: torch.Tensor, *, out_type: OutType = "int8", min_calib_range: Optional[Finite] = None,
                max_calib_range: Optional[Finite] = None) -> Three:
    """Quantize float32 `data` for the calibrated range, by default for the range it has. Returns the integers and their range.

    ``auto`` is uint8 where the calibrated range has nothing negative, else int8. Data that is quantized already passes as it is.

    Example
    -------
    >>> q, low, high = mx.nd.contrib.quantize_v2(mx.nd.array([-1, 0.5, 2]))
    >>> q.asnumpy()
    array([-64,  32, 127], dtype=int8)
    >>> mx.nd.concat(low, high, dim=0).asnumpy()
    array([-2.,  2.], dtype=float32)
    """
    check_types("_contrib_quantize_v2", (torch.float32, *EIGHT_BITS), data=data)
    if data.dtype in EIGHT_BITS:
        top = levels(data.dtype)
        given = calibrated(min_calib_range, max_calib_range, data)
        return data.clone(), *(given or as_arrays(0 if data.dtype == torch.uint8 else -top, top, data))
    low, high = _range(data, min_calib_range, max_calib_range)
    limit = limit_of(low, high)
    if _chosen(out_type, min_calib_range, max_calib_range) == torch.uint8:
        return store(data * _scale(UINT8, limit), torch.uint8), low, high
    return store(data * _scale(INT8, limit), torch.int8), -limit, limit


_rules(quantize_v2, None, _declared)


@op("_contrib_quantize_asym", num_outputs=3, output_names=("output", "scale", "shift"), no_gradient=True, amp=None)
def quantize_asym(data: torch.Tensor, *, min_calib_range: Optional[Finite] = None, max_calib_range: Optional[Finite] = None) -> Three:
    """Quantize `data` to uint8 so that its range, or the calibrated one, fills 0 to 255: ``data * scale + shift``, rounded.

    Returns the integers, the scale and the shift. Where all numbers are the same the range reaches to 0.

    Example
    -------
    >>> q, scale, shift = mx.nd.contrib.quantize_asym(mx.nd.array([-1, 0, 4]))
    >>> q.asnumpy()
    array([  0,  51, 255], dtype=uint8)
    >>> scale.asnumpy(), shift.asnumpy()
    (array([51.], dtype=float32), array([51.], dtype=float32))
    """
    check_types("_contrib_quantize_asym", (torch.float32, *EIGHT_BITS), data=data)
    if data.dtype == torch.uint8:
        return data.clone(), *as_arrays(1, 0, data)
    if data.dtype == torch.int8:
        return (data.to(torch.int16) + 128).to(torch.uint8), *as_arrays(1, 128, data)
    low, high = _range(data, min_calib_range, max_calib_range)
    one = low == high
    low, high = torch.where(one, low.clamp(max=0), low), torch.where(one, high.clamp(min=0), high)
    scale = _scale(255, high - low)
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)  # only zeros
    shift = 255 - high * scale
    return (data * scale + shift + 0.5).floor_().clamp_(0, 255).to(torch.uint8), scale, shift


_rules(quantize_asym, None, lambda attributes: torch.uint8)


@op("_contrib_dequantize", no_gradient=True)
def dequantize(data: torch.Tensor, min_range: torch.Tensor, max_range: torch.Tensor, *, out_type: Literal["float32"] = "float32") -> torch.Tensor:
    """The real numbers (float32) that int8 or uint8 `data` of the given range represents.

    Example
    -------
    >>> q, low, high = mx.nd.contrib.quantize_v2(mx.nd.array([-1, 0.5, 2]))
    >>> mx.nd.contrib.dequantize(q, low, high).asnumpy()
    array([-1.0039216,  0.5019608,  1.992157 ], dtype=float32)
    """
    check_types("_contrib_dequantize", EIGHT_BITS, data=data)
    return ranged("_contrib_dequantize", "data", data, min_range, max_range, finite=False).real()  # what is no number shows


_rules(dequantize, None, lambda attributes: torch.float32)


@op("_contrib_requantize", num_outputs=3, no_gradient=True)
def requantize(data: torch.Tensor, min_range: torch.Tensor, max_range: torch.Tensor, *, out_type: OutType = "int8",
               min_calib_range: Optional[Finite] = None, max_calib_range: Optional[Finite] = None) -> Three:
    """Turn int32 `data` into int8 or uint8, for the calibrated range or else for the one it has. Returns the integers and their range.

    Example
    -------
    >>> sums = mx.nd.array([2 ** 30, -2 ** 29], dtype='int32')
    >>> mx.nd.contrib.requantize(sums, mx.nd.array([-8]), mx.nd.array([8]))[0].asnumpy()
    array([127, -64], dtype=int8)
    """
    check_types("_contrib_requantize", (torch.int32,), data=data)
    unit = ranged("_contrib_requantize", "data", data, min_range, max_range).unit
    given = calibrated(min_calib_range, max_calib_range, data)
    limit = limit_of(*given) if given else data.to(torch.float64).abs().max().reshape(1).to(torch.float32) * unit
    if _chosen(out_type, min_calib_range, max_calib_range) == torch.uint8:
        return store(data * (unit * _scale(255, limit)), torch.uint8), torch.zeros_like(limit), limit
    return store(data * (unit * _scale(127, limit)), torch.int8), -limit, limit


_rules(requantize, torch.int32, _declared)
