"""Loading of Triton kernels, and the conditions under which they can run. CUDA builds of torch depend on Triton."""
import contextlib
import functools
import importlib
from types import ModuleType
from typing import Optional

import torch

OLDEST = 8, 0  # the compute capability from which on the compiler supports all types


@functools.cache
def module(name: str) -> Optional[ModuleType]:
    """Return a module of kernels, such as "nn.batch_norm_triton", or None without triton."""
    try:
        return importlib.import_module(f"mxnet.kernels.{name}")
    except ImportError:
        return None


@functools.cache
def interpreted() -> bool:
    """Return True if Triton interprets kernels on the CPU, in NumPy, because of TRITON_INTERPRET=1."""
    from triton import knobs

    return bool(knobs.runtime.interpret)


def on(device: torch.device) -> contextlib.AbstractContextManager:
    """Return a ``with`` block in which kernels start on `device`: Triton uses the current one."""
    if device.type != "cuda" or device.index in (None, torch.cuda.current_device()):
        return contextlib.nullcontext()
    return torch.cuda.device(device)
