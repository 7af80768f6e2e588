"""Arithmetic, comparisons and functions of single elements."""
import math

import numpy as np

from .....base import MXNetError
from ..reading import UnknownValue, element_type
from ..registry import translates

# ONNX's name, our operator, that with a number on the right, that with one on the left.
_ARITHMETIC = {"Add": ("broadcast_add", "_plus_scalar", "_plus_scalar"), "Sub": ("broadcast_sub", "_minus_scalar", "_rminus_scalar"),
               "Mul": ("broadcast_mul", "_mul_scalar", "_mul_scalar"), "Div": ("broadcast_div", "_div_scalar", "_rdiv_scalar"),
               "Pow": ("broadcast_power", "_power_scalar", "_rpower_scalar")}
_COMPARISONS = {"Equal": "broadcast_equal", "Greater": "broadcast_greater", "Less": "broadcast_lesser",
                "GreaterOrEqual": "broadcast_greater_equal", "LessOrEqual": "broadcast_lesser_equal"}
_LOGIC = {"And": "broadcast_logical_and", "Or": "broadcast_logical_or", "Xor": "broadcast_logical_xor"}
_UNARY = {"Abs": "abs", "Neg": "negative", "Ceil": "ceil", "Floor": "floor", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Reciprocal": "reciprocal",
          "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "arcsin", "Acos": "arccos", "Atan": "arctan", "Sinh": "sinh", "Cosh": "cosh",
          "Asinh": "arcsinh", "Acosh": "arccosh", "Atanh": "arctanh", "Erf": "erf", "Sign": "sign", "Relu": "relu", "Sigmoid": "sigmoid",
          "Tanh": "tanh", "Softsign": "softsign"}
_BITWISE = {"BitwiseAnd": "_npi_bitwise_and", "BitwiseOr": "_npi_bitwise_or", "BitwiseXor": "_npi_bitwise_xor"}


def binary(g, name, a, b, is_boolean=False):
    """A call of an operator on two values of which either may be repeated along its axes; both get the same type."""
    a, b = same_type(g, a, b)
    return g.op(name, a, b, is_scalar=a.scalar and b.scalar, is_boolean=is_boolean)


def same_type(g, *values):
    """Cast values of different types to the type of the first that is not boolean."""
    for value in values:
        g.entry(value)
    types = [g.dtype(value) for value in values]
    if len(set(types)) == 1 or None in types:
        return values
    wanted = next((t for t in types if t.kind != "b"), types[0])
    return tuple(value if t == wanted else g.op("Cast", value, dtype=wanted.name, is_scalar=value.scalar) for value, t in zip(values, types))


def placed(g, a, b, broadcast, axis):
    """Append axes to `b`, where ONNX before version 7 gives the axis of `a` at which it begins."""
    if not broadcast or axis is None:
        return b
    behind = g.rank(a) - g.axis(a, axis) - g.rank(b)
    for _ in range(behind):
        b = g.op("expand_dims", b, axis=g.rank(b))
    return b


def _number(g, value, other):
    """Return the number of a known array of one element that may be a scalar operand beside `other`, else None."""
    array = value.array
    if array is None or array.size != 1 or other.array is not None:
        return None
    shapes = g.known_shapes(other)
    if array.ndim and (shapes is None or array.ndim > len(shapes[0])):
        return None
    kind = g.dtype(other)
    number = array.reshape(-1)[0].item()
    return float(number) if kind is not None and kind.kind == "f" and array.dtype.kind == "f" and math.isfinite(number) else None


def arithmetic(g, operator, a, b):
    """One of ONNX's arithmetic operators, with its broadcasting.

    Parameters
    ----------
    g : Translator
    operator : str
        As ONNX calls it.
    a, b : Value

    Returns
    -------
    Value
    """
    general, right, left = _ARITHMETIC[operator]
    number = _number(g, b, a)
    if number is not None:
        return with_number(g, right, a, number)
    number = _number(g, a, b)
    if number is not None:
        return with_number(g, left, b, number)
    return binary(g, general, a, b)


def with_number(g, name, value, number, is_boolean=False):
    """A call of one of the operators on an array and a number, such as ``_plus_scalar``."""
    g.entry(value)
    return g.op(name, value, scalar=number, is_scalar=value.scalar, is_boolean=is_boolean)


def _register_arithmetic(operator):
    @translates(operator)
    def translate(g, a, b, *, axis=None, broadcast=0):
        return arithmetic(g, operator, a, placed(g, a, b, broadcast, axis))


