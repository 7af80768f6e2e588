"""Operators on padded sequences."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..builder import INT64
from ..registry import exports
from .shape import reverse

if TYPE_CHECKING:
    from ..builder import Builder, Value


def _steps(on, x, axis):
    """Return 0, 1, 2, ... along an axis, shaped to broadcast."""
    size = on.dim(x, axis)
    if isinstance(size, int):
        steps = on.const(np.arange(size), INT64)
    else:
        steps = on.Range(on.const(0, INT64), on.squeeze(size, 0), on.const(1, INT64))
    return on.per_channel(steps, x.ndim, axis)


@exports("SequenceMask")
def sequence_mask(on: Builder, x: Value, lengths: Value | None = None, *, use_sequence_length: bool, value: float, axis: int | None) -> Value:
    if not use_sequence_length:
        return x
    axis %= 2
    inside = on.Less(_steps(on, x, axis), on.per_channel(on.cast(lengths, INT64), x.ndim, 1 - axis))
    return on.Where(inside, x, on.const(value, x.dtype))


@exports("SequenceReverse")
def sequence_reverse(on: Builder, x: Value, lengths: Value | None = None, *, use_sequence_length: bool, axis: int | None) -> Value:
    if not use_sequence_length:
        return reverse(on, x, axis=(axis,))
    return on.ReverseSequence(x, on.cast(lengths, INT64), time_axis=0, batch_axis=1)


@exports("SequenceLast")
def sequence_last(on: Builder, x: Value, lengths: Value | None = None, *, use_sequence_length: bool, axis: int | None) -> Value:
    axis %= 2
    if not use_sequence_length:
        return on.squeeze(on.slice(x, -1, np.iinfo(np.int64).max, axis), axis)
    rows = x if axis == 1 else on.transpose(x, (1, 0, *range(2, x.ndim)))
    return on.GatherND(rows, on.unsqueeze(on.Sub(on.cast(lengths, INT64), 1), 1), batch_dims=1)
