"""Element by element: arithmetic, comparisons, activations, casts."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ... import symbol as sym
from ...symbol import Symbol
from .registry import converts
from .values import NUMBERS, Call, Value, same_shape


def as_number(value: Any) -> Any:
    """The Python number that an operand is, or None."""
    return value.number if isinstance(value, Value) else value if isinstance(value, NUMBERS) else None


def _combine(call: Call, first: Any, second: Any, dtype: torch.dtype, scalar: Callable[..., Symbol], swapped: Callable[..., Symbol],
             alike: Callable[..., Symbol], spread: Callable[..., Symbol]) -> Symbol:
    """Two operands, of which one may be a number, computed in a type."""
    left, right = as_number(first), as_number(second)
    if right is not None and isinstance(first, Value):
        return scalar(call.cast(first, dtype), float(right) if dtype.is_floating_point else int(right))
    if left is not None:
        return swapped(call.cast(second, dtype), float(left) if dtype.is_floating_point else int(left))
    if not isinstance(first, Value) or not isinstance(second, Value):
        raise call.refuse("an operand is a size that varies")
    function = alike if same_shape(first.shape, second.shape) and _is_whole(first) and _is_whole(second) else spread
    rank = max(len(first.shape), len(second.shape), 1)
    return function(call.ranked(first, dtype, rank), call.ranked(second, dtype, rank))


def _is_whole(value: Value) -> bool:
    return value.constant is None or tuple(value.constant.shape) == value.shape


_ARITHMETIC: dict[str, tuple[Callable[..., Symbol], ...]] = {
    "add": (lambda s, n: s + n, lambda s, n: s + n, lambda a, b: a + b, sym.broadcast_add),
    "sub": (lambda s, n: s - n, lambda s, n: n - s, lambda a, b: a - b, sym.broadcast_sub),
    "mul": (lambda s, n: s * n, lambda s, n: s * n, lambda a, b: a * b, sym.broadcast_mul),
    "div": (lambda s, n: s / n, lambda s, n: n / s, lambda a, b: a / b, sym.broadcast_div),
    "pow": (lambda s, n: s ** n, lambda s, n: n ** s, lambda a, b: a ** b, sym.broadcast_power),
    "remainder": (lambda s, n: s % n, lambda s, n: n % s, lambda a, b: a % b, sym.broadcast_mod),
    "maximum": (sym.maximum, sym.maximum, sym.maximum, sym.broadcast_maximum),
    "minimum": (sym.minimum, sym.minimum, sym.minimum, sym.broadcast_minimum),
}


def _arithmetic(call: Call, kind: str, first: Any, second: Any) -> Value:
    return call.value(_combine(call, first, second, call.stored, *_ARITHMETIC[kind]))


@converts("add")
def add(call: Call, first: Value, second: Any, alpha: Any = 1) -> Value:
    return _arithmetic(call, "add", first, _scaled(call, second, alpha))


@converts("sub")
def sub(call: Call, first: Value, second: Any, alpha: Any = 1) -> Value:
    return _arithmetic(call, "sub", first, _scaled(call, second, alpha))


@converts("rsub")
def rsub(call: Call, first: Value, second: Any, alpha: Any = 1) -> Value:
    return _arithmetic(call, "sub", second, _scaled(call, first, alpha))


def _scaled(call: Call, value: Any, alpha: Any) -> Any:
    if alpha == 1:
        return value
    number = as_number(value)
    return number * alpha if number is not None else Value(value.shape, call.stored, call.cast(value, call.stored) * alpha)


@converts("div", "true_divide")
def div(call: Call, first: Value, second: Any, rounding_mode: str | None = None) -> Value:
    if rounding_mode is None:
        return _arithmetic(call, "div", first, second)
    quotient = _combine(call, first, second, torch.float32, *_ARITHMETIC["div"])
    rounded = sym.floor(quotient) if rounding_mode == "floor" else sym.trunc(quotient)
    return Value(call.shape, torch.float32, rounded) if call.stored is torch.float32 else call.value(sym.Cast(rounded, dtype=str(call.stored)[6:]))


@converts("floor_divide")
def floor_divide(call: Call, first: Value, second: Any) -> Value:
    return div(call, first, second, "floor")


def _plain_arithmetic(name: str, kind: str) -> None:
    @converts(name)
    def function(call: Call, first: Any, second: Any) -> Value:
        return _arithmetic(call, kind, first, second)


for _name, _kind in (("mul", "mul"), ("remainder", "remainder"), ("maximum", "maximum"), ("minimum", "minimum"), ("pow", "pow")):
    _plain_arithmetic(_name, _kind)


_COMPARISONS: dict[str, tuple[Callable[..., Symbol], ...]] = {
    "eq": (lambda s, n: s == n, lambda s, n: s == n, sym.broadcast_equal, sym.broadcast_equal),
    "ne": (lambda s, n: s != n, lambda s, n: s != n, sym.broadcast_not_equal, sym.broadcast_not_equal),
    "lt": (lambda s, n: s < n, lambda s, n: s > n, sym.broadcast_lesser, sym.broadcast_lesser),
    "le": (lambda s, n: s <= n, lambda s, n: s >= n, sym.broadcast_lesser_equal, sym.broadcast_lesser_equal),
    "gt": (lambda s, n: s > n, lambda s, n: s < n, sym.broadcast_greater, sym.broadcast_greater),
    "ge": (lambda s, n: s >= n, lambda s, n: s <= n, sym.broadcast_greater_equal, sym.broadcast_greater_equal),
}


def _comparison(kind: str) -> None:
    @converts(kind)
    def function(call: Call, first: Any, second: Any) -> Value:
        types = [v.dtype for v in (first, second) if isinstance(v, Value) and as_number(v) is None]
        dtype = functools.reduce(torch.promote_types, types)
        if any(isinstance(as_number(v), float) for v in (first, second)) and not dtype.is_floating_point:
            dtype = torch.float32
        return call.value(_combine(call, first, second, dtype, *_COMPARISONS[kind]), dtype)


for _name in _COMPARISONS:
    _comparison(_name)


def _truth(call: Call, value: Any) -> Value:
    """An operand of logic, as 0 and 1 in float32."""
    if not isinstance(value, Value):
        raise call.refuse("an operand is a number")
    symbol = call.cast(value, torch.float32)
    return Value(value.shape, torch.float32, symbol if value.truth else symbol != 0,
                 value.constant)


def _logic(names: tuple[str, ...], alike: Callable[..., Symbol], spread: Callable[..., Symbol]) -> None:
    @converts(*names)
    def function(call: Call, first: Any, second: Any) -> Value:
        if call.dtype is not torch.bool:
            raise call.refuse("it computes with bits")
        a, b = _truth(call, first), _truth(call, second)
        return call.value(_combine(call, Value(a.shape, a.dtype, a.symbol), Value(b.shape, b.dtype, b.symbol), torch.float32, alike, alike, alike,
                                   spread))


_logic(("logical_and", "bitwise_and", "__and__"), sym.broadcast_logical_and, sym.broadcast_logical_and)
_logic(("logical_or", "bitwise_or", "__or__"), sym.broadcast_logical_or, sym.broadcast_logical_or)
_logic(("logical_xor", "bitwise_xor", "__xor__"), sym.broadcast_logical_xor, sym.broadcast_logical_xor)


@converts("logical_not", "bitwise_not")
def logical_not(call: Call, data: Value) -> Value:
    if call.dtype is not torch.bool:
        raise call.refuse("it computes with bits")
    return call.value(sym.logical_not(data.symbol), data.dtype)


# -- one operand ---------------------------------------------------------------------------------------------------------------

_UNARY: dict[str, Callable[[Symbol], Symbol]] = {
    "relu": lambda x: sym.Activation(x, act_type="relu"), "sigmoid": sym.sigmoid, "tanh": sym.tanh, "exp": sym.exp, "expm1": sym.expm1,
    "log": sym.log, "log2": sym.log2, "log10": sym.log10, "log1p": sym.log1p, "sqrt": sym.sqrt, "rsqrt": sym.rsqrt, "abs": sym.abs,
    "neg": sym.negative,
    "sin": sym.sin, "cos": sym.cos, "tan": sym.tan, "asin": sym.arcsin, "acos": sym.arccos, "atan": sym.arctan, "sinh": sym.sinh, "cosh": sym.cosh,
    "asinh": sym.arcsinh, "acosh": sym.arccosh, "atanh": sym.arctanh, "erf": sym.erf, "erfinv": sym.erfinv, "floor": sym.floor, "ceil": sym.ceil,
    "trunc": sym.trunc, "round": sym.rint, "sign": sym.sign, "square": sym.square, "reciprocal": sym.reciprocal, "lgamma": sym.gammaln,
    "silu": lambda x: x * sym.sigmoid(x), "mish": lambda x: x * sym.tanh(sym.Activation(x, act_type="softrelu")),
    "hardsigmoid": lambda x: sym.hard_sigmoid(x, alpha=1 / 6, beta=0.5), "hardswish": lambda x: x * sym.hard_sigmoid(x, alpha=1 / 6, beta=0.5),
    "relu6": lambda x: sym.clip(x, a_min=0, a_max=6), "selu": lambda x: sym.LeakyReLU(x, act_type="selu"),
    "log_sigmoid": lambda x: sym.negative(sym.Activation(sym.negative(x), act_type="softrelu")),
}


def _unary(name: str, function: Callable[[Symbol], Symbol]) -> None:
    @converts(name)
    def convert(call: Call, data: Value, *rest: Any) -> Value:
        return call.value(function(call.cast(data, call.stored)))


for _name, _function in _UNARY.items():
    _unary(_name, _function)


@converts("round.decimals")
def round_decimals(call: Call, data: Value, decimals: int = 0) -> Value:
    return call.value(sym.rint(data.symbol * 10.0 ** decimals) / 10.0 ** decimals)


@converts("gelu")
def gelu(call: Call, data: Value, approximate: str = "none") -> Value:
    x = data.symbol
    if approximate == "none":
        return call.value(sym.LeakyReLU(x, act_type="gelu"))
    return call.value(0.5 * x * (1 + sym.tanh((x + x * x * x * 0.044715) * 0.7978845608028654)))


@converts("leaky_relu")
def leaky_relu(call: Call, data: Value, slope: float = 0.01) -> Value:
    return call.value(sym.LeakyReLU(data.symbol, act_type="leaky", slope=slope))


@converts("elu")
def elu(call: Call, data: Value, alpha: float = 1.0, scale: float = 1, input_scale: float = 1) -> Value:
    if scale != 1 or input_scale != 1:
        raise call.refuse("it scales its input or result")
    return call.value(sym.LeakyReLU(data.symbol, act_type="elu", slope=alpha))


@converts("prelu")
def prelu(call: Call, data: Value, weight: Value) -> Value:
    return call.value(sym.LeakyReLU(data.symbol, weight.symbol, act_type="prelu"))


@converts("softplus")
def softplus(call: Call, data: Value, beta: float = 1, threshold: float = 20) -> Value:
    if threshold < 15:
        raise call.refuse(f"`threshold` is {threshold}: MXNet's softrelu has none, which shows below 15")
    if beta == 1:
        return call.value(sym.Activation(data.symbol, act_type="softrelu"))
    return call.value(sym.Activation(data.symbol * beta, act_type="softrelu") / beta)


@converts("hardtanh", "clamp", "clip")
def clamp(call: Call, data: Value, low: Any = None, high: Any = None) -> Value:
    if any(isinstance(bound, Value) and bound.number is None for bound in (low, high)):
        raise call.refuse("a bound is a tensor")
    low, high = (as_number(bound) for bound in (low, high))
    symbol = call.cast(data, call.stored)
    if low is None or high is None:
        return call.value(sym.minimum(symbol, high) if low is None else sym.maximum(symbol, low))
    return call.value(sym.clip(symbol, a_min=low, a_max=high))


@converts("clamp_min")
def clamp_min(call: Call, data: Value, low: Any) -> Value:
    return clamp(call, data, low)


@converts("clamp_max")
def clamp_max(call: Call, data: Value, high: Any) -> Value:
    return clamp(call, data, None, high)


# -- types and copies ------------------------------------------------------------------------------------------------------------

@converts("to", "_to_copy", "type_as", "contiguous", "clone", "alias", "detach", "lift_fresh_copy", "lift_fresh", "_assert_tensor_metadata")
def to(call: Call, data: Value, *rest: Any) -> Value:
    if call.target._schema.name == "aten::detach":
        return Value(data.shape, data.dtype, sym.BlockGrad(data.symbol))
    if call.dtype is torch.bool:
        return data if _holds_truth(data) else call.value(data.symbol != 0, data.dtype)
    if call.stored is data.dtype:
        return data
    return call.value(call.cast(data, call.stored))


def _holds_truth(data: Value) -> bool:
    return data.truth


@converts("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(call: Call, condition: Value, first: Any, second: Any) -> Value:
    return call.value(sym.where(call.broadcast(condition, call.shape), filled(call, first), filled(call, second)))


@converts("masked_fill")
def masked_fill(call: Call, data: Value, mask: Value, number: Any) -> Value:
    return call.value(sym.where(call.broadcast(mask, call.shape), filled(call, number), call.broadcast(
        Value(data.shape, call.stored, call.cast(data, call.stored), data.constant), call.shape)))


def filled(call: Call, value: Any) -> Symbol:
    """An operand in the type and shape of the result."""
    number = as_number(value)
    if number is not None:
        value = call.constant(torch.full((1,) * len(call.shape), number, dtype=call.stored))
    elif value.dtype is not call.stored:
        value = Value(value.shape, call.stored, call.cast(value, call.stored), value.constant)
    return call.broadcast(value, call.shape)


@converts("zeros_like")
def zeros_like(call: Call, data: Value, *rest: Any) -> Value:
    return call.value(call.cast(Value(data.shape, data.dtype, sym.zeros_like(data.symbol)), call.stored))


@converts("ones_like")
def ones_like(call: Call, data: Value, *rest: Any) -> Value:
    return call.value(call.cast(Value(data.shape, data.dtype, sym.ones_like(data.symbol)), call.stored))


@converts("full_like")
def full_like(call: Call, data: Value, number: Any, *rest: Any) -> Value:
    return call.value(call.cast(Value(data.shape, data.dtype, sym.ones_like(data.symbol)), call.stored) * number)
