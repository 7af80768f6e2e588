"""Operators on one array in OpenVINO."""
import math
from collections.abc import Callable

from openvino import opset15 as ops

from ..conversion import Call, Converter, Value, converts, ints

UNARY = {
    "abs": ops.abs, "negative": ops.negative, "sign": ops.sign, "sqrt": ops.sqrt, "exp": ops.exp, "log": ops.log, "sin": ops.sin, "cos": ops.cos,
    "tan": ops.tan, "arcsin": ops.asin, "arccos": ops.acos, "arctan": ops.atan, "sinh": ops.sinh, "cosh": ops.cosh, "tanh": ops.tanh,
    "arcsinh": ops.asinh, "arccosh": ops.acosh, "arctanh": ops.atanh, "floor": ops.floor, "ceil": ops.ceiling, "relu": ops.relu,
    "sigmoid": ops.sigmoid, "softsign": ops.softsign, "erf": ops.erf,
}


def unary(function: Callable) -> Converter:
    """Return the converter of an operator that is one of OpenVINO's operations."""
    def convert(call: Call, data: Value) -> Value:
        call.floats()
        return function(data)
    return convert


for _name, _function in UNARY.items():
    converts(_name)(unary(_function))


@converts("_copy", "BlockGrad", "make_loss", "_identity_with_attr_like_rhs")
def identity(call: Call, data: Value, *others: Value) -> Value:
    return data


@converts("square")
def square(call: Call, data: Value) -> Value:
    return ops.multiply(data, data)


@converts("rsqrt")
def rsqrt(call: Call, data: Value) -> Value:
    call.floats()
    return ops.divide(call.float(1), ops.sqrt(data))


@converts("reciprocal")
def reciprocal(call: Call, data: Value) -> Value:
    call.floats()
    return ops.divide(call.float(1), data)


@converts("log2", "log10")
def logarithm(call: Call, data: Value) -> Value:
    call.floats()
    return ops.multiply(ops.log(data), call.float(1 / math.log(2 if call.name.endswith("log2") else 10)))


@converts("clip")
def clip(call: Call, data: Value) -> Value:
    call.floats()
    return ops.clamp(data, call.a_min, call.a_max)


@converts("Cast", "amp_cast")
def cast(call: Call, data: Value) -> Value:
    return call.cast(data, call.out_types[0])


@converts("zeros_like", "ones_like")
def like(call: Call, data: Value) -> Value:
    return ops.broadcast(call.const(1 if call.name == "ones_like" else 0), ints(call.out_shape))
