"""Mutation tracking: notification of watchers when values are written in place.

A compiled graph has the values of its weights built in. Writes bypass torch's version counter (a later backward must see new values
without an error), so every place that writes into an array calls `written` first. Writes through torch itself
(``x.as_torch().mul_(2)``) are detected by torch's counter, which is read only for memory handed to users of torch (`share`).
"""
from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef


class Storages:
    """Storages, for as long as they live, by the addresses of their memory. Freed storages are dropped whenever the table has doubled."""

    def __init__(self) -> None:
        self._at: dict[int, list[StorageWeakRef]] = {}  # several storages may use the same memory
        self._full = 64
        self._lock = threading.Lock()

    def add(self, tensor: torch.Tensor) -> int:
        """Add a tensor's storage; returns its address."""
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        with self._lock:
            tokens = self._at.get(address, [])
            if all(ref.cdata != storage._cdata for ref in tokens):
                if len(self._at) >= self._full:
                    self._at = {a: alive for a, refs in self._at.items() if (alive := _alive(refs))}
                    self._full = max(64, 2 * len(self._at))
                self._at[address] = [*_alive(tokens), StorageWeakRef(storage)]
        return address

    def __contains__(self, address: int) -> bool:
        return bool(_alive(self._at.get(address, ())))

    def __len__(self) -> int:
        return len(self._at)


def _alive(refs: Iterable[StorageWeakRef]) -> list[StorageWeakRef]:
    return [ref for ref in refs if not ref.expired()]


class Replacements:
    """The number of replacements of some kind in this process: while `count` is unchanged, nothing of that kind was replaced."""

    count = 0


tensor_replacements = Replacements()  # of tensors in arrays
_exposed = Storages()  # memory that others may write to undetected
_shared = Storages()  # memory that users of torch may write to
watched: dict[int, list[weakref.ref]] = {}  # the address of a storage -> the watchers of its content
_full = 64  # at this number of addresses those without live watchers are dropped
_lock = threading.Lock()


def watch(tensors: Iterable[torch.Tensor], watcher: Any) -> None:
    """Set ``watcher.stale`` to True before any of the tensors, or memory they share, is written to.

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
    """Mark a tensor that others may write to through torch, so that torch's version counter is compared from now on."""
    for watcher in _watchers(watched.get(_shared.add(tensor), ())):
        watcher.compares = True


def expose(tensor: torch.Tensor) -> None:
    """Mark memory that others may write to undetected: graphs with its values built in are stale, and no new ones are built."""
    written(tensor)
    _exposed.add(tensor)


def may_watch(tensor: torch.Tensor) -> bool:
    """Return True if every write to the tensor can be detected."""
    return not tensor.is_inference() and tensor.untyped_storage().data_ptr() not in _exposed


def are_writes_announced(tensor: torch.Tensor) -> bool:
    """Return True if watchers are notified of every write to the tensor before it happens: nobody but this package has its memory."""
    return may_watch(tensor) and tensor.untyped_storage().data_ptr() not in _shared


def replace_memory(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Give a tensor the memory of `values`, the same values in another order; those who watch it go on to do so."""
    before = tensor.untyped_storage().data_ptr()
    tensor.data = values
    if before in watched:
        with _lock:
            refs, address = watched.pop(before, []), values.untyped_storage().data_ptr()
            watched[address] = [*watched.get(address, ()), *refs]


def written(tensor: torch.Tensor) -> None:
    """Notify watchers that a tensor's values change; it is called before they do."""
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
