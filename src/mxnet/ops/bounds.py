"""Checks of indices against the sizes of their axes.

On a CPU torch raises the error itself. On a GPU an invalid index makes the GPU unusable for the process, long after the call. So indices are checked
before the call, which waits for the GPU, as MXNet's `gather_nd` does.
"""
from collections.abc import Sequence

import torch

from ..base import MXNetError


class IndexOutOfBoundsError(MXNetError, IndexError):
    """An index lies outside of its axis."""


def within(operator: str, indices: Sequence[torch.Tensor], sizes: Sequence[int], negative: bool = True) -> tuple[torch.Tensor, ...]:
    """Return index tensors that are valid on a GPU for axes of these sizes; with `negative`, indices may count from the end.

    During the capture of a CUDA graph no value can be checked: there indices are clamped to the valid range.

    Raises
    ------
    IndexOutOfBoundsError
        If a GPU would read or write outside of an axis.
    """
    if not indices or not indices[0].is_cuda:
        return tuple(indices)
    examined = [k for k, index in enumerate(indices) if index.numel()]
    if not examined:
        return tuple(indices)
    lowest = [-size if negative else 0 for size in sizes]
    if torch.cuda.is_current_stream_capturing():
        return tuple(index.clamp(low, size - 1) for index, low, size in zip(indices, lowest, sizes))
    ends = torch.stack([torch.stack(torch.aminmax(indices[k])) for k in examined]).tolist()
    for k, extremes in zip(examined, ends):
        for value in extremes:
            if not lowest[k] <= value < sizes[k]:
                raise IndexOutOfBoundsError(f"{operator}: index {value} is out of bounds for dimension {k} with size {sizes[k]}")
    return tuple(indices)
