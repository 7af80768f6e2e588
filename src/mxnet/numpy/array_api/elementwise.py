"""Functions of each element, or of each pair of elements."""
from collections.abc import Callable
from typing import Any

import torch

from ...base import MXNetError
from ...ops import dtypes
from ...ops.numpy import unsigned
from ...ops.numpy.pairs import floor_quotient, left_shift, right_shift
from ..multiarray import ndarray
from .calls import apply, as_number_type, is_integer, new, pair, require_arrays

_unsigned_bits = unsigned.by_bits


def _refuse(name: str, dtype: torch.dtype, expected: str) -> None:
    raise TypeError(f"{name}: {expected} expected, received {dtypes.name_of(dtype)}; convert with astype")


# -- one array -------------------------------------------------------------------------------------------------------------

def _unary(name: str, function: Callable, doc: str, kind: str = "floating") -> Callable:
    """Return a function of one array. `kind` names the types it takes: 'floating' (with complex ones), 'numeric', 'integer' (with bool) or 'any'."""
    def call(x: ndarray, /) -> ndarray:
        require_arrays(name, x)
        dtype = x._data.dtype
        if kind == "floating" and not (dtype.is_floating_point or dtype.is_complex):
            _refuse(name, dtype, "floating-point numbers")
        if kind == "numeric" and dtype is torch.bool:
            _refuse(name, dtype, "numbers")
        if kind == "integer" and (dtype.is_floating_point or dtype.is_complex):
            _refuse(name, dtype, "integers or booleans")
        return apply(name, function, x)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def _sign(x: torch.Tensor) -> torch.Tensor:
    if x.is_complex():
        return torch.sgn(x)
    if x.dtype in unsigned.WIDER:
        return (x != 0).to(x.dtype)
    return torch.where(torch.isnan(x), x, torch.sign(x)) if x.is_floating_point() else torch.sign(x)


def _whole(function: Callable) -> Callable:
    def rounded(x: torch.Tensor) -> torch.Tensor:
        if x.is_complex():
            return torch.complex(function(x.real), function(x.imag))
        return function(x) if x.is_floating_point() else x.clone()
    return rounded


def _of_complex(plain: Callable, compound: Callable) -> Callable:
    return lambda x: compound(x) if x.is_complex() else plain(x)


def _acos(x: torch.Tensor) -> torch.Tensor:
    """The imaginary part has the sign that that of `x` has not, zeros included; torch drops that of some."""
    angle = torch.acos(x)
    return torch.complex(angle.real, torch.copysign(angle.imag, -x.imag))


def _expm1(x: torch.Tensor) -> torch.Tensor:
    """exp(a + bi) - 1, whose real part is expm1(a) cos(b) - 2 sin(b / 2)**2, without a difference of numbers close to each other."""
    a, b = x.real, x.imag
    half = torch.sin(b / 2)
    regular = torch.complex(torch.expm1(a) * torch.cos(b) - 2 * half * half + 0.0, torch.exp(a) * torch.sin(b))  # 0.0: no negative zero
    return torch.where(torch.isfinite(a) & torch.isfinite(b), regular, torch.exp(x) - 1)


def _log1p(x: torch.Tensor) -> torch.Tensor:
    a, b = x.real, x.imag
    small = torch.log1p(a * (2 + a) + b * b) / 2
    regular = torch.complex(torch.where(x.abs() < 0.5, small, torch.log((1 + x).abs())), torch.atan2(b, 1 + a))
    return torch.where(torch.isfinite(a) & torch.isfinite(b), regular, torch.log(1 + x))


def _negative(x: torch.Tensor) -> torch.Tensor:
    return _unsigned_bits(torch.neg, x)


def _round(x: torch.Tensor) -> torch.Tensor:
    return torch.round(x)


def _is(function: Callable) -> Callable:
    return lambda x: function(x) if x.is_floating_point() or x.is_complex() else torch.full_like(x, function is torch.isfinite, dtype=torch.bool)


acos = _unary("acos", _of_complex(torch.acos, _acos), "The angle whose cosine is x.")
acosh = _unary("acosh", torch.acosh, "The number whose hyperbolic cosine is x.")
asin = _unary("asin", torch.asin, "The angle whose sine is x.")
asinh = _unary("asinh", torch.asinh, "The number whose hyperbolic sine is x.")
atan = _unary("atan", torch.atan, "The angle whose tangent is x.")
atanh = _unary("atanh", torch.atanh, "The number whose hyperbolic tangent is x.")
cos = _unary("cos", torch.cos, "The cosine.")
cosh = _unary("cosh", torch.cosh, "The hyperbolic cosine.")
exp = _unary("exp", torch.exp, "e to the power of x.")
expm1 = _unary("expm1", _of_complex(torch.expm1, _expm1), "exp(x) - 1, exact for small x.")
log = _unary("log", torch.log, "The natural logarithm.")
log1p = _unary("log1p", _of_complex(torch.log1p, _log1p), "log(1 + x), exact for small x.")
log2 = _unary("log2", torch.log2, "The logarithm to the base 2.")
log10 = _unary("log10", torch.log10, "The logarithm to the base 10.")
reciprocal = _unary("reciprocal", torch.reciprocal, "1 / x.")
sin = _unary("sin", torch.sin, "The sine.")
sinh = _unary("sinh", torch.sinh, "The hyperbolic sine.")
sqrt = _unary("sqrt", torch.sqrt, "The square root.")
tan = _unary("tan", torch.tan, "The tangent.")
tanh = _unary("tanh", torch.tanh, "The hyperbolic tangent.")
signbit = _unary("signbit", torch.signbit, "True where the sign bit is set, that of -0.0 included.")

