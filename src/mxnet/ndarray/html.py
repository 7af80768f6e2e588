"""Arrays as HTML tables, for notebooks."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import display

if TYPE_CHECKING:
    from .ndarray import NDArray

_EDGE = 5  # rows or columns at either end of a long axis
_SHOWN = 2 * _EDGE + 2


def html_of(x: NDArray) -> str:
    """Return the array as a table with its shape, type and device; of long axes the ends. Arrays with more than two axes are text."""
    if x.stype != "default" or x.ndim not in (1, 2) or not x.size:
        return display.plain(repr(x).strip())
    x.wait_to_read()  # raises the error of a computation that failed
    tensor: Any = x._data
    grid = tensor if x.ndim == 2 else tensor.unsqueeze(0)
    rows, columns = _places(grid.shape[0]), _places(grid.shape[1])
    values = grid[[i for i in rows if i is not None]][:, [i for i in columns if i is not None]].tolist()
    lines = iter(values)
    cells = [["⋮"] * len(columns) if row is None else _with_gap(next(lines), columns) for row in rows]
    sizes, name = "x".join(map(str, x.shape)), type(x).__name__
    dtype = getattr(x.dtype, "__name__", str(x.dtype))
    return display.table(f"<{name} {sizes} @{x.ctx}> {dtype}", [], cells, numbers=True)


def _places(size: int) -> list[int | None]:
    """Return the indices of an axis that are shown; None stands for those left out."""
    if size <= _SHOWN:
        return list(range(size))
    return [*range(_EDGE), None, *range(size - _EDGE, size)]


def _with_gap(values: list[Any], columns: list[int | None]) -> list[str]:
    numbers = iter(values)
    return ["⋯" if place is None else _text(next(numbers)) for place in columns]


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


__all__ = ["html_of"]
