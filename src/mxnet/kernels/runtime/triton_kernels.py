"""Kernels in Triton, which torch brings where it is made for CUDA: whether they can run here, and where."""
import contextlib
import functools
import importlib.util

import torch

OLDEST = 8, 0  # the compute capability from which on the compiler knows all types


@functools.cache
def installed() -> bool:
    """Return whether modules of kernels in Triton can be imported."""
    return importlib.util.find_spec("triton") is not None


@functools.cache
def interpreted() -> bool:
    """Return whether Triton runs on the processor, in NumPy, as TRITON_INTERPRET=1 asks."""
    from triton import knobs

    return bool(knobs.runtime.interpret)


def on(device: torch.device) -> contextlib.AbstractContextManager:
    """Return a block in which a kernel starts on `device`: Triton takes the current one."""
    if device.type != "cuda" or device.index in (None, torch.cuda.current_device()):
        return contextlib.nullcontext()
    return torch.cuda.device(device)
