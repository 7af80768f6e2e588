"""Quantized numbers: 8-bit integers with a scale and a zero point."""
import numpy as np

from .....base import MXNetError
from ..reading import UnsupportedFeature, element_type
from ..registry import translates
from ..reshaping import reshape
from .dense import conv, matmul
from .elemwise import binary, cast_to, round_

_RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535), "int32": (-2 ** 31, 2 ** 31 - 1)}


def along(g, value, data, axis, block_size=0):
    """A scale or zero point, shaped to be repeated over `data`: one number, one for each place of an axis, or one for each block of that."""
    g.entry(value)
    rank = g.rank(value)
    if value.scalar or rank == 0 or rank == 1 and g.sizes(value)[0] == 1 and g.rank(data) == 0:
        return value
    axis = g.axis(data, axis)
    if block_size:
        total = g.size(data, axis, "blocks")
        places = np.arange(total) // block_size
        return g.op("take", value, g.array(places), axis=axis, mode="clip")
    if rank == 1 and g.rank(data) > 1:
        target = tuple(-1 if i == axis else 1 for i in range(g.rank(data)))
        return reshape(g, value, [target] * len(g.known_shapes(value) or [0]))
    return value


@translates("QuantizeLinear")
def quantize_linear(g, data, scale, zero_point=None, *, axis=1, saturate=1, block_size=0, output_dtype=0, precision=0):
    """``round(x / scale) + zero_point`` within the range of the type."""
    kind = element_type(output_dtype, "its result") if output_dtype else np.dtype("uint8") if zero_point is None else g.dtype(zero_point)
    if kind is None or kind.name not in _RANGES:
        raise UnsupportedFeature(f"quantizing to {kind}")
    low, high = _RANGES[kind.name]
    wide = "float32"
    scaled = binary(g, "broadcast_div", cast_to(g, data, wide), cast_to(g, along(g, scale, data, axis, block_size), wide))
    result = round_(g, scaled)
    if zero_point is not None:
        result = binary(g, "broadcast_add", result, cast_to(g, along(g, zero_point, data, axis, block_size), wide))
    result = g.op("clip", result, a_min=float(low), a_max=float(high), is_scalar=result.scalar)
    return cast_to(g, result, kind)


@translates("DequantizeLinear")
def dequantize_linear(g, data, scale, zero_point=None, *, axis=1, block_size=0, output_dtype=0):
    """``(x - zero_point) * scale``."""
    kind = element_type(output_dtype, "its result") if output_dtype else g.dtype(scale)
    result = cast_to(g, data, "float32")
    if zero_point is not None:
        result = binary(g, "broadcast_sub", result, cast_to(g, along(g, zero_point, data, axis, block_size), "float32"))
    result = binary(g, "broadcast_mul", result, cast_to(g, along(g, scale, data, axis, block_size), "float32"))
    return result if kind is None else cast_to(g, result, kind)


def _centred(g, value, zero_point, axis):
    """Integers less their zero point, in float64, which holds all of their products."""
    g.entry(value)
    wide = cast_to(g, value, "float64")
    return wide if zero_point is None else binary(g, "broadcast_sub", wide, cast_to(g, along(g, zero_point, value, axis), "float64"))


def _requantized(g, product, scales, zero_point, axis):
    """Products of integers in the scale of the result; `scales` are those of both factors and of the result."""
    a, b, y = (cast_to(g, along(g, scale, product, axis), "float64") for scale in scales)
    result = binary(g, "broadcast_div", binary(g, "broadcast_mul", product, binary(g, "broadcast_mul", a, b)), y)
    kind = np.dtype("uint8") if zero_point is None else g.dtype(zero_point)
    low, high = _RANGES[kind.name]
    result = round_(g, result)
    if zero_point is not None:
        result = binary(g, "broadcast_add", result, cast_to(g, along(g, zero_point, product, axis), "float64"))
    return cast_to(g, g.op("clip", result, a_min=float(low), a_max=float(high)), kind)


def _rows(g, value, data):
    """One number for each row of the matrices in `data`, which are its first axis but one."""
    g.entry(value)
    if value.scalar or g.rank(value) != 1 or g.sizes(value)[0] == 1:
        return value
    return reshape(g, value, [(-1, 1)] * len(g.known_shapes(value) or [0]))


@translates("MatMulInteger")
def matmul_integer(g, a, b, a_zero_point=None, b_zero_point=None):
    """The product of matrices of small integers, as int32."""
    if a_zero_point is not None:
        a_zero_point = _rows(g, a_zero_point, a)
    return cast_to(g, matmul(g, _centred(g, a, a_zero_point, -2), _centred(g, b, b_zero_point, -1)), "int32")


@translates("QLinearMatMul", "com.microsoft.QLinearMatMul")
def qlinear_matmul(g, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    """The requantized product of quantized matrices."""
    product = matmul(g, _centred(g, a, _rows(g, a_zero_point, a), -2), _centred(g, b, b_zero_point, -1))
    return _requantized(g, product, (_rows(g, a_scale, a), b_scale, y_scale), y_zero_point, -1)


def _convolved(g, data, zero_point, weight, weight_zero_point, attributes):
    return conv(g, _centred(g, data, zero_point, 1), _centred(g, weight, weight_zero_point, 0), **attributes)


@translates("ConvInteger")
def conv_integer(g, data, weight, data_zero_point=None, weight_zero_point=None, *, kernel_shape=None, strides=None, pads=None, dilations=None,
                 group=1, auto_pad="NOTSET"):
    """A convolution of small integers, as int32."""
    attributes = dict(kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations, group=group, auto_pad=auto_pad)
    return cast_to(g, _convolved(g, data, data_zero_point, weight, weight_zero_point, attributes), "int32")


@translates("QLinearConv")
def qlinear_conv(g, data, data_scale, data_zero_point, weight, weight_scale, weight_zero_point, y_scale, y_zero_point, bias=None, *,
                 kernel_shape=None, strides=None, pads=None, dilations=None, group=1, auto_pad="NOTSET"):
    """The requantized convolution of quantized numbers."""
    attributes = dict(kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations, group=group, auto_pad=auto_pad)
    result = _convolved(g, data, data_zero_point, weight, weight_zero_point, attributes)
    if bias is not None:
        if g.rank(bias) != 1:
            raise MXNetError(f"the bias of a convolution has one axis, received {g.rank(bias)}")
        result = binary(g, "broadcast_add", result, along(g, cast_to(g, bias, "float64"), result, 1))
    return _requantized(g, result, (data_scale, weight_scale, y_scale), y_zero_point, 1)
