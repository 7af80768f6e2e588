"""The memory in use by arrays on each device, counted by the allocators: the heap of large tensors, and torch's on GPUs."""
import contextlib
import gc
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from .. import kernels
from ..executor import Executor
from ..gluon.parameter import Parameter
from ..graph.backends.openvino import Compiled
from ..ndarray import NDArray
from ..optimizer.updater import Updater
from .events import HOST

_heap: Any = None


def watch(on: bool) -> None:
    """Start or stop counting memory outside of the heap of large tensors. The first start inspects all objects."""
    global _heap
    if on and _heap is None and kernels.own_heap():
        library: Any = kernels.load("runtime/heap")
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
    """Return the storages of all tensors that Python's garbage collector tracks, by address."""
    sizes = {}
    for tensor in gc.get_objects():
        # Only torch's own types: the fake tensors of its compiler have no memory.
        if type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided and tensor.device.type != "meta":
            with contextlib.suppress(RuntimeError):  # some of these look like its own
                storage = tensor.untyped_storage()
                sizes[storage.data_ptr()] = storage
    return sizes


def counter() -> Callable[[], int] | None:
    """Return the function that returns the bytes of arrays on the CPU; None if they are not counted."""
    return _heap.used if _heap is not None else None


def used(device: torch.device) -> tuple[str, int]:
    """Return the device's name in a profile and the bytes in use there: of arrays, or of the process if arrays are not counted."""
    if device.type == "cuda":
        index = device.index or 0
        return f"gpu/{index}", torch.cuda.memory_allocated(index)
    return (HOST, _heap.used()) if _heap is not None else ("cpu/0 (resident)", resident())


def uses() -> dict[str, dict[str, int]]:
    """Return the bytes in use by device and purpose: parameters, gradients, optimizer states, weights embedded in compiled graphs.

    The rest counts as activations: data, results, and tensors saved for a backward pass. This inspects all objects.
    """
    arrays: dict[str, list[Any]] = {"parameter": [], "gradient": [], "optimizer state": []}
    built_in: dict[str, int] = {}
    for holder in gc.get_objects():
        kind = type(holder)
        if issubclass(kind, Parameter):
            arrays["parameter"] += holder._data or ()
            arrays["gradient"] += holder._grad or ()
        elif issubclass(kind, Updater):
            arrays["optimizer state"] += _arrays(holder.states.values())
        elif issubclass(kind, Executor):
            arrays["parameter"] += [a for a, g in zip(holder.arg_arrays, holder.grad_arrays) if g is not None]
            arrays["parameter"] += holder.aux_arrays
            arrays["gradient"] += [g for g in holder.grad_arrays if g is not None]
        elif kind is Compiled:
            for node, tensor in holder.program.constants.items():
                if node.op == "placeholder":
                    built_in[_place(tensor.device)] = built_in.get(_place(tensor.device), 0) + tensor.nbytes
    seen: set[int] = set()
    sums: dict[str, dict[str, int]] = {place: {"backend": bytes_} for place, bytes_ in built_in.items()}
    for use, members in arrays.items():
        for array in members:
            # The stored parts of a sparse array, and its dense autograd leaf if there is one: `_data` would create a dense tensor.
            for tensor in (array._values, *array._aux, array._leaf) if array._is_sparse else (array._data,):
                if isinstance(tensor, torch.Tensor) and tensor.device.type != "meta" and tensor.layout is torch.strided:
                    storage = tensor.untyped_storage()
                    if storage.data_ptr() not in seen:
                        seen.add(storage.data_ptr())
                        row = sums.setdefault(_place(tensor.device), {})
                        row[use] = row.get(use, 0) + storage.nbytes()
    for place in sums:
        device = torch.device("cuda", int(place.split("/")[1])) if place.startswith("gpu") else torch.device("cpu")
        if place.startswith("gpu") or _heap is not None:  # embedded weights are outside of the counted memory
            known = sum(n for use, n in sums[place].items() if use != "backend")
            sums[place]["activation"] = max(used(device)[1] - known, 0)
            sums[place]["peak"] = peak(device)
    return sums


def _arrays(states: Iterable[Any]) -> Iterator[NDArray]:
    for state in states:
        if isinstance(state, NDArray):
            yield state
        elif isinstance(state, (list, tuple)):
            yield from _arrays(state)


def _place(device: torch.device) -> str:
    return "cpu/0" if device.type == "cpu" else f"gpu/{device.index or 0}"


def peak(device: torch.device) -> int:
    """Return the peak of the bytes in use since `watch`."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return _heap.peak() if _heap is not None else resident()


def resident() -> int:
    """Return the resident memory of this process in bytes; 0 where that can't be read."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