def _register_comparison(operator, name):
    @translates(operator)
    def translate(g, a, b, *, axis=None, broadcast=0):
        return binary(g, name, a, placed(g, a, b, broadcast, axis), is_boolean=True)


def _register_unary(operator, name):
    @translates(operator)
    def translate(g, data):
        g.entry(data)
        return g.op(name, data, is_scalar=data.scalar)


for _operator in _ARITHMETIC:
    if _operator != "Pow":
        _register_arithmetic(_operator)
for _operator, _name in {**_COMPARISONS, **_LOGIC}.items():
    _register_comparison(_operator, _name)
for _operator, _name in _UNARY.items():
    _register_unary(_operator, _name)


def _register_bitwise(operator, name):
    @translates(operator)
    def translate(g, a, b):
        return binary(g, name, a, b)


for _operator, _name in _BITWISE.items():
    _register_bitwise(_operator, _name)


@translates("BitShift")
def bit_shift(g, a, b, *, direction):
    """The bits of integers shifted to the left or right."""
    return g.op("_contrib_bit_shift", a, b, direction=direction, is_scalar=a.scalar and b.scalar)


@translates("BitCast")
def bitcast(g, data, *, to):
    """The numbers of another type that the same bits make."""
    kind = element_type(to, "its result")
    g.entry(data)
    if kind.kind == "b" or data.boolean:
        data = cast_to(g, data, "uint8") if data.boolean else data
        return data if kind.kind != "b" else _cast(g, data, kind)
    return g.op("_contrib_bitcast", data, dtype=kind.name, is_scalar=data.scalar)


@translates("BitwiseNot")
def bitwise_not(g, data):
    """The bits of integers turned over."""
    g.entry(data)
    return g.op("_npi_bitwise_not", data, is_scalar=data.scalar)


@translates("Pow")
def power(g, a, b, *, axis=None, broadcast=0):
    """``a ** b`` in the type of `a`."""
    b = placed(g, a, b, broadcast, axis)
    kinds = g.dtype(a), g.dtype(b)
    if None not in kinds and kinds[0] != kinds[1]:
        if b.array is not None:
            exact = kinds[0].kind == "f" or np.all(b.array == b.array.astype(kinds[0]))
            if exact:
                return arithmetic(g, "Pow", a, g.array(b.array.astype(kinds[0]), b.name and f"{b.name}_{kinds[0].name}"))
        wide = "float64" if "float64" in (kinds[0].name, kinds[1].name) or kinds[0].kind != "f" else "float32"
        g.entry(a), g.entry(b)
        made = binary(g, "broadcast_power", cast_to(g, a, wide), cast_to(g, b, wide))
        return cast_to(g, made, kinds[0].name)
    return arithmetic(g, "Pow", a, b)


def cast_to(g, value, dtype):
    """The value in another type."""
    g.entry(value)
    return value if g.dtype(value) == np.dtype(dtype) else g.op("Cast", value, dtype=np.dtype(dtype).name, is_scalar=value.scalar)


@translates("Mod")
def modulo(g, a, b, *, fmod=0):
    """The remainder: with the sign of the divisor, or with `fmod` that of the dividend."""
    if not fmod:
        remainder, kind = binary(g, "broadcast_mod", a, b), g.dtype(a)
        if kind is None or kind.kind != "f" or b.array is not None and b.array.all():
            return remainder
        # MXNet's remainder of a division by 0 is 0.
        nothing = g.array(np.array(math.nan, kind))
        return g.op("_npi_where", with_number(g, "_equal_scalar", b, 0.0), nothing, remainder, is_scalar=remainder.scalar)
    a, b = same_type(g, a, b)
    scalar = a.scalar and b.scalar
    rest = binary(g, "broadcast_mod", g.op("abs", a, is_scalar=a.scalar), g.op("abs", b, is_scalar=b.scalar))
    return g.op("broadcast_mul", rest, g.op("sign", a, is_scalar=a.scalar), is_scalar=scalar)


@translates("Max")
def maximum(g, *data):
    """The largest of several values, element by element."""
    return _joined(g, "broadcast_maximum", data)


@translates("Min")
def minimum(g, *data):
    """The smallest of several values, element by element."""
    return _joined(g, "broadcast_minimum", data)


@translates("Sum")
def add_n(g, *data):
    """The sum of several values."""
    return _joined(g, "broadcast_add", data)


@translates("Mean")
def mean(g, *data):
    """The mean of several values, element by element."""
    total = _joined(g, "broadcast_add", data)
    return total if len(data) == 1 else with_number(g, "_div_scalar", total, float(len(data)))


