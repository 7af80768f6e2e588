"""Quantized arrays in OpenVINO: real numbers on a grid of FakeQuantize, which OpenVINO turns into kernels on integers.

A converter of a quantized operator (``@converts(..., integers=True)``) takes arrays as `Ranged` and returns such arrays, with `results`. They
become integers where another converter reads them, or they leave the model.
"""
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from openvino import opset15 as ops

from ....ops.quantization.arithmetic import INT8, INT32, check_types, levels, ranged
from .conversion import TYPES, Call, Unsupported, Value, constant

_FINE = (1 << 20) + 1  # levels, with one at zero


class Ranged(NamedTuple):
    """A quantized array.

    Attributes
    ----------
    value : openvino.Output
        The real numbers.
    dtype : torch.dtype
        The type of the integers.
    low, high : float
        The range of the real numbers.
    """

    value: Value
    dtype: torch.dtype
    low: float
    high: float

    @property
    def unit(self) -> float:
        """The scale: the value of integer 1."""
        return max(abs(self.low), abs(self.high)) / levels(self.dtype)

    def like(self, value: Value) -> "Ranged":
        """Return other numbers on the same grid."""
        return self._replace(value=value.output(0) if hasattr(value, "output") else value)

    def integers(self) -> Value:
        """Return the integers."""
        if self.dtype is torch.int32:
            raise Unsupported("sums of products that are not turned into 8 bits again")
        scaled = ops.round(ops.multiply(self.value, constant(1 / self.unit, torch.float32)), "half_to_even")
        return ops.convert(scaled, TYPES[self.dtype]).output(0)


class Shifted(NamedTuple):
    """An asymmetrically quantized array: uint8 integers times `unit`, plus `low`.

    Attributes
    ----------
    value : openvino.Output
        The real numbers.
    low, unit : float
    """

    value: Value
    low: float
    unit: float

    @property
    def dtype(self) -> torch.dtype:
        """The type of the integers."""
        return torch.uint8

    def integers(self) -> Value:
        """Return the integers."""
        counted = ops.divide(ops.subtract(self.value, constant(self.low, torch.float32)), constant(self.unit, torch.float32))
        return ops.convert(ops.round(counted, "half_to_even"), TYPES[torch.uint8]).output(0)


def quantized(value: Value, dtype: torch.dtype, low: float, high: float) -> Ranged:
    """Return real numbers on the grid of integers of this type and range."""
    unit = max(abs(low), abs(high)) / levels(dtype)
    if not 0 < unit < math.inf:
        raise Unsupported(f"integers for the range from {low} to {high}")
    ends = torch.iinfo(dtype)
    bounds = [constant(np.float32(end * unit), torch.float32) for end in (ends.min, ends.max)]
    return Ranged(ops.fake_quantize(value, *bounds, *bounds, 256).output(0), dtype, low, high)


def clipped(value: Value, dtype: torch.dtype, low: float, high: float) -> Ranged:
    """Return real numbers clipped to the range of such integers, without rounding to their grid."""
    unit = max(abs(low), abs(high)) / levels(dtype)
    ends = torch.iinfo(dtype)
    return Ranged(ops.clamp(value, ends.min * unit, ends.max * unit).output(0), dtype, low, high)


def rectified(array: Ranged) -> Ranged:
    """Apply ReLU on the same grid.

    OpenVINO has integer convolutions behind FakeQuantize, but not behind FakeQuantize and ReLU: one on uint8 represents these numbers, too, if
    the input is clamped to int8's maximum.
    """
    node = array.value.get_node()
    if array.dtype is not torch.int8 or node.get_type_name() != "FakeQuantize":
        return array.like(ops.relu(array.value))
    top = ops.minimum(node.input_value(0), constant(np.float32(levels(torch.int8) * array.unit), torch.float32)).output(0)
    return array.like(quantized(top, torch.uint8, 0.0, levels(torch.uint8) * array.unit).value)


def calibrated(call: Call, value: Value, dtype: torch.dtype) -> Ranged:
    """Return real numbers on the grid of a call's calibrated range."""
    low, high = call.attributes.get("min_calib_range"), call.attributes.get("max_calib_range")
    if low is None or high is None:
        call.refuse("its range is not calibrated")
    return quantized(value, dtype, low, high)


def results(array: Ranged) -> list:
    """Return the outputs of a quantized operator: the array, and the ends of its range."""
    return [array, *(constant(np.asarray([end], np.float32), torch.float32) for end in (array.low, array.high))]


