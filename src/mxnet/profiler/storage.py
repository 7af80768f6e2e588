"""How much memory arrays take, on each device: counted where it is given out, by the heap of large tensors and by torch on GPUs."""
import gc
import os
from typing import Any

import torch

from ..ops import kernels

_heap: Any = None


def watch(on: bool) -> None:
    """Count what lies outside of the heap of large tensors, too, or no longer. The first time looks at all objects there are."""
    global _heap
    if on and _heap is None and kernels.own_heap():
        library: Any = kernels.load("heap")
        known = 0
        for storage in live().values():
            if storage.device.type == "cpu" and not library.holds(storage.data_ptr()):
                known += storage.nbytes()
        library.count(1, known)
        _heap = library
    elif not on and _heap is not None:
        _heap.count(0, 0)
        _heap = None


def live() -> dict[int, torch.UntypedStorage]:
    """The memory of all tensors that Python knows, by address."""
    found = {}
    for tensor in gc.get_objects():
        if issubclass(type(tensor), torch.Tensor) and tensor.layout is torch.strided and tensor.device.type != "meta":
            storage = tensor.untyped_storage()
            found[storage.data_ptr()] = storage
    return found


def used(device: torch.device) -> tuple[str, int]:
    """The device's name in a profile, and the bytes that are in use there: of arrays, or if nobody counts them, of the process."""
    if device.type == "cuda":
        index = device.index or 0
        return f"gpu/{index}", torch.cuda.memory_allocated(index)
    return ("cpu/0", _heap.used()) if _heap is not None else ("cpu/0 (resident)", resident())


def peak(device: torch.device) -> int:
    """The most bytes that were in use at once since `watch`."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return _heap.peak() if _heap is not None else resident()


def resident() -> int:
    """The bytes of this process that are in the machine's memory; 0 where that can't be read."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
