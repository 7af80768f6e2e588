"""Conversion between quantized integers and the real numbers that they represent.

An int8 value q stands for ``q * M / 127.5``, a uint8 value for ``q * M / 255.5``, where M is the larger magnitude of the array's range
(low, high); the odd halves are MXNet's. Products accumulate in integers, exactly; they are computed in float64 here, whose 53 bits hold them.
"""
import math
from typing import NamedTuple, Optional

import torch

from ...base import MXNetError
from ..dtypes import name_of

EIGHT_BITS = (torch.int8, torch.uint8)
INT8, UINT8, INT32 = 127.5, 255.5, 2147483648.0  # the divisors of a range's magnitude, by type


class Quantized(NamedTuple):
    """Integers with the ends of their range, two arrays of one element."""

    values: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor

    @property
    def limit(self) -> torch.Tensor:
        """The larger magnitude of the range, one element."""
        return limit_of(self.low, self.high)

    @property
    def unit(self) -> torch.Tensor:
        """The real number that the integer 1 represents, one element."""
        return self.limit / levels(self.values.dtype)

    @property
    def number(self) -> float:
        """`unit`, of values on the CPU, as a number."""
        return max(abs(self.low.item()), abs(self.high.item())) / levels(self.values.dtype)

    def real(self) -> torch.Tensor:
        """The real numbers."""
        return self.values * self.unit

    def with_values(self, values: torch.Tensor) -> "Quantized":
        """Other integers of the same range."""
        return Quantized(values, self.low.reshape(1).clone(), self.high.reshape(1).clone())


def ranged(operator: str, name: str, values: torch.Tensor, low: torch.Tensor, high: torch.Tensor, finite: bool = True) -> Quantized:
    """An array that an operator was given, with its range.

    Raises
    ------
    MXNetError
        If an end of the range is not one float32 number, or, where that matters, infinite or no number (on the CPU, where looking costs nothing).
    """
    for end in (low, high):
        if end.dtype is not torch.float32 or not end.is_meta and end.numel() != 1:
            raise MXNetError(f"{operator}: the ends of the range of `{name}` must be one float32 number each, received {name_of(end.dtype)} of shape "
                             f"{tuple(end.shape)}; take the parameters as quantization returned them")
        if finite and end.is_cpu and not torch.compiler.is_compiling() and not math.isfinite(end.item()):
            raise MXNetError(f"{operator}: the range of `{name}` is from {low.item()} to {high.item()}, which no integers can stand for; calibrate "
                             "with data that are finite, and look for what overflows")
    return Quantized(values, low, high)


def limit_of(low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """The larger magnitude of a range, one element."""
    return torch.maximum(low.reshape(1).abs(), high.reshape(1).abs())


def levels(dtype: torch.dtype) -> float:
    """Return the divisor of a range's larger magnitude for integers of this type."""
    return {torch.uint8: UINT8, torch.int32: INT32}.get(dtype, INT8)


def store(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Real numbers as integers: rounded to even, clipped to the range of the type."""
    ends = torch.iinfo(dtype)
    return values.round().clamp_(ends.min, ends.max).to(dtype)


def calibrated(low: Optional[float], high: Optional[float], like: torch.Tensor) -> Optional[tuple[torch.Tensor, torch.Tensor]]:
    """A calibrated range as two arrays, on the device of `like`; None where it was not given."""
    return None if low is None or high is None else as_arrays(low, high, like)


def as_arrays(low: float, high: float, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A range as two arrays, on the device of `like`."""
    return torch.full((1,), low, dtype=torch.float32, device=like.device), torch.full((1,), high, dtype=torch.float32, device=like.device)


def holding(terms: int) -> torch.dtype:
    """The floating-point type that holds each sum of so many products of 8-bit integers."""
    return torch.float32 if terms * 255 * 128 <= 1 << 24 else torch.float64


def in_units_of_product(bias: Quantized, data: Quantized, weight: Quantized) -> torch.Tensor:
    """A bias as whole multiples of the unit that a sum of products has."""
    return (bias.values * ((levels(data.values.dtype) / data.limit) * (INT8 / weight.limit) * (bias.limit / INT8))).trunc()


def product_range(a: Quantized, b: Quantized) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the range that an int32 sum of products represents: that of 2**31 units. `b` is int8."""
    limit = a.limit / (255 if a.values.dtype == torch.uint8 else 127) * (b.limit / 127) * INT32
    return -limit, limit


def check_types(operator: str, allowed: tuple[torch.dtype, ...], **inputs: torch.Tensor) -> None:
    """Raise an error for inputs of other types; shapes are inferred without types.

    Raises
    ------
    MXNetError
    """
    for input_name, tensor in inputs.items():
        if tensor.dtype not in allowed and not tensor.is_meta:
            raise MXNetError(f"{operator}: `{input_name}` must be {' or '.join(map(name_of, allowed))}, received {name_of(tensor.dtype)}")