def arrays(call: Call, inputs: Sequence, count: int) -> list[Ranged]:
    """Return the first inputs of a call; rejects the call unless nodes of the model have quantized all of them."""
    if not all(isinstance(i, Ranged) for i in inputs[:count]):
        call.refuse("integers whose range is not known ahead")
    return list(inputs[:count])


def weights(values: torch.Tensor, unit: torch.Tensor) -> Value:
    """Return int8 weights as real numbers; `unit` is their scale, shaped to broadcast."""
    stored = ops.constant(values.contiguous().numpy().copy())
    return ops.multiply(ops.convert(stored, "f32"), constant(unit.numpy().astype(np.float32), torch.float32)).output(0)


def parameters(call: Call, name: str, values: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> Ranged:
    """Return a call's int8 parameters with their range."""
    check_types(call.name, (torch.int8,), **{name: values})
    array = ranged(call.name, name, values, low, high)
    return Ranged(values, values.dtype, array.low.item(), array.high.item())


def product(call: Call, attributes: Mapping[str, Any], data: Ranged, values: torch.Tensor, unit: torch.Tensor) -> Value:
    """Return the product of data with int8 weights, by a convolution or a fully connected layer without bias, in real numbers.

    `attributes` are those of ``Convolution`` or ``FullyConnected``. `unit` is the scale, one number or one for each output channel.
    """
    if "kernel" not in attributes:
        flat = attributes["flatten"] and len(call.shape) != 2
        rows = call.reshape(data.value, (call.shape[0], math.prod(call.shape[1:]))) if flat else data.value
        return ops.matmul(rows, weights(values, unit.reshape(-1, 1)), False, True)
    if attributes["layout"] is not None and attributes["layout"][1] != "C":
        call.refuse(f"layout {attributes['layout']}")
    n, groups = len(attributes["kernel"]), attributes["num_group"]
    strides, dilations, pads = attributes["stride"] or (1,) * n, attributes["dilate"] or (1,) * n, attributes["pad"] or (0,) * n
    if groups == 1:
        return ops.convolution(data.value, weights(values, unit.reshape(-1, *[1] * (n + 1))), strides, pads, pads, dilations)
    kernels = values.reshape(groups, -1, *values.shape[1:])
    each = unit.reshape(groups, -1, *[1] * (n + 1)) if unit.numel() > 1 else unit.reshape([1] * (n + 3))
    return ops.group_convolution(data.value, weights(kernels, each), strides, pads, pads, dilations)


def in_units(value: Value, other: Ranged, limit: float) -> Value:
    """Return real numbers as multiples of the scale of an array that is added next; sums beyond +-`limit` are clipped later.

    If both operands of an addition end with the same factor, OpenVINO moves it behind the sum, and a convolution adds the other's integers as it
    stores its own; else it stores real numbers, which another kernel adds. A grid much finer than 8 bits prevents OpenVINO from merging the two
    factors here.
    """
    unit = other.unit
    far = 2 * (limit + max(abs(other.low), abs(other.high))) / unit
    ends = [constant(np.float32(end), torch.float32) for end in (-far, far)]
    counted = ops.fake_quantize(ops.multiply(value, constant(np.float32(1 / unit), torch.float32)), *ends, *ends, _FINE)
    return ops.multiply(counted, constant(np.float32(unit), torch.float32)).output(0)


def sums(call: Call, inputs: Sequence) -> list:
    """Return the outputs of a quantized product without requantization: int32, with their range."""
    data, = arrays(call, inputs, 1)
    count = 2 if call.no_bias else 3
    known = call.constants
    if any(k is None for k in (*known[1:count], *known[count + 2:])):
        call.refuse("weights that are computed")
    units = [parameters(call, name, *one).unit for name, *one in zip(("weight", "bias"), known[1:count], known[count + 2::2], known[count + 3::2])]
    # The range of sums is based on whole numbers of levels, that of 8-bit integers on half ones, as in MXNet.
    factor = levels(data.dtype) / (levels(data.dtype) - .5) * INT8 / (INT8 - .5)
    out = product(call, call.attributes, data, known[1], torch.tensor([units[0] * factor]))
    if not call.no_bias:
        bias = known[2].float() * (units[1] * factor)
        out = ops.add(out, call.float(bias.reshape((1, -1, *[1] * (len(call.out_shape) - 2)) if "kernel" in call.attributes else (-1,)).numpy()))
    top = max(abs(data.low), abs(data.high)) / (levels(data.dtype) - .5) * units[0] * INT8 / (INT8 - .5) * INT32
    return results(Ranged(out.output(0), torch.int32, -top, top))
