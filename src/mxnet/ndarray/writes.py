"""Who wants to know that values were written in place.

A compiled graph has the values of its weights built in. Writes bypass torch's version counter (a later backward must see new values
without an error), so every place that writes into an array calls `written`. Writes through torch itself
(``x.as_torch().mul_(2)``) are told by torch's counter; it is read only for memory that torch's users have seen (`share`).
"""
from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_exposed: set = set()  # addresses of storages that others may write to without telling
_shared: set = set()  # addresses of storages that torch's users may write to
watched: dict = {}  # the address of a storage -> the watchers of what lies in it


def watch(tensors: Iterable[torch.Tensor], watcher: Any) -> None:
    """Set ``watcher.stale`` to True when any of the tensors, or what shares memory with them, is written to.

    ``watcher.compares`` becomes True if torch's counters have to be compared as well.
    """
    for t in tensors:
        address = t.untyped_storage().data_ptr()
        watched.setdefault(address, weakref.WeakSet()).add(watcher)
        if address in _shared:
            watcher.compares = True


def share(tensor: torch.Tensor) -> None:
    """From now on others may write to the tensor through torch, whose version counter tells."""
    address = tensor.untyped_storage().data_ptr()
    _shared.add(address)
    for watcher in watched.get(address, ()):
        watcher.compares = True


def expose(tensor: torch.Tensor) -> None:
    """From now on others may write to the tensor's memory unseen: what has its values built in is out of date, and never made again."""
    written(tensor)
    _exposed.add(tensor.untyped_storage().data_ptr())


def may_watch(tensor: torch.Tensor) -> bool:
    """Whether every write to the tensor can be noticed."""
    return not tensor.is_inference() and tensor.untyped_storage().data_ptr() not in _exposed


def written(tensor: torch.Tensor) -> None:
    """Say that a tensor's values have changed."""
    if watched:
        watchers = watched.pop(tensor.untyped_storage().data_ptr(), ())
        for watcher in watchers:
            watcher.stale = True
