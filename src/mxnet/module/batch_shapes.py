"""The shapes of batches in modules."""
from __future__ import annotations

from typing import Any

from ..base import MXNetError
from ..io import DataDesc


def shapes_of(batch: Any) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of a batch's data; a list of batches, one per device, counts as one batch."""
    if not isinstance(batch, list):
        return tuple([array.shape for array in batch.data])
    if not batch:
        raise MXNetError("forward: a batch, or a list of one for each device, expected, received an empty list")
    for i in range(len(batch[0].data)):
        different = {part.data[i].shape for part in batch}
        if len(different) > 1:
            raise MXNetError(f"forward: all batches of a list must have the same shape, received {sorted(different)}")
    return tuple([(len(batch) * array.shape[0],) + array.shape[1:] for array in batch[0].data])


def batch_size_of(descriptions: Any) -> int | None:
    """Return the batch size of the first input that has a batch axis, or None."""
    for d in descriptions:
        axis = DataDesc.get_batch_axis(getattr(d, "layout", None))
        if axis >= 0:
            return d[1][axis]
    return None


def resized(description: DataDesc, size: int | None) -> DataDesc:
    """Return the description of the same input for another batch size."""
    axis = DataDesc.get_batch_axis(description.layout)
    shape = list(description.shape)
    if axis >= 0 and size is not None:
        shape[axis] = size
    return DataDesc(description.name, tuple(shape), description.dtype, description.layout)
