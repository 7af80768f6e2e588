"""Loading of Triton kernels, and the conditions under which they can run. CUDA builds of torch depend on Triton."""
import contextlib
import functools
import importlib.util

import torch

OLDEST = 8, 0  # the compute capability from which on the compiler supports all types


@functools.cache
def installed() -> bool:
    """Return whether modules of kernels in Triton can be imported."""
    return importlib.util.find_spec("triton") is not None


@functools.cache
def interpreted() -> bool:
    """Return True if Triton interprets kernels on the CPU, in NumPy, because of TRITON_INTERPRET=1."""
    from triton import knobs

    return bool(knobs.runtime.interpret)


def runs_on(device: torch.device) -> bool:
    """Return True if a device supports kernels in Triton, or the processor does as their interpreter."""
    if not installed():
        return False
    if interpreted():
        return device.type == "cpu"
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= OLDEST


def on(device: torch.device) -> contextlib.AbstractContextManager:
    """Return a ``with`` block in which kernels start on `device`: Triton uses the current one."""
    if device.type != "cuda" or device.index in (None, torch.cuda.current_device()):
        return contextlib.nullcontext()
    return torch.cuda.device(device)