def _joined(g, name, data):
    result = data[0]
    if len(data) == 1:
        g.entry(result)
        return g.op("_copy", result, is_scalar=result.scalar)
    for value in data[1:]:
        result = binary(g, name, result, value)
    return result


@translates("Not")
def logical_not(g, data):
    """Truth values turned over."""
    g.entry(data)
    return g.op("logical_not", data, is_scalar=data.scalar, is_boolean=True)


@translates("Identity")
def identity(g, data):
    """The value itself."""
    return data


@translates("Cast")
def cast(g, data, *, to, saturate=1, round_mode=None):
    """The value in another type; truth values keep the type that they have."""
    names = {"FLOAT": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "BOOL": 9, "FLOAT16": 10, "DOUBLE": 11}
    return _cast(g, data, element_type(names.get(to, 0) if isinstance(to, str) else to, "its result"))


def _cast(g, data, wanted):
    g.entry(data)
    if wanted.kind != "b":
        return g.op("Cast", data, dtype=wanted.name, is_scalar=data.scalar)
    if data.boolean:
        return data
    return with_number(g, "_not_equal_scalar", data, 0.0, is_boolean=True)


@translates("CastLike")
def cast_like(g, data, target, *, saturate=1, round_mode=None):
    """The value in the type of another."""
    wanted = np.dtype("bool") if target.boolean else g.dtype(target)
    if wanted is None:
        raise UnknownValue("the type of `target` is not known")
    if data.array is not None:
        return g.array(data.array.astype(wanted))
    return _cast(g, data, wanted)


@translates("Clip")
def clip(g, data, min=None, max=None):
    """The value within bounds."""
    g.entry(data)
    kind = g.dtype(data)
    bounds = [None if bound is None else bound.array for bound in (min, max)]
    if kind is not None and kind.kind in "iu":  # numbers that every version of the operator holds
        plain = all(bound is not None and bound.size == 1 and abs(int(bound.reshape(-1)[0])) <= 1 << 24 for bound in bounds)
    else:
        plain = all(bound is None or bound.array is not None for bound in (min, max)) and (kind is None or kind.kind == "f")
    if plain:
        low = -math.inf if min is None else min.number("min")
        high = math.inf if max is None else max.number("max")
        if low > high:  # ONNX takes the upper bound then
            low = high
        return g.op("clip", data, a_min=low, a_max=high, is_scalar=data.scalar)
    result = data if min is None else binary(g, "broadcast_maximum", data, min)
    result = result if max is None else binary(g, "broadcast_minimum", result, max)
    return g.op("_copy", result, is_scalar=result.scalar) if result is data else result


@translates("Where")
def where(g, condition, x, y):
    """Elements of `x` where `condition` holds, else those of `y`."""
    for name, value, other in (("_npi_where_rscalar", x, y), ("_npi_where_lscalar", y, x)):
        number = None if value.boolean else _number(g, other, value)
        if number is not None and g.known_shapes(condition) is not None and g.known_shapes(value) is not None:
            g.entry(condition)
            return g.op(name, condition, value, scalar=number, is_scalar=condition.scalar and value.scalar)
    x, y = same_type(g, x, y)
    g.entry(condition)
    shapes = [g.known_shapes(value) for value in (condition, x, y)]
    alike = shapes[0] is not None and shapes[0] == shapes[1] == shapes[2]
    return g.op("where" if alike else "_npi_where", condition, x, y, is_scalar=condition.scalar and x.scalar and y.scalar,
                is_boolean=x.boolean and y.boolean)


@translates("Round")
def round_(g, data):
    """The nearest integer; of two, the even one."""
    g.entry(data)
    return g.op("_npi_around", data, is_scalar=data.scalar)


@translates("IsNaN")
def is_nan(g, data):
    """Where the value is not a number."""
    g.entry(data)
    return g.op("_npi_isnan", data, is_scalar=data.scalar, is_boolean=True)


@translates("IsInf")
def is_inf(g, data, *, detect_negative=1, detect_positive=1):
    """Where the value is infinite, of either sign or of one."""
    g.entry(data)
    if not detect_negative and not detect_positive:
        raise MXNetError(f"`detect_negative` or `detect_positive` must be 1, received {detect_negative} and {detect_positive}")
    name = "_npi_isinf" if detect_negative and detect_positive else "_npi_isposinf" if detect_positive else "_npi_isneginf"
    return g.op(name, data, is_scalar=data.scalar, is_boolean=True)
