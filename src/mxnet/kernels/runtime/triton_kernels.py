"""Loading of Triton kernels, and the conditions under which they can run. CUDA builds of torch depend on Triton."""
import contextlib
import functools
import importlib.util
from collections.abc import Callable
from typing import Any, Optional

import torch

OPTIONS = {"enable_fp_fusion": True}  # of all kernels; triton 3.9 warns where it is missing, and later versions do without it
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


class CompiledKernels:
    """Compiled kernels by their specialization.

    At every start Triton selects the specialization for types, alignments and constants, which takes longer than the start itself.
    """

    def __init__(self) -> None:
        self._compiled: dict[tuple, Any] = {}

    def start(self, key: Optional[tuple], load: Callable[[], Any], grid: tuple[int, int, int], arguments: tuple, warps: int) -> None:
        """Start a kernel with all its parameters by position.

        Parameters
        ----------
        key : tuple or None
            Names the specialization; None lets Triton select it.
        load : callable
            Returns the kernel.
        grid : tuple of int
        arguments : tuple
        warps : int
        """
        compiled = self._compiled.get(key) if key is not None else None
        if compiled is not None:
            compiled[grid](*arguments)
            return
        compiled = load()[grid](*arguments, num_warps=warps, **OPTIONS)
        if key is not None and compiled is not None:  # None from the interpreter
            self._compiled[key] = compiled
