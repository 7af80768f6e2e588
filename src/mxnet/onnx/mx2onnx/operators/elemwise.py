"""Elementwise operators."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value

_UNARY = {
    "abs": "Abs", "arccos": "Acos", "arcsin": "Asin", "arctan": "Atan", "arccosh": "Acosh", "arcsinh": "Asinh", "arctanh": "Atanh", "ceil": "Ceil",
    "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "log": "Log", "negative": "Neg", "reciprocal": "Reciprocal",
    "relu": "Relu", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "softsign": "Softsign", "sqrt": "Sqrt", "tan": "Tan",
    "tanh": "Tanh", "rint": "Round",
}
_BINARY = {
    "Add": ("elemwise_add", "broadcast_add", "_grad_add"), "Sub": ("elemwise_sub", "broadcast_sub"), "Mul": ("elemwise_mul", "broadcast_mul"),
    "Div": ("elemwise_div", "broadcast_div"), "Pow": ("_power", "broadcast_power"), "Max": ("_maximum", "broadcast_maximum"),
    "Min": ("_minimum", "broadcast_minimum"), "Equal": ("broadcast_equal", "_equal"), "Greater": ("broadcast_greater", "_greater"),
    "Less": ("broadcast_lesser", "_lesser"), "GreaterOrEqual": ("broadcast_greater_equal", "_greater_equal"),
    "LessOrEqual": ("broadcast_lesser_equal", "_lesser_equal"),
}
_LOGIC = {"broadcast_logical_and": "And", "broadcast_logical_or": "Or", "broadcast_logical_xor": "Xor",
          "_logical_and": "And", "_logical_or": "Or", "_logical_xor": "Xor"}
# Name, kind, and whether the number stands on the left.
_SCALAR = {
    "_plus_scalar": ("Add", False), "_minus_scalar": ("Sub", False), "_rminus_scalar": ("Sub", True), "_mul_scalar": ("Mul", False),
    "_div_scalar": ("Div", False), "_rdiv_scalar": ("Div", True), "_power_scalar": ("Pow", False), "_rpower_scalar": ("Pow", True),
    "_maximum_scalar": ("Max", False), "_minimum_scalar": ("Min", False), "_equal_scalar": ("Equal", False), "_greater_scalar": ("Greater", False),
    "_lesser_scalar": ("Less", False), "_greater_equal_scalar": ("GreaterOrEqual", False), "_lesser_equal_scalar": ("LessOrEqual", False),
}
_FOLDED = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}  # computed here on an array of one number: `ones_like(x) * 3`


def _binary(kind):
    def convert(on, lhs, rhs):
        return _compute(on, kind, lhs, rhs)
    return convert


def _compute(on, kind, lhs, rhs):
    """Apply the operator `kind` to two values of one type; powers of integers, as in MXNet, in double precision."""
    if kind == "Pow" and lhs.dtype.kind in "iub":
        return on.Pow(on.cast(lhs, "float64"), on.cast(rhs, "float64"))
    return getattr(on, kind)(lhs, rhs)


def _unary(kind):
    def convert(on, x):
        return getattr(on, kind)(x)
    return convert


for _name, _kind in _UNARY.items():
    exports(_name)(_unary(_kind))
for _kind, _names in _BINARY.items():
    exports(*_names)(_binary(_kind))


@exports(*_LOGIC)
def logic(on: Builder, lhs: Value, rhs: Value, *, operator: str) -> Value:
    return getattr(on, _LOGIC[operator])(on.cast(lhs, bool), on.cast(rhs, bool))


@exports("broadcast_not_equal", "_not_equal")
def not_equal(on: Builder, lhs: Value, rhs: Value) -> Value:
    return on.Not(on.Equal(lhs, rhs))


@exports("_not_equal_scalar")
def not_equal_scalar(on: Builder, x: Value, *, scalar: float) -> Value:
    return on.Not(on.Equal(x, scalar)) if scalar else on.cast(x, bool)


@exports("logical_not")
def logical_not(on: Builder, x: Value) -> Value:
    return on.Not(on.cast(x, bool))


@exports(*_SCALAR, ignores=("is_int",))
def scalar_operator(on: Builder, x: Value, *, scalar: float, operator: str) -> Value:
    kind, left = _SCALAR[operator]
    if kind in _FOLDED and x.dtype == on.dtype and (filling := on.filling(x)) is not None:
        pair = (np.asarray(scalar, x.dtype), filling[1]) if left else (filling[1], np.asarray(scalar, x.dtype))
        return on.fill(filling[0], _FOLDED[kind](*pair).astype(x.dtype), x.dtype, x.shape)
    x = on.cast(x, on.dtype) if kind in ("Add", "Sub", "Mul", "Div") else x
    number = on.const(scalar, x.dtype)
    return _compute(on, kind, number, x) if left else _compute(on, kind, x, number)


@exports("square")
def square(on: Builder, x: Value) -> Value:
    return on.Mul(x, x)


@exports("rsqrt")
def rsqrt(on: Builder, x: Value) -> Value:
    return on.Reciprocal(on.Sqrt(x))


@exports("log2")
def log2(on: Builder, x: Value) -> Value:
    return on.Div(on.Log(x), math.log(2))


@exports("log10")
def log10(on: Builder, x: Value) -> Value:
    return on.Div(on.Log(x), math.log(10))


@exports("log1p")
def log1p(on: Builder, x: Value) -> Value:
    return on.Log(on.Add(x, 1.0))


@exports("expm1")
def expm1(on: Builder, x: Value) -> Value:
    return on.Sub(on.Exp(x), 1.0)


@exports("hard_sigmoid")
def hard_sigmoid(on: Builder, x: Value, *, alpha: float, beta: float) -> Value:
    return on.HardSigmoid(x, alpha=float(alpha), beta=float(beta))


@exports("clip")
def clip(on: Builder, x: Value, *, a_min: Any, a_max: Any) -> Value:
    if x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        a_min, a_max = max(math.ceil(a_min), limits.min), min(math.floor(a_max), limits.max)
    return on.Clip(x, a_min, a_max)


@exports("add_n")
def add_n(on: Builder, *values: Value) -> Value:
    return values[0] if len(values) == 1 else on.Sum(*values)


@exports("broadcast_mod")
def broadcast_mod(on: Builder, lhs: Value, rhs: Value) -> Value:
    """The remainder has the sign of the divisor, and is 0 where that is 0."""
    if lhs.dtype.kind in "iu":
        zero = on.Equal(rhs, 0)
        return on.Where(zero, on.const(0, lhs.dtype), on.Mod(lhs, on.Where(zero, on.const(1, lhs.dtype), rhs)))
    quotient = on.Floor(on.Div(lhs, rhs))
    return on.Where(on.Equal(rhs, 0.0), on.const(0, lhs.dtype), on.Sub(lhs, on.Mul(quotient, rhs)))


@exports("_copy", "identity", "BlockGrad", "make_loss")
def identity(on: Builder, x: Value) -> Value:
    return x


@exports("MakeLoss", ignores=("grad_scale", "valid_thresh", "normalization"))
def make_loss(on: Builder, x: Value) -> Value:
    return x


@exports("Cast", "amp_cast", ignores=("dtype",))
def cast(on: Builder, x: Value) -> Value:
    return on.cast(x, on.dtype)


@exports("amp_multicast", ignores=("num_outputs", "cast_narrow"))
def amp_multicast(on: Builder, *values: Value) -> list[Value]:
    return list(values)


@exports("smooth_l1")
def smooth_l1(on: Builder, x: Value, *, scalar: float) -> Value:
    square_of, size = scalar * scalar, on.Abs(x)
    return on.Where(on.Less(size, 1 / square_of), on.Mul(on.Mul(x, x), square_of / 2), on.Sub(size, 0.5 / square_of))


@exports("where")
def where(on: Builder, condition: Value, x: Value, y: Value) -> Value:
    condition = on.cast(condition, bool)
    if condition.ndim < x.ndim:  # one condition for each row
        condition = on.unsqueeze(condition, *range(1, x.ndim))
    return on.Where(condition, x, y)


