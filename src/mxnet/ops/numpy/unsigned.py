"""Unsigned integers of 16, 32 and 64 bits, for which torch stores arrays but lacks most kernels.

A kernel runs on signed integers in their place, in one of two ways. `by_bits` keeps the bits: sums, products, bitwise operators and whatever moves
elements are the same for both, modulo 2**n. `by_order` keeps the order: comparisons, extrema and sorting. Numbers of 16 and 32 bits are converted
to a wider type, where the two are one. Numbers of 64 bits keep their bits, or have their highest bit flipped, which maps 0 ... 2**64 - 1 to
-2**63 ... 2**63 - 1.
"""
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map

WIDER = {torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64}
_LOWEST = -2**63


def _flipped(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(torch.int64) ^ _LOWEST


def _unflipped(tensor: torch.Tensor) -> torch.Tensor:
    return (tensor ^ _LOWEST).view(torch.uint64)


def _narrowed(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint64) if dtype is torch.uint64 else tensor.to(dtype)


def find(values: Any) -> torch.dtype | None:
    """Return the first of these types that a tensor among `values` has, or None."""
    for v in values:
        if isinstance(v, torch.Tensor):
            if v.dtype in WIDER:
                return v.dtype
        elif isinstance(v, (list, tuple)) and (dtype := find(v)) is not None:
            return dtype
    return None


def by_bits(function: Callable, *args: Any, indices: bool = False, **kwargs: Any) -> Any:
    """Return ``function(*args, **kwargs)``, computed on signed integers with the same bits.

    Parameters
    ----------
    indices : bool
        The result is a number of its own, such as an index or a count: its type stays.
    """
    return _run(function, args, kwargs, indices, lambda t: t.view(torch.int64), lambda t: _narrowed(t, torch.uint64))


def by_order(function: Callable, *args: Any, indices: bool = False, **kwargs: Any) -> Any:
    """Return ``function(*args, **kwargs)``, computed on signed integers in the same order; see `by_bits`."""
    return _run(function, args, kwargs, indices, _flipped, _unflipped)


def _run(function: Callable, args: Any, kwargs: Any, indices: bool, enter: Callable, leave: Callable) -> Any:
    dtype = find(args)
    if dtype is None:
        return function(*args, **kwargs)
    wider = WIDER[dtype]
    if dtype is not torch.uint64:
        def enter(t: torch.Tensor) -> torch.Tensor:
            return t.to(wider)

        def leave(t: torch.Tensor) -> torch.Tensor:
            return t.to(dtype)

    given = tree_map(lambda t: enter(t) if isinstance(t, torch.Tensor) and t.dtype is dtype else t, args)
    result = function(*given, **kwargs)
    if indices:
        return result
    return tree_map(lambda t: leave(t) if isinstance(t, torch.Tensor) and t.dtype is wider else t, result)


def floor_divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The quotient of unsigned integers of one type, rounded down; 0 where `b` is 0."""
    safe = torch.where(b == 0, torch.ones_like(b), b)
    if a.dtype is not torch.uint64:
        quotient = by_bits(functools.partial(torch.div, rounding_mode="floor"), a, safe)
        return by_bits(torch.where, b != 0, quotient, torch.zeros_like(quotient))
    x, y = a.view(torch.int64), safe.view(torch.int64)
    # Divide half of x, which is no negative number, and correct by the rest; a divisor with the highest bit goes in once or not at all.
    half = (x >> 1) & (2**63 - 1)
    small = y.clamp(min=1)
    quotient = torch.div(half, small, rounding_mode="floor") << 1
    rest = x - quotient * small
    quotient = quotient + (rest.bitwise_xor(_LOWEST) >= small.bitwise_xor(_LOWEST)).long()
    large = (x.bitwise_xor(_LOWEST) >= y.bitwise_xor(_LOWEST)).long()
    quotient = torch.where(y < 0, large, quotient)
    return torch.where(b.view(torch.int64) != 0, quotient, torch.zeros_like(quotient)).view(torch.uint64)


def remainder(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The rest of `floor_divide`; 0 where `b` is 0."""
    rest = by_bits(torch.sub, a, by_bits(torch.mul, floor_divide(a, b), b))
    return by_bits(torch.where, b != 0, rest, torch.zeros_like(rest))


_EUCLID = 93  # the most steps that two numbers of 64 bits take


def gcd(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The greatest common divisor of unsigned integers of one type."""
    if a.dtype is not torch.uint64:
        return by_bits(torch.gcd, a, b)
    a, b = torch.broadcast_tensors(a, b)
    for _ in range(_EUCLID):
        if b.is_cpu and not b.view(torch.int64).any():
            break
        a, b = by_bits(torch.where, b != 0, b, a), remainder(a, b)
    return a.clone()


def power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The first to the power of the second, modulo 2**n."""
    if b.dtype is torch.uint64:
        # An odd number to the power of 2**62 is 1 modulo 2**64, an even one 0: an exponent with the highest bit may be a smaller one.
        e = b.view(torch.int64)
        b = torch.where(e < 0, (e & (2**62 - 1)) + 2**62, e).view(torch.uint64)
    return by_bits(torch.pow, a, b)


def right_shift(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The bits moved towards the lower ones, with zeros in the place of the highest."""
    if a.dtype is not torch.uint64:
        return by_bits(torch.bitwise_right_shift, a, b)
    x, n = torch.broadcast_tensors(a.view(torch.int64), b.view(torch.int64))
    moved = (x >> n.clamp(max=63)) & torch.bitwise_not(torch.full_like(x, _LOWEST) >> (n - 1).clamp(0, 63))
    return torch.where(n == 0, x, torch.where(n > 63, torch.zeros_like(x), moved)).view(torch.uint64)
