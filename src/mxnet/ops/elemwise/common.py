"""Shape rules and arithmetic shared by the families of element-wise operators."""
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from ...base import MXNetError
from ..dtypes import name_of
from ..integers import convert
from ..shapes import unify


def refuse_types(operator: str, lhs: Any, rhs: Any) -> NoReturn:
    raise MXNetError(f"{operator}: both inputs must have one data type, received {name_of(lhs.dtype)} and {name_of(rhs.dtype)}; "
                     "convert one with astype")


def refuse_shapes(operator: str, lhs: Any, rhs: Any) -> NoReturn:
    raise MXNetError(f"{operator}: both inputs must have one shape, received {tuple(lhs.shape)} and {tuple(rhs.shape)}; "
                     f"an operator broadcast_* takes other shapes, too")


def broadcast_rule(in_shapes: Any, out_shapes: Any, **_: Any) -> Any:
    """Infer shapes of broadcasting operators, in the forward direction only, as in MXNet."""
    lhs, rhs = in_shapes
    if lhs is None or rhs is None:
        return in_shapes, out_shapes
    n = max(len(lhs), len(rhs))
    out = []
    for a, b in zip((1,) * (n - len(lhs)) + lhs, (1,) * (n - len(rhs)) + rhs):
        if a != b and 1 not in (a, b) and -1 not in (a, b):
            raise MXNetError(f"shapes {lhs} and {rhs} can't be broadcast: sizes must be equal or 1")
        # A size of 1 is replaced by the other size, even an unknown one; an unknown size beside a larger one equals it or is 1.
        out.append(b if a == 1 else a if b == 1 else max(a, b))
    return in_shapes, [unify(out_shapes[0], tuple(out))]


def truth(function: Callable[..., Any], data: torch.Tensor, other: Any) -> torch.Tensor:
    """Return the comparison ``function(data, other)`` as 0 and 1 in the type of `data`."""
    if torch.compiler.is_compiling():
        return function(data, other).to(data.dtype)
    # Written in the result's type directly: converting booleans takes several times as long as comparing.
    return function(data.detach(), other.detach() if isinstance(other, torch.Tensor) else other, out=data.new_empty(0))


def half_in_single(function: Any) -> Callable[..., Any]:
    """`function` with a gradient that squares nothing in half precision, where 256 is the root of the largest number; GPUs do it as torch does."""
    def run(*arrays):
        if arrays[0].dtype is torch.float16 and arrays[0].is_cpu and torch.is_grad_enabled():
            return function(*(array.float() for array in arrays)).half()
        return function(*arrays)
    return run


def way_from_double(dtype: torch.dtype) -> torch.dtype:
    """Return the intermediate type for MXNet's conversion of float64 to integers `dtype`: values out of its range become its smallest number."""
    return dtype if dtype is torch.int32 else torch.int64


def integer_power(base: torch.Tensor, exponent: Any, dtype: Any) -> torch.Tensor:
    """A float64 `base` to the power of `exponent`, as the integers `dtype`; either may be a number."""
    power = torch.pow(base, exponent)
    if power.is_cuda and not any(isinstance(x, float) and x % 1 for x in (base, exponent)):
        # CUDA misses whole numbers by the last bit, and 3 to the power of 1 would become 2.
        power = power + torch.where(power.isfinite(), power.round() - power, 0).detach()
    result = convert(power, way_from_double(dtype))
    return result if result.dtype is dtype else convert(result, dtype)


def divide_integers(lhs: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor:
    """The quotient truncated towards zero; one of both may be a number. A quotient by -1 is the negative, which wraps around for the
    smallest integer: the processor's own division would end the process there.
    """
    if not lhs.dtype.is_signed:  # of 8 bits: there -1 would be 255
        return torch.div(lhs, rhs, rounding_mode="trunc")
    negated = rhs == -1
    if not isinstance(rhs, torch.Tensor):
        return torch.neg(lhs) if negated else torch.div(lhs, rhs, rounding_mode="trunc")
    return torch.where(negated, -lhs, torch.div(lhs, rhs.masked_fill(negated, 1), rounding_mode="trunc"))


def wrap_integer(value: Any, dtype: torch.dtype) -> int:
    """A number as the integer that C's conversion to `dtype` gives: truncated towards zero, then wrapped around."""
    value = int(value)
    info = torch.iinfo(dtype)
    if info.min <= value <= info.max:
        return value
    return (value - info.min) % (1 << info.bits) + info.min


def quotient(tensor: torch.Tensor, number: Any) -> torch.Tensor:
    """``tensor / number``, rounded once: on a GPU torch multiplies by the reciprocal, which may miss a whole number that is rounded down next."""
    return tensor / (number if not tensor.is_cuda else torch.full((), number, dtype=tensor.dtype, device=tensor.device))
