"""The order of an array's values in memory, where that is ours to choose.

Weights of convolutions are kept with their channels last while a network trains, because that is how the kernels read them and write their
gradients. Nobody sees it: shapes and values stay, and whatever hands out memory (`as_torch`, DLPack, `reshape`) goes
back to the standard order first.
"""
import weakref
from collections.abc import Iterable
from typing import Any

import torch

lent: dict[int, int] = {}  # addresses of gradients that a captured graph writes, and how many there are of each


def owned(tensor: torch.Tensor) -> bool:
    """Return True if the tensor is all of its storage, or is marked as a part that nobody else uses, and no other tensor uses that storage."""
    if tensor._is_view() or type(tensor) is not torch.Tensor or tensor._is_zerotensor():  # a gradient that torch knows to be 0 has no memory
        return hasattr(tensor, "alone")
    storage = tensor.untyped_storage()
    # One for the tensor, one for this look at it.
    return storage.nbytes() == tensor.nbytes and torch._C._storage_Use_Count(storage._cdata) <= 2 or hasattr(tensor, "alone")


def channels_last(array: Any) -> None:
    """Keep the values of a 4-D array with axis 1 last in memory, if nobody else looks at them."""
    t = array._data
    if t.dim() == 4 and not t.is_contiguous(memory_format=torch.channels_last) and owned(t):
        t.data = t.data.contiguous(memory_format=torch.channels_last)


def standard(array: Any) -> None:
    """Keep the values contiguous again, if nobody else looks at them."""
    t = array._data
    if not t.is_contiguous() and owned(t):
        t.data = t.data.contiguous()


def like(array: Any, other: Any) -> None:
    """Keep the values in the order that those of `other`, an array of the same shape, have."""
    t, model = array._data, other._data
    if t.stride() != model.stride() and not same(t, model) and owned(t):
        t.data = torch.empty_like(model, dtype=t.dtype).copy_(t.data)


def in_order(tensor: torch.Tensor) -> torch.Tensor:
    """A view of the values in the order in which they lie in memory, for kernels that want no strides."""
    return tensor if tensor.is_contiguous() else tensor.permute(0, 2, 3, 1)


def same(*tensors: torch.Tensor) -> bool:
    """Whether the values of all tensors lie in the same order, without gaps."""
    # Not by their strides: along an axis of size 1 these say nothing.
    return all(t.is_contiguous() for t in tensors) or \
        all(t.dim() == 4 and t.is_contiguous(memory_format=torch.channels_last) for t in tensors)


def lend(tensors: Iterable[torch.Tensor], owner: object) -> weakref.finalize:
    """Say that arrays may take over this memory as gradients, for as long as `owner` lives, which writes the next ones there."""
    places = [t.data_ptr() for t in tensors if t.numel()]
    for place in places:
        lent[place] = lent.get(place, 0) + 1
    return weakref.finalize(owner, _give_back, places)


def keep(array: Any) -> None:
    """Give an array that gradients will be added to memory of its own, if it has taken over a captured graph's, which the next run overwrites."""
    if lent and not array._is_sparse and array._data.data_ptr() in lent:
        array._data = array._data.detach().clone()


def _give_back(places: Iterable[int]) -> None:
    for place in places:
        if lent[place] == 1:
            del lent[place]
        else:
            lent[place] -= 1