abs = _unary("abs", lambda x: x.clone() if x.dtype in unsigned.WIDER else torch.abs(x), "The absolute value.", "numeric")
ceil = _unary("ceil", _whole(torch.ceil), "The smallest whole number that is not below x.", "numeric")
floor = _unary("floor", _whole(torch.floor), "The largest whole number that is not above x.", "numeric")
trunc = _unary("trunc", _whole(torch.trunc), "x without its fraction.", "numeric")
round = _unary("round", _whole(_round), "The nearest whole number; halves go to the even one.", "numeric")
negative = _unary("negative", _negative, "-x.", "numeric")
positive = _unary("positive", torch.clone, "A copy of x.", "numeric")
sign = _unary("sign", _sign, "-1, 0 or 1; of a complex number x / abs(x).", "numeric")
square = _unary("square", lambda x: _unsigned_bits(torch.mul, x, x), "x * x.", "numeric")
conj = _unary("conj", lambda x: torch.conj_physical(x) if x.is_complex() else x.clone(), "The complex conjugate.", "numeric")
real = _unary("real", lambda x: x.real.clone() if x.is_complex() else x.clone(), "The real part.", "numeric")
imag = _unary("imag", lambda x: x.imag.clone() if x.is_complex() else torch.zeros_like(x), "The imaginary part.", "numeric")
isfinite = _unary("isfinite", _is(torch.isfinite), "True where x is neither infinite nor not a number.", "numeric")
isinf = _unary("isinf", _is(torch.isinf), "True where x is infinite.", "numeric")
isnan = _unary("isnan", _is(torch.isnan), "True where x is not a number.", "numeric")
bitwise_invert = _unary("bitwise_invert", lambda x: _unsigned_bits(torch.bitwise_not, x), "All bits inverted.", "integer")
logical_not = _unary("logical_not", lambda x: x == 0, "True where x is False, or 0.", "any")


# -- two arrays ------------------------------------------------------------------------------------------------------------

def _binary(name: str, function: Callable, doc: str, kind: str = "numeric") -> Callable:
    """Return a function of two arrays, or of an array and a Python number, which broadcast. `kind` is as for `_unary`, or 'real': not complex."""
    def call(x1: Any, x2: Any, /) -> ndarray:
        x1, x2, dtype = pair(name, x1, x2)
        if kind == "floating" and not (dtype.is_floating_point or dtype.is_complex):
            _refuse(name, dtype, "floating-point numbers")
        if kind == "real floating" and not dtype.is_floating_point:
            _refuse(name, dtype, "real floating-point numbers")
        if kind in ("numeric", "real") and dtype is torch.bool or kind == "real" and dtype.is_complex:
            _refuse(name, dtype, "numbers" if kind == "numeric" else "real numbers")
        if kind in ("integer", "whole") and (dtype.is_floating_point or dtype.is_complex or kind == "whole" and dtype is torch.bool):
            _refuse(name, dtype, "integers or booleans" if kind == "integer" else "integers")
        return apply(name, lambda a, b: function(a.to(dtype), b.to(dtype)), x1, x2)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def _by_bits(function: Callable) -> Callable:
    return lambda a, b: unsigned.by_bits(function, a, b)


def _by_order(function: Callable, indices: bool = False) -> Callable:
    return lambda a, b: unsigned.by_order(function, a, b, indices=indices)


def _power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return unsigned.power(a, b) if a.dtype in unsigned.WIDER else torch.pow(a, b)


