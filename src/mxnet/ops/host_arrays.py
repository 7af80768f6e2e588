"""Conversion of host data (NumPy arrays, numbers, sequences) of any layout, byte order or type to tensors."""
from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..suggestions import shortened
from . import dtypes

# Native NumPy types that torch reads in place.
_READABLE = {np.dtype(name): tensor for name, tensor in dtypes.NAME_TO_TORCH.items() if name != "bfloat16"}
_STAGED = 1 << 16, 1 << 28  # bytes of a copy that goes through pinned memory, which torch never returns to the system
_FILLED = 8  # numbers that are written on the GPU, one kernel each


def as_tensor(values: Any, dtype: torch.dtype | None = None, copy: bool = False) -> torch.Tensor:
    """Return a CPU tensor with the values of a NumPy array, number or nested sequence.

    Strides may be negative, zero or no multiple of the element's size. Bytes may be swapped, and memory may be read-only.

    Parameters
    ----------
    values : array-like
        Subclasses of ``numpy.ndarray`` count as plain arrays.
    dtype : torch.dtype, optional
        By default the array's own type; float64 for wider floats. Texts, dates, objects and complex numbers need one: NumPy converts them.
    copy : bool
        Return new memory. Otherwise the tensor may share the array's.

    Raises
    ------
    TypeError, ValueError
        If something in the array is no number, or no number of that type.
    """
    array = np.asarray(values)
    own = _READABLE.get(array.dtype)
    if own is not None and array.flags.behaved:  # aligned and writeable: torch warns of read-only memory
        try:
            tensor = torch.from_numpy(array)
        except ValueError:  # a stride that is negative, or no multiple of the element's size
            pass
        else:
            if copy:
                return tensor.to(dtype or own, copy=True, memory_format=torch.contiguous_format)
            return tensor if dtype is None else tensor.to(dtype)
    if array.dtype.kind == "c" and not isinstance(values, np.ndarray):
        raise TypeError(f"real numbers expected, received {shortened(values)}")
    if array.dtype == dtypes.BFLOAT16_BITS:
        tensor = as_tensor(array["bfloat16"], copy=True).view(torch.bfloat16)
    else:
        kind = own or _nearest(array.dtype, dtype)
        tensor = torch.empty(array.shape, dtype=torch.float32 if kind is torch.bfloat16 else kind)
        np.copyto(tensor.numpy(), array, casting="unsafe")
    return tensor if dtype is None else tensor.to(dtype)


def constant(values: Any, dtype: torch.dtype, device: torch.device | None) -> torch.Tensor:
    """Return a tensor of a few numbers on a device.

    Torch would block the host until the GPU has finished all its pending work, and then copy.
    """
    made = torch.tensor(values, dtype=dtype)
    if device is None or device.type == "cpu":
        return made
    if 0 < made.numel() <= _FILLED:
        return torch.cat([torch.full((1,), value, dtype=dtype, device=device) for value in made.flatten().tolist()]).view(made.shape)
    return sent(made, device)


def sent(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return a copy of a host tensor on a device, without waiting for the GPU's pending work."""
    if device.type != "cuda":
        return tensor.to(device)
    # A CUDA graph would keep the address and read it again in each run: there the copy fails, and so does the capture.
    return staged(tensor, device).to(device, non_blocking=not torch.cuda.is_current_stream_capturing())


def staged(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return a tensor from which a GPU may copy later, while the host goes on: large ones of the host are copied to pinned memory.

    From pageable memory CUDA copies after the GPU's pending work, and the host waits. Pinned memory of the caller's is copied,
    too, since he may write to it before the GPU has read it.
    """
    if device.type != "cuda" or not tensor.is_cpu or not _STAGED[0] <= tensor.nbytes <= _STAGED[1] or tensor.requires_grad:
        return tensor
    return _pinned(tensor) if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing() else tensor


def _pinned(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy in pinned memory, which torch reuses after a GPU has read it."""
    return torch.empty_like(tensor, pin_memory=True, memory_format=torch.contiguous_format).copy_(tensor)


def _nearest(dtype: np.dtype[Any], wanted: torch.dtype | None) -> torch.dtype:
    """Return the type in which torch holds the elements of an array that it cannot read in place."""
    if dtype.kind in "biufc" and (native := _READABLE.get(dtype.newbyteorder("="))) is not None:
        return native
    if dtype.kind == "f":
        return torch.float64
    if wanted is None:
        raise TypeError(f"an array of numbers expected, received one of {dtype}; convert it with astype, or name a dtype")
    return wanted
