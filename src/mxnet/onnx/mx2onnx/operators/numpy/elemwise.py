"""Functions of single elements. NumPy's type rules apply: integers become floats where a function needs them, and booleans are a separate type."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...builder import Unsupported, floating, lowest
from ...registry import exports
from ..elemwise import broadcast_mod

if TYPE_CHECKING:
    from ...builder import Builder, Value

_UNARY = {
    "arccos": "Acos", "arcsin": "Asin", "arctan": "Atan", "arccosh": "Acosh", "arcsinh": "Asinh", "arctanh": "Atanh", "ceil": "Ceil", "cos": "Cos",
    "cosh": "Cosh", "exp": "Exp", "floor": "Floor", "log": "Log", "negative": "Neg", "reciprocal": "Reciprocal", "rint": "Round", "sign": "Sign",
    "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh", "abs": "Abs",
}
_ARITHMETIC = {"add": "Add", "subtract": "Sub", "multiply": "Mul", "true_divide": "Div", "power": "Pow"}
_REVERSED = {"rsubtract": "Sub", "rtrue_divide": "Div", "rpower": "Pow"}
_COMPARISONS = {"equal": "Equal", "greater": "Greater", "less": "Less", "greater_equal": "GreaterOrEqual", "less_equal": "LessOrEqual"}
_OF_INTEGERS = {"Neg", "Sign", "Abs"}
_TRUTH = {"Add": "Or", "Mul": "And", "Max": "Or", "Min": "And"}


@exports(*(f"_npi_{name}" for name in _UNARY), "_npx_relu", "_npx_sigmoid")
def unary(on: Builder, x: Value, *, operator: str) -> Value:
    kind = {"_npx_relu": "Relu", "_npx_sigmoid": "Sigmoid"}.get(operator) or _UNARY[operator[len("_npi_"):]]
    return getattr(on, kind)(on.cast(x, on.dtype) if kind in _OF_INTEGERS else real(on, x))


def real(on: Builder, x: Value) -> Value:
    """Cast a value to a floating type: functions of integers are computed in single precision, then cast to the operator's type."""
    return on.cast(x, on.dtype if floating(on.dtype) else np.float32)


def _compute(on, kind, lhs, rhs):
    """Apply an arithmetic operator in the type of the result."""
    if on.dtype == bool:
        if kind not in _TRUTH:
            raise Unsupported(f"{kind} of truth values")
        return getattr(on, _TRUTH[kind])(on.cast(lhs, bool), on.cast(rhs, bool))
    wide = np.dtype("float64") if kind == "Pow" and on.dtype.kind in "iu" else on.dtype
    return getattr(on, kind)(on.cast(lhs, wide), on.cast(rhs, wide))


@exports(*(f"_npi_{name}" for name in _ARITHMETIC))
def arithmetic(on: Builder, lhs: Value, rhs: Value, *, operator: str) -> Value:
    return _compute(on, _ARITHMETIC[operator[len("_npi_"):]], lhs, rhs)


@exports(*(f"_npi_{name}_scalar" for name in (*_ARITHMETIC, *_REVERSED)), ignores=("is_int",))
def arithmetic_with_number(on: Builder, x: Value, *, scalar: float, operator: str) -> Value:
    name = operator[len("_npi_"):-len("_scalar")]
    number = on.const(scalar, on.dtype)
    return _compute(on, _REVERSED[name], number, x) if name in _REVERSED else _compute(on, _ARITHMETIC[name], x, number)


def compared(on: Builder, name: str, lhs: Value, rhs: Value) -> Value:
    """Compare two values in their common type."""
    wide = np.promote_types(lhs.dtype, rhs.dtype)
    if wide.kind == "b" and name not in ("equal", "not_equal"):
        wide = np.dtype("int32")
    lhs, rhs = on.cast(lhs, wide), on.cast(rhs, wide)
    return on.Not(on.Equal(lhs, rhs)) if name == "not_equal" else getattr(on, _COMPARISONS[name])(lhs, rhs)


@exports(*(f"_npi_{name}" for name in (*_COMPARISONS, "not_equal")))
def comparison(on: Builder, lhs: Value, rhs: Value, *, operator: str) -> Value:
    return compared(on, operator[len("_npi_"):], lhs, rhs)


@exports(*(f"_npi_{name}_scalar" for name in (*_COMPARISONS, "not_equal")))
def comparison_with_number(on: Builder, x: Value, *, scalar: float, is_int: bool, operator: str) -> Value:
    kind = x.dtype if floating(x.dtype) else np.dtype("int64") if is_int else np.dtype("float64")
    return compared(on, operator[len("_npi_"):-len("_scalar")], x, on.const(scalar, kind))


@exports("_npi_mod")
def mod(on: Builder, lhs: Value, rhs: Value) -> Value:
    return broadcast_mod(on, on.cast(lhs, on.dtype), on.cast(rhs, on.dtype))


