"""Nested arguments of loops and branches: flat lists, and the structures from which the nesting is restored."""
from collections.abc import Iterable
from typing import Any

from ..suggestions import shortened
from .ndarray import NDArray


def flatten(structure: Any, kind: type[Any], message: str) -> tuple[list[Any], Any]:
    """Flatten nested arrays (or Symbols); return the list and its structure: 0 for one, n for a Symbol with n outputs, a list for a list.

    Raises
    ------
    AssertionError
        As MXNet does, with `message`, if anything else is found.
    """
    if isinstance(structure, kind):
        n = 0 if issubclass(kind, NDArray) else len(structure.list_outputs())
        return ([structure], 0) if n <= 1 else (list(structure), n)
    if not isinstance(structure, (list, tuple)):
        raise AssertionError(f"{message}; received {shortened(structure)} of type {type(structure).__name__}")
    parts = [flatten(s, kind, message) for s in structure]
    return [a for flat, _ in parts for a in flat], [shape for _, shape in parts]


def regroup(flat: Iterable[Any], structure: Any) -> Any:
    """The inverse of `flatten`."""
    remaining = iter(flat)

    def build(shape: Any) -> Any:
        if isinstance(shape, int):
            return next(remaining) if shape == 0 else [next(remaining) for _ in range(shape)]
        return [build(s) for s in shape]

    return build(structure)


def to_python(value: Any, kind: type[Any], name: str) -> Any:
    try:
        return kind(value.asnumpy().item() if isinstance(value, NDArray) else value)
    except Exception:
        raise ValueError(f"Cannot convert {name} to python {kind.__name__}") from None
