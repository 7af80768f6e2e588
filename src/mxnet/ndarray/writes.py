"""Who wants to know that values were written in place.

A compiled graph has the values of its weights built in. Writes bypass torch's version counter (a later backward must see new values
without an error), so every place that writes into an array calls `written`. Writes through torch itself
(``x.as_torch().mul_(2)``) are told by torch's counter; it is read only for memory that torch's users have seen (`share`).
"""
from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef


class Storages:
    """Storages, for as long as they live, by the addresses of their memory. What is dead is dropped whenever the table has doubled."""

    def __init__(self) -> None:
        self._at: dict[int, list[StorageWeakRef]] = {}  # several storages may stand on the same memory
        self._full = 64
        self._lock = threading.Lock()

    def add(self, tensor: torch.Tensor) -> int:
        """Add a tensor's storage; returns its address."""
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        with self._lock:
            found = self._at.get(address, [])
            if all(ref.cdata != storage._cdata for ref in found):
                if len(self._at) >= self._full:
                    self._at = {a: alive for a, refs in self._at.items() if (alive := _alive(refs))}
                    self._full = max(64, 2 * len(self._at))
                self._at[address] = [*_alive(found), StorageWeakRef(storage)]
        return address

    def __contains__(self, address: int) -> bool:
        return bool(_alive(self._at.get(address, ())))

    def __len__(self) -> int:
        return len(self._at)


def _alive(refs: Iterable[StorageWeakRef]) -> list[StorageWeakRef]:
    return [ref for ref in refs if not ref.expired()]


_exposed = Storages()  # what others may write to without telling
_shared = Storages()  # what torch's users may write to
watched: dict[int, list[weakref.ref]] = {}  # the address of a storage -> the watchers of what lies in it
_full = 64  # at so many addresses those whose watchers are gone are dropped
_lock = threading.Lock()


def watch(tensors: Iterable[torch.Tensor], watcher: Any) -> None:
    """Set ``watcher.stale`` to True when any of the tensors, or what shares memory with them, is written to.

    ``watcher.compares`` becomes True if torch's counters have to be compared as well.
    """
    global _full
    with _lock:
        if len(watched) >= _full:
            for address, refs in list(watched.items()):
                if not _watchers(refs):
                    watched.pop(address, None)
            _full = max(64, 2 * len(watched))
        for t in tensors:
            address = t.untyped_storage().data_ptr()
            watched[address] = [*map(weakref.ref, _watchers(watched.get(address, ()))), weakref.ref(watcher)]
            if address in _shared:
                watcher.compares = True


def _watchers(refs: Iterable[weakref.ref]) -> list[Any]:
    return [watcher for ref in refs if (watcher := ref()) is not None]


def share(tensor: torch.Tensor) -> None:
    """From now on others may write to the tensor through torch, whose version counter tells."""
    for watcher in _watchers(watched.get(_shared.add(tensor), ())):
        watcher.compares = True


def expose(tensor: torch.Tensor) -> None:
    """From now on others may write to the tensor's memory unseen: what has its values built in is out of date, and never made again."""
    written(tensor)
    _exposed.add(tensor)


def may_watch(tensor: torch.Tensor) -> bool:
    """Whether every write to the tensor can be noticed."""
    return not tensor.is_inference() and tensor.untyped_storage().data_ptr() not in _exposed


def written(tensor: torch.Tensor) -> None:
    """Say that a tensor's values have changed."""
    if watched:
        for watcher in _watchers(watched.pop(tensor.untyped_storage().data_ptr(), ())):
            watcher.stale = True


def apart(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return `source`, or a copy of it if a write to `target` could change it: torch refuses some overlaps, and is silently wrong with others."""
    first, second = source.data_ptr(), target.data_ptr()
    if first < second + _extent(target) and second < first + _extent(source):
        return source.clone()
    return source


def _extent(tensor: torch.Tensor) -> int:
    """Return the number of bytes from the first element of a tensor to behind the last."""
    if tensor.is_contiguous():
        return tensor.nbytes
    if not tensor.numel():
        return 0
    return (sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) + 1) * tensor.element_size()