@exports("_npi_mod_scalar", "_npi_rmod_scalar", ignores=("is_int",))
def mod_with_number(on: Builder, x: Value, *, scalar: float, operator: str) -> Value:
    number, x = on.const(scalar, on.dtype), on.cast(x, on.dtype)
    return broadcast_mod(on, number, x) if operator == "_npi_rmod_scalar" else broadcast_mod(on, x, number)


@exports("_npi_square")
def square(on: Builder, x: Value) -> Value:
    return on.Mul(x, x)


@exports("_npi_cbrt")
def cbrt(on: Builder, x: Value) -> Value:
    x = real(on, x)
    return on.Mul(on.Sign(x), on.Pow(on.Abs(x), 1 / 3))


@exports("_npi_log2", "_npi_log10", "_npi_log1p", "_npi_expm1")
def logarithm(on: Builder, x: Value, *, operator: str) -> Value:
    x = real(on, x)
    if operator == "_npi_expm1":
        return on.Sub(on.Exp(x), 1.0)
    if operator == "_npi_log1p":
        return on.Log(on.Add(x, 1.0))
    return on.Div(on.Log(x), math.log(2 if operator == "_npi_log2" else 10))


@exports("_npi_degrees", "_npi_radians")
def angle(on: Builder, x: Value, *, operator: str) -> Value:
    return on.Mul(real(on, x), 180 / math.pi if operator == "_npi_degrees" else math.pi / 180)


@exports("_npi_hypot")
def hypot(on: Builder, lhs: Value, rhs: Value) -> Value:
    lhs, rhs = real(on, lhs), real(on, rhs)
    return on.Sqrt(on.Add(on.Mul(lhs, lhs), on.Mul(rhs, rhs)))


@exports("_npi_fix", "_npi_trunc")
def trunc(on: Builder, x: Value) -> Value:
    return on.Mul(on.Sign(x), on.Floor(on.Abs(x))) if floating(x.dtype) else x


@exports("_npi_around")
def around(on: Builder, x: Value, *, decimals: int) -> Value:
    if not floating(x.dtype):
        if decimals < 0:
            raise Unsupported(f"integers rounded to decimals={decimals}")
        return x
    if not decimals:
        return on.Round(x)
    return on.Div(on.Round(on.Mul(x, float(10 ** decimals))), float(10 ** decimals))


@exports("_npi_isnan", "_npi_isinf", "_npi_isposinf", "_npi_isneginf", "_npi_isfinite")
def special(on: Builder, x: Value, *, operator: str) -> Value:
    x = x if floating(x.dtype) else on.cast(x, "float32")
    if operator == "_npi_isnan":
        return on.IsNaN(x)
    if operator == "_npi_isfinite":  # NaN is never less
        return on.Less(on.Abs(x), on.const(math.inf, x.dtype))
    if operator == "_npi_isinf":
        return on.Equal(on.Abs(x), on.const(math.inf, x.dtype))
    return on.Equal(x, on.const(math.inf if operator == "_npi_isposinf" else -math.inf, x.dtype))


@exports("_npi_logical_not")
def logical_not(on: Builder, x: Value) -> Value:
    return on.Not(on.cast(x, bool))


@exports("_npi_where")
def where(on: Builder, condition: Value, x: Value, y: Value) -> Value:
    return on.Where(on.cast(condition, bool), on.cast(x, on.dtype), on.cast(y, on.dtype))


@exports("_npi_where_lscalar", "_npi_where_rscalar")
def where_with_number(on: Builder, condition: Value, x: Value, *, scalar: float, operator: str) -> Value:
    """Write Where with a number as the first branch (``lscalar``) or the second."""
    values = on.const(scalar, on.dtype), on.cast(x, on.dtype)
    return on.Where(on.cast(condition, bool), *(values if operator == "_npi_where_lscalar" else values[::-1]))


@exports("_npi_where_scalar2")
def where_of_numbers(on: Builder, condition: Value, *, x: float, y: float) -> Value:
    return on.Where(on.cast(condition, bool), on.const(x, on.dtype), on.const(y, on.dtype))


@exports("_npi_nan_to_num", ignores=("copy",))
def nan_to_num(on: Builder, x: Value, *, nan: float, posinf: float | None, neginf: float | None) -> Value:
    if not floating(x.dtype):
        return x
    least = lowest(x.dtype)
    result = on.Where(on.IsNaN(x), on.const(nan, x.dtype), x)
    for number, wanted in ((math.inf, -least if posinf is None else posinf), (-math.inf, least if neginf is None else neginf)):
        result = on.Where(on.Equal(result, on.const(number, x.dtype)), on.const(wanted, x.dtype), result)
    return result


@exports("_np_copy")
def copy(on: Builder, x: Value) -> Value:
    return x
