"""Memory formats: the order of an array's values in memory, where the library may choose it.

Weights of convolutions are kept with their channels last while a network trains, because that is how the kernels read them and write their
gradients. Programs cannot observe this: shapes and values are unchanged, and the functions that expose memory (`as_torch`, DLPack, `reshape`)
restore the standard order first.
"""
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack, to_dlpack

from . import mutation_tracking

lent: dict[int, int] = {}  # addresses of gradients that a captured graph writes, and how many there are of each


def owned(tensor: torch.Tensor) -> bool:
    """Return True if the tensor is all of its storage, and no other tensor uses that storage."""
    if tensor._is_view() or type(tensor) is not torch.Tensor or tensor._is_zerotensor():  # torch's constant zeros have no memory
        return False
    storage = tensor.untyped_storage()
    # One use by the tensor, one by `storage` here.
    return storage.nbytes() == tensor.nbytes and torch._C._storage_Use_Count(storage._cdata) <= 2


def reusable(array: Any) -> torch.Tensor | None:
    """Return the memory of a gradient of float32 in which the next one may be computed; None if it is sparse, or something else uses it.

    A small network's data then stays in the caches.
    """
    t = array._data
    if array._is_sparse or t.dtype is not torch.float32 or not t.is_contiguous() or not owned(t):
        return None
    mutation_tracking.written(t)
    return t


def with_own_storage(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor over the same memory whose storage is this part alone; it keeps the whole memory alive. The part must not be used otherwise.

    On other devices than a CPU it remains a view.
    """
    return from_dlpack(to_dlpack(tensor)) if tensor._is_view() and tensor.is_cpu else tensor


def channels_last(array: Any) -> None:
    """Convert a 4-D array to channels-last order (axis 1 last in memory), if nothing else uses its memory."""
    t = array._data
    if t.dim() == 4 and not t.is_contiguous(memory_format=torch.channels_last) and owned(t):
        mutation_tracking.replace_memory(t, t.data.contiguous(memory_format=torch.channels_last))


def standard(array: Any) -> None:
    """Make an array contiguous again, if nothing else uses its memory."""
    t = array._data
    if not t.is_contiguous() and owned(t):
        mutation_tracking.replace_memory(t, t.data.contiguous())


def like(array: Any, other: Any) -> None:
    """Give an array the memory order of `other`, an array of the same shape, if nothing else uses its memory."""
    t, model = array._data, other._data
    if t.stride() != model.stride() and not same(t, model) and owned(t):
        mutation_tracking.replace_memory(t, torch.empty_like(model, dtype=t.dtype).copy_(t.data))


def has_channels_last(tensor: torch.Tensor) -> bool:
    """Return True if the values are in channels-last order, and not in the standard one."""
    return tensor.dim() == 4 and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)


def in_order(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of the values in memory order, for kernels that take no strides."""
    return tensor if tensor.is_contiguous() else tensor.permute(0, 2, 3, 1)


def same(*tensors: torch.Tensor) -> bool:
    """Return True if all tensors have the same order in memory, without gaps."""
    # Not by their strides, which are arbitrary along an axis of size 1.
    return all(t.is_contiguous() for t in tensors) or \
        all(t.dim() == 4 and t.is_contiguous(memory_format=torch.channels_last) for t in tensors)


def lend(tensors: Iterable[torch.Tensor], owner: object) -> weakref.finalize:
    """Allow arrays to use this memory as gradients during the life of `owner`, which writes the next gradients there."""
    places = [t.data_ptr() for t in tensors if t.numel()]
    for place in places:
        lent[place] = lent.get(place, 0) + 1
    return weakref.finalize(owner, _give_back, places)


def keep(array: Any) -> None:
    """Copy an array that accumulates gradients out of a captured graph's memory, which the next run overwrites."""
    if lent and not array._is_sparse and array._data.data_ptr() in lent:
        array._rebind(array._data.detach().clone())


def _give_back(places: Iterable[int]) -> None:
    for place in places:
        if lent[place] == 1:
            del lent[place]
        else:
            lent[place] -= 1
