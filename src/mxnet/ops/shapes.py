"""Partial shapes: None where the number of axes is unknown, -1 where one size is."""
from typing import Any

from ..base import MXNetError


def unify(a: tuple[int, ...] | None, b: tuple[int, ...] | None) -> Any:
    """Return the combination of two partial shapes of the same array.

    Raises
    ------
    MXNetError
        If they contradict each other.
    """
    if a is None:
        return b
    if b is None or a == b:
        return a
    if len(a) != len(b):
        raise MXNetError(f"incompatible shapes {a} and {b}: {len(a)} axes against {len(b)}")
    out = []
    for x, y in zip(a, b):
        if x != y and x >= 0 and y >= 0:
            raise MXNetError(f"incompatible shapes: {a} and {b} differ in size")
        out.append(x if x >= 0 else y)
    return tuple(out)


def known(shape: tuple[int, ...] | None) -> bool:
    """True if the shape is known in full."""
    return shape is not None and all(s >= 0 for s in shape)


def product(sizes: Any) -> int:
    """The product of sizes, -1 if one is unknown."""
    total = 1
    for s in sizes:
        if s < 0:
            return -1
        total *= s
    return total
