"""Functions that change shapes, move axes and join arrays."""
import builtins
from collections.abc import Sequence
from typing import Any

import torch

from ...base import MXNetError
from ...ops.numpy import unsigned
from ...suggestions import shortened
from ..multiarray import ndarray
from .calls import apply, require_arrays, result_type_of


def axes_of(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Return axes counted from the front; all for None.

    Raises
    ------
    IndexError
        If an axis is out of range, or named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    for a in axes:
        if not -ndim <= a < ndim:
            raise IndexError(f"{name}: axis {a} is out of range for an array of {ndim} axes")
    counted = tuple(a % ndim for a in axes)
    if len(set(counted)) < len(counted):
        raise IndexError(f"{name}: an axis must not be named twice, received {axes}")
    return counted


def _sizes(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, int) else tuple(int(n) for n in shape)


def broadcast_to(x: ndarray, /, shape: Any) -> ndarray:
    """Return the values with axes of size 1, or missing in front, repeated to `shape`."""
    return apply("broadcast_to", lambda t: t.expand(_sizes(shape)).clone(memory_format=torch.contiguous_format), x)


def broadcast_arrays(*arrays: ndarray) -> list[ndarray]:
    """Return the arrays broadcast against each other, in a list."""
    require_arrays("broadcast_arrays", *arrays)
    shape = torch.broadcast_shapes(*(a.shape for a in arrays))
    return [a if a.shape == tuple(shape) else broadcast_to(a, shape) for a in arrays]


def concat(arrays: Sequence[ndarray], /, *, axis: int | None = 0) -> ndarray:
    """Return the arrays one after another along `axis`, flattened before if that is None; their types are converted to the common one."""
    dtype = result_type_of("concat", list(arrays))

    def joined(*tensors: torch.Tensor) -> torch.Tensor:
        parts = [t.to(dtype) if axis is not None else t.to(dtype).reshape(-1) for t in tensors]
        return torch.cat(parts, axis or 0) if parts[0].dim() else _refuse_scalars()

    return apply("concat", joined, *arrays)


def _refuse_scalars() -> torch.Tensor:
    raise MXNetError("concat: arrays with at least one axis expected, received scalars; use stack")


def stack(arrays: Sequence[ndarray], /, *, axis: int = 0) -> ndarray:
    """Return the arrays along a new axis; their types are converted to the common one."""
    dtype = result_type_of("stack", list(arrays))
    return apply("stack", lambda *tensors: torch.stack([t.to(dtype) for t in tensors], axis), *arrays)


def unstack(x: ndarray, /, *, axis: int = 0) -> tuple[ndarray, ...]:
    """Return the slices along an axis."""
    require_arrays("unstack", x)
    where, = axes_of("unstack", axis, x.ndim)
    if not x.shape[where]:
        return ()
    return apply("unstack", lambda t: [s.clone(memory_format=torch.contiguous_format) for s in t.unbind(where)], x)


def expand_dims(x: ndarray, /, axis: int) -> ndarray:
    """Return the array with a new axis of size 1 at `axis`.

    Raises
    ------
    IndexError
        If there can be no such axis.
    """
    require_arrays("expand_dims", x)
    where, = axes_of("expand_dims", axis, x.ndim + 1)
    return apply("expand_dims", lambda t: t.unsqueeze(where).clone(), x)


def squeeze(x: ndarray, /, axis: Any) -> ndarray:
    """Return the array without the named axes.

    Raises
    ------
    ValueError
        If the size of one is not 1.
    """
    require_arrays("squeeze", x)
    axes = axes_of("squeeze", axis, x.ndim)
    if any(x.shape[a] != 1 for a in axes):
        raise ValueError(f"squeeze: axes of size 1 expected, received {axis} of an array of shape {x.shape}")
    return apply("squeeze", lambda t: t.squeeze(axes).clone() if axes else t.clone(), x)


def flip(x: ndarray, /, *, axis: Any = None) -> ndarray:
    """Return the array reversed along axes, by default all."""
    require_arrays("flip", x)
    axes = axes_of("flip", axis, x.ndim)
    return apply("flip", lambda t: unsigned.by_bits(torch.flip, t, axes), x)


def permute_dims(x: ndarray, /, axes: Sequence[int]) -> ndarray:
    """Return the array with its axes in another order."""
    require_arrays("permute_dims", x)
    order = axes_of("permute_dims", tuple(axes), x.ndim)
    return apply("permute_dims", lambda t: t.permute(order).clone(memory_format=torch.contiguous_format), x)


def moveaxis(x: ndarray, source: Any, destination: Any, /) -> ndarray:
    """Return the array with axes moved to new places; the others keep their order."""
    require_arrays("moveaxis", x)
    start, end = axes_of("moveaxis", source, x.ndim), axes_of("moveaxis", destination, x.ndim)
    return apply("moveaxis", lambda t: t.movedim(start, end).clone(memory_format=torch.contiguous_format), x)


def repeat(x: ndarray, repeats: Any, /, *, axis: int | None = None) -> ndarray:
    """Return each element repeated, along `axis` or of the flattened array, by a number or an array of numbers."""
    arrays = [x, repeats] if isinstance(repeats, ndarray) else [x]

    def repeated(t: torch.Tensor, *counts: torch.Tensor) -> torch.Tensor:
        count = counts[0].to(torch.int64) if counts else repeats
        return unsigned.by_bits(lambda s: torch.repeat_interleave(s, count, dim=axis or 0), t.reshape(-1) if axis is None else t)

    return apply("repeat", repeated, *arrays)


def reshape(x: ndarray, /, shape: Any, *, copy: builtins.bool | None = None) -> ndarray:
    """Return another shape for the same elements; one size may be -1.

    Parameters
    ----------
    copy : bool, optional
        True copies in any case, False never, which sizes always allow here; by default memory is shared outside of a recorded computation.
    """
    return apply("reshape", lambda t: t.reshape(_sizes(shape)).clone() if copy or copy is None else t.reshape(_sizes(shape)), x)


def roll(x: ndarray, /, shift: Any, *, axis: Any = None) -> ndarray:
    """Return the elements rolled along axes; those shifted past the end re-enter at the start."""
    require_arrays("roll", x)
    if axis is None:
        return apply("roll", lambda t: unsigned.by_bits(torch.roll, t, shift), x)
    axes = tuple(a % x.ndim for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) == 1:
        shifts *= len(axes)
    return apply("roll", lambda t: unsigned.by_bits(torch.roll, t, shifts, axes), x)


def tile(x: ndarray, repetitions: Sequence[int], /) -> ndarray:
    """Return the array repeated along its axes."""
    return apply("tile", lambda t: torch.tile(t, tuple(repetitions)), x)


def matrix_transpose(x: ndarray, /) -> ndarray:
    """Return matrices with rows and columns exchanged.

    Raises
    ------
    MXNetError
        If `x` has fewer than two axes.
    """
    require_arrays("matrix_transpose", x)
    if x.ndim < 2:
        raise MXNetError(f"matrix_transpose: matrices expected, received an array of shape {shortened(x.shape)}")
    return apply("matrix_transpose", lambda t: t.mT.clone(memory_format=torch.contiguous_format), x)


