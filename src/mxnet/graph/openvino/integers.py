"""Quantized arrays in OpenVINO: real numbers that a FakeQuantize has put on a grid, out of which OpenVINO makes kernels on integers.

A converter of a quantized operator (``@converts(..., integers=True)``) gets its arrays as `Ranged` and returns such, with `results`. Where one
that is not of that kind reads them, or they leave the model, they become integers.
"""
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from openvino import opset15 as ops

from ...ops.quantization.arithmetic import levels
from .conversion import TYPES, Call, Unsupported, Value, constant


class Ranged(NamedTuple):
    """A quantized array.

    Attributes
    ----------
    value : openvino.Output
        The real numbers.
    dtype : torch.dtype
        Of the integers.
    low, high : float
        Their range.
    """

    value: Value
    dtype: torch.dtype
    low: float
    high: float

    @property
    def unit(self) -> float:
        """What the integer 1 stands for."""
        return max(abs(self.low), abs(self.high)) / levels(self.dtype)

    def like(self, value: Value) -> "Ranged":
        """Other numbers on the same grid."""
        return self._replace(value=value.output(0) if hasattr(value, "output") else value)

    def integers(self) -> Value:
        """The integers themselves."""
        if self.dtype is torch.int32:
            raise Unsupported("sums of products that are not turned into 8 bits again")
        scaled = ops.round(ops.multiply(self.value, constant(1 / self.unit, torch.float32)), "half_to_even")
        return ops.convert(scaled, TYPES[self.dtype]).output(0)


def quantized(value: Value, dtype: torch.dtype, low: float, high: float) -> Ranged:
    """Real numbers put on the grid of integers of this type and range."""
    unit = max(abs(low), abs(high)) / levels(dtype)
    ends = torch.iinfo(dtype)
    bounds = [constant(np.float32(end * unit), torch.float32) for end in (ends.min, ends.max)]
    return Ranged(ops.fake_quantize(value, *bounds, *bounds, 256).output(0), dtype, low, high)


def calibrated(call: Call, value: Value, dtype: torch.dtype) -> Ranged:
    """Real numbers on the grid that a use's calibrated range has."""
    low, high = call.attributes.get("min_calib_range"), call.attributes.get("max_calib_range")
    if low is None or high is None:
        call.refuse("its range is not calibrated")
    return quantized(value, dtype, low, high)


def results(array: Ranged) -> list:
    """What a quantized operator returns: the array, and the ends of its range."""
    return [array, *(constant(np.asarray([end], np.float32), torch.float32) for end in (array.low, array.high))]


def arrays(call: Call, inputs: Sequence, count: int) -> list[Ranged]:
    """The first inputs of a use, all of them quantized by nodes that are in the model."""
    if not all(isinstance(i, Ranged) for i in inputs[:count]):
        call.refuse("integers whose range is not known ahead")
    return list(inputs[:count])


def weights(values: torch.Tensor, unit: torch.Tensor) -> Value:
    """int8 weights as real numbers; `unit` is what 1 stands for, shaped to broadcast."""
    stored = ops.constant(values.contiguous().numpy().copy())
    return ops.multiply(ops.convert(stored, "f32"), constant(unit.numpy().astype(np.float32), torch.float32)).output(0)
