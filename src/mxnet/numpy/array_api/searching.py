"""Functions that sort, search and select elements, and sets."""
import builtins
from typing import Any, NamedTuple

import torch

from ...ops.numpy import unsigned
from ...suggestions import shortened
from ..multiarray import ndarray
from .calls import PYTHON_NUMBERS, apply, pair, require_arrays
from .manipulation import axes_of


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: ndarray
    indices: ndarray
    inverse_indices: ndarray
    counts: ndarray


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: ndarray
    counts: ndarray


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: ndarray
    inverse_indices: ndarray


def _position(name: str, function: Any, x: ndarray, axis: int | None, keepdims: builtins.bool) -> ndarray:
    require_arrays(name, x)

    def found(t: torch.Tensor) -> torch.Tensor:
        t = t.to(torch.uint8) if t.dtype is torch.bool else t
        if axis is None:
            place = unsigned.by_order(function, t.reshape(-1), indices=True)
            return place.reshape([1] * t.dim()) if keepdims else place
        return unsigned.by_order(function, t, axis, keepdims, indices=True)

    return apply(name, found, x)


def argmax(x: ndarray, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> ndarray:
    """Return the index of the largest value along `axis`, or in the flattened array, as int64; of equal ones the first."""
    return _position("argmax", torch.argmax, x, axis, keepdims)


def argmin(x: ndarray, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> ndarray:
    """Return the index of the smallest value along `axis`, or in the flattened array, as int64; of equal ones the first."""
    return _position("argmin", torch.argmin, x, axis, keepdims)


def nonzero(x: ndarray, /) -> tuple[ndarray, ...]:
    """Return the indices of the elements other than 0: an array for each axis.

    Raises
    ------
    ValueError
        If `x` is a scalar.
    """
    require_arrays("nonzero", x)
    if not x.ndim:
        raise ValueError("nonzero: an array with at least one axis expected, received a scalar")
    out = apply("nonzero", lambda t: [c.contiguous() for c in torch.nonzero(t != 0, as_tuple=True)], x)
    return out if isinstance(out, tuple) else (out,)


def where(condition: ndarray, x1: Any, x2: Any, /) -> ndarray:
    """Return elements of `x1` where `condition` is True, of `x2` elsewhere."""
    if isinstance(x1, PYTHON_NUMBERS) and isinstance(x2, PYTHON_NUMBERS):
        raise TypeError(f"where: at least one array expected, received {shortened((x1, x2))}")
    x1, x2, dtype = pair("where", x1, x2)
    return apply("where", lambda c, a, b: unsigned.by_bits(torch.where, c, a.to(dtype), b.to(dtype)), condition, x1, x2)


def searchsorted(x1: ndarray, x2: ndarray, /, *, side: str = "left", sorter: ndarray | None = None) -> ndarray:
    """Return where the elements of `x2` go into the sorted vector `x1`, before equal ones or, with ``side='right'``, behind them.

    Parameters
    ----------
    sorter : ndarray, optional
        The indices that sort `x1`.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', received {shortened(side)}")
    x1, x2, dtype = pair("searchsorted", x1, x2)

    def places(a: torch.Tensor, b: torch.Tensor, *order: torch.Tensor) -> torch.Tensor:
        by = order[0].long() if order else None
        return unsigned.by_order(lambda s, v: torch.searchsorted(s.contiguous(), v.contiguous(), side=side, sorter=by), a.to(dtype), b.to(dtype),
                                 indices=True)

    return apply("searchsorted", places, x1, x2, *(() if sorter is None else (sorter,)))


def sort(x: ndarray, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> ndarray:
    """Return the elements sorted along `axis`."""
    return apply("sort", lambda t: unsigned.by_order(lambda s: torch.sort(s, dim=axis, descending=descending, stable=True)[0], t), x)


def argsort(x: ndarray, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> ndarray:
    """Return the indices, as int64, that sort the elements along `axis`; equal ones keep their order."""
    return apply("argsort", lambda t: unsigned.by_order(lambda s: torch.sort(s, dim=axis, descending=descending, stable=True)[1], t, indices=True), x)


def take(x: ndarray, indices: ndarray, /, *, axis: int | None = None) -> ndarray:
    """Return the slices along `axis` that a vector of indices names; `axis` may be left out for vectors.

    Raises
    ------
    ValueError
        If `axis` is missing for an array of several axes.
    """
    require_arrays("take", x, indices)
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: an axis expected for an array of {x.ndim} axes, received None")
    where_, = axes_of("take", axis or 0, x.ndim)

    def taken(t: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        i = i.long()
        return unsigned.by_bits(torch.index_select, t, where_, torch.where(i < 0, i + t.shape[where_], i))

    return apply("take", taken, x, indices)


def take_along_axis(x: ndarray, indices: ndarray, /, *, axis: int = -1) -> ndarray:
    """Return the elements along `axis` that indices name, for each place in the other axes, along which both broadcast."""
    require_arrays("take_along_axis", x, indices)
    where_, = axes_of("take_along_axis", axis, x.ndim)

    def taken(t: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        i = i.long()
        i = torch.where(i < 0, i + t.shape[where_], i)
        shape = torch.broadcast_shapes(*(tuple(1 if k == where_ else n for k, n in enumerate(s.shape)) for s in (t, i)))
        t, i = (s.expand([s.shape[where_] if k == where_ else n for k, n in enumerate(shape)]) for s in (t, i))
        return unsigned.by_bits(torch.gather, t, where_, i)

    return apply("take_along_axis", taken, x, indices)


# -- sets ------------------------------------------------------------------------------------------------------------------

def _unique(x: ndarray) -> UniqueAll:
    """Find the distinct elements by sorting, which makes equal elements adjacent; NaN equals nothing."""
    require_arrays("unique", x)

    def found(t: torch.Tensor) -> tuple[torch.Tensor, ...]:
        flat = t.reshape(-1)
        order = _order(flat)
        sorted_ = flat[order]
        size = flat.shape[0]
        starts = torch.ones(size, dtype=torch.bool, device=t.device)
        starts[1:] = sorted_[1:] != sorted_[:-1]
        first = torch.nonzero(starts).reshape(-1)
        inverse = torch.empty(size, dtype=torch.int64, device=t.device)
        inverse[order] = torch.cumsum(starts, 0) - 1
        counts = torch.diff(first, append=torch.full((1,), size, device=t.device))
        return sorted_[first], order[first], inverse.reshape(t.shape), counts

    return UniqueAll(*apply("unique", found, x))


def _order(flat: torch.Tensor) -> torch.Tensor:
    if not flat.is_complex():
        return unsigned.by_order(lambda s: torch.sort(s, stable=True)[1], flat, indices=True)
    order = torch.sort(flat.imag, stable=True)[1]
    return order[torch.sort(flat.real[order], stable=True)[1]]


def unique_all(x: ndarray, /) -> UniqueAll:
    """Return the unique elements, the index of the first of each, the number of each element among the unique ones, and how often each occurs."""
    return _unique(x)


def unique_counts(x: ndarray, /) -> UniqueCounts:
    """Return the unique elements and how often each occurs."""
    unique = _unique(x)
    return UniqueCounts(unique.values, unique.counts)


def unique_inverse(x: ndarray, /) -> UniqueInverse:
    """Return the unique elements, and the number of each element among them."""
    unique = _unique(x)
    return UniqueInverse(unique.values, unique.inverse_indices)


def unique_values(x: ndarray, /) -> ndarray:
    """Return the unique elements, in ascending order."""
    return _unique(x).values