def _remainder(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.is_floating_point():
        return _floating_remainder(a, b)
    return unsigned.by_bits(torch.sub, a, unsigned.by_bits(torch.mul, floor_quotient(a, b), b))


def _floating_remainder(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    rest = torch.fmod(a, b)
    other_sign = (rest != 0) & ((rest < 0) != (b < 0))
    rest = torch.where(other_sign, rest + b, rest)
    return torch.where(rest == 0, torch.copysign(rest, b), rest)  # a zero has the divisor's sign


def _floor_divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return floor_quotient(a, b)


def _logaddexp(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.logaddexp(a, b)


add = _binary("add", _by_bits(torch.add), "x1 + x2.")
subtract = _binary("subtract", _by_bits(torch.sub), "x1 - x2.")
multiply = _binary("multiply", _by_bits(torch.mul), "x1 * x2.")
divide = _binary("divide", torch.div, "x1 / x2.", "floating")
floor_divide = _binary("floor_divide", _floor_divide, "x1 / x2, rounded down; of integers 0 where x2 is 0.", "real")
remainder = _binary("remainder", _remainder, "The remainder of the division, with the sign of x2.", "real")
pow = _binary("pow", _power, "x1 to the power of x2.")
atan2 = _binary("atan2", torch.atan2, "The angle of the point (x2, x1) with the first axis.", "real floating")
copysign = _binary("copysign", torch.copysign, "The size of x1 with the sign of x2.", "real floating")
hypot = _binary("hypot", torch.hypot, "sqrt(x1**2 + x2**2).", "real floating")
logaddexp = _binary("logaddexp", _logaddexp, "log(exp(x1) + exp(x2)).", "real floating")
nextafter = _binary("nextafter", torch.nextafter, "The next number after x1 in the direction of x2.", "real floating")
maximum = _binary("maximum", _by_order(torch.maximum), "The larger of both; not a number if one is not.", "real")
minimum = _binary("minimum", _by_order(torch.minimum), "The smaller of both; not a number if one is not.", "real")

bitwise_and = _binary("bitwise_and", torch.bitwise_and, "The bits that both have.", "integer")
bitwise_or = _binary("bitwise_or", torch.bitwise_or, "The bits that at least one has.", "integer")
bitwise_xor = _binary("bitwise_xor", torch.bitwise_xor, "The bits that exactly one has.", "integer")
bitwise_left_shift = _binary("bitwise_left_shift", left_shift, "The bits of x1 moved by x2 towards the higher ones.", "whole")
bitwise_right_shift = _binary("bitwise_right_shift", right_shift, "The bits of x1 moved by x2 towards the lower ones.", "whole")

equal = _binary("equal", torch.eq, "True where both are equal.", "any")
not_equal = _binary("not_equal", torch.ne, "True where they differ.", "any")
less = _binary("less", _by_order(torch.lt, True), "True where x1 is smaller.", "real")
less_equal = _binary("less_equal", _by_order(torch.le, True), "True where x1 is not larger.", "real")
greater = _binary("greater", _by_order(torch.gt, True), "True where x1 is larger.", "real")
greater_equal = _binary("greater_equal", _by_order(torch.ge, True), "True where x1 is not smaller.", "real")

logical_and = _binary("logical_and", lambda a, b: (a != 0) & (b != 0), "True where both are.", "any")
logical_or = _binary("logical_or", lambda a, b: (a != 0) | (b != 0), "True where one is.", "any")
logical_xor = _binary("logical_xor", lambda a, b: (a != 0) ^ (b != 0), "True where exactly one is.", "any")


# -- further ---------------------------------------------------------------------------------------------------------------

def clip(x: ndarray, /, min: Any = None, max: Any = None) -> ndarray:
    """Return the values limited to the range from `min` to `max`: numbers, arrays that broadcast to `x`, or None. The type is that of `x`."""
    require_arrays("clip", x)
    dtype = x._data.dtype
    arrays, given = [x], []
    for limit in (min, max):
        if limit is None:
            given.append(False)
            continue
        if not isinstance(limit, ndarray):
            limit = _limit(limit, x)
            if limit is None:
                given.append(False)
                continue
        given.append(True)
        arrays.append(limit)

    def clipped(t: torch.Tensor, *limits: torch.Tensor) -> torch.Tensor:
        rest = iter(limits)
        for bound, function in zip(given, (torch.maximum, torch.minimum)):
            if bound:
                t = unsigned.by_order(function, t, next(rest).to(dtype))
        return t.clone() if not limits else t

    return apply("clip", clipped, *arrays)


def _limit(number: Any, x: ndarray) -> ndarray | None:
    """Return a limit as an array beside `x`; None where it is outside the range of that integer type, so that it has no effect."""
    dtype = as_number_type(number, x._data.dtype) if not is_integer(x._data.dtype) or not isinstance(number, float) else x._data.dtype
    if is_integer(dtype):
        info = torch.iinfo(dtype)
        number = number if not isinstance(number, float) else int(number) if abs_number(number) < 2**64 else (2**64 if number > 0 else -2**64)
        number = info.min if number < info.min else info.max if number > info.max else number
    return new(torch.full((), number, dtype=dtype, device=x._data.device), x._ctx)


def abs_number(number: float) -> float:
    """Return the absolute value of a Python number."""
    return -number if number < 0 else number


def triangle(name: str, x: ndarray, k: int) -> ndarray:
    """Return ``torch.tril`` or ``torch.triu`` of matrices.

    Raises
    ------
    MXNetError
        If `x` has fewer than two axes.
    """
    require_arrays(name, x)
    if x.ndim < 2:
        raise MXNetError(f"{name}: matrices expected, received an array of shape {x.shape}")
    return apply(name, lambda t: unsigned.by_bits(getattr(torch, name), t, k), x)
