"""Kernels in Triton, which torch brings where it is made for CUDA: whether they can run here, and where."""
import contextlib
import functools
import importlib
from types import ModuleType
from typing import Optional

import torch

OLDEST = 8, 0  # the compute capability from which on the compiler knows all types


@functools.cache
def module(name: str) -> Optional[ModuleType]:
    """Return a module of kernels, such as "nn.batch_norm_triton", or None without triton."""
    try:
        return importlib.import_module(f"mxnet.kernels.{name}")
    except ImportError:
        return None


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
