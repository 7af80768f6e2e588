"""Operators on two arrays, and on any number of them, in OpenVINO."""
from collections.abc import Callable

import torch
from openvino import opset15 as ops

from ..conversion import Call, Converter, Value, converts, magnitude
from ..integers import Ranged, arrays, calibrated, results

BINARY = {"add": ops.add, "sub": ops.subtract, "mul": ops.multiply, "div": ops.divide, "maximum": ops.maximum, "minimum": ops.minimum,
          "power": ops.power}
COMPARISONS = {"equal": ops.equal, "not_equal": ops.not_equal, "greater": ops.greater, "greater_equal": ops.greater_equal,
               "lesser": ops.less, "lesser_equal": ops.less_equal}


def binary(function: Callable) -> Converter:
    """Return the converter of arithmetic on two arrays."""
    def convert(call: Call, lhs: Value, rhs: Value) -> Value:
        call.floats()
        return function(lhs, rhs)
    return convert


def _comparison(function: Callable) -> Converter:
    def convert(call: Call, lhs: Value, rhs: Value) -> Value:
        return call.cast(function(lhs, rhs).output(0), call.out_types[0])
    return convert


@converts("_hypot", "broadcast_hypot")
def hypot(call: Call, lhs: Value, rhs: Value) -> Value:
    call.floats()
    scale = magnitude(ops.maximum(ops.abs(lhs), ops.abs(rhs)).output(0), call.in_types[0])
    a, b = ops.divide(lhs, scale), ops.divide(rhs, scale)
    return ops.multiply(ops.sqrt(ops.add(ops.multiply(a, a), ops.multiply(b, b))), scale)


for _name, _function in BINARY.items():
    _elemwise = f"elemwise_{_name}" if _name in ("add", "sub", "mul", "div") else f"_{_name}"
    converts(_elemwise, f"broadcast_{_name}")(binary(_function))
for _name, _function in COMPARISONS.items():
    converts(f"_{_name}", f"broadcast_{_name}")(_comparison(_function))


@converts("_grad_add")
def grad_add(call: Call, lhs: Value, rhs: Value) -> Value:
    return ops.add(lhs, rhs)


@converts("add_n")
def add_n(call: Call, *inputs: Value) -> Value:
    out = inputs[0]
    for x in inputs[1:]:
        out = ops.add(out, x)
    return out


@converts("where")
def where(call: Call, condition: Value, x: Value, y: Value) -> Value:
    if call.in_shapes[0] != call.in_shapes[1] or call.in_shapes[1] != call.in_shapes[2]:
        call.refuse("broadcasting")
    chosen = condition if call.in_types[0] is torch.bool else ops.not_equal(condition, call.const(0))
    return ops.select(chosen, x, y)


@converts("_contrib_quantized_elemwise_add", integers=True)
def quantized_add(call: Call, lhs: Ranged, rhs: Ranged, *ends: Value) -> list:
    left, right = arrays(call, (lhs, rhs), 2)
    return _on_grid(call, left, ops.add(left.value, right.value), left.unit * 127 + right.unit * 127)


@converts("_contrib_quantized_elemwise_mul", integers=True)
def quantized_mul(call: Call, lhs: Ranged, rhs: Ranged, *ends: Value) -> list | Value:
    left, right = arrays(call, (lhs, rhs), 2)
    product = ops.multiply(left.value, right.value)
    return product if call.enable_float_output else _on_grid(call, left, product, left.unit * right.unit * 127 ** 2)


def _on_grid(call: Call, like: Ranged, value: Value, top: float) -> list:
    """Return a result with its calibrated range; an int32 result, which `requantize` converts to 8 bits, with the range up to `top`."""
    dtype = call.out_types[0]
    return results(like.like(value)._replace(dtype=dtype, low=-top, high=top) if dtype is torch.int32 else calibrated(call, value, dtype))
