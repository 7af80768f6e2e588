"""Kernels in C++ for what a training step spends time on outside of convolutions, compiled on the machine that runs them.

They need g++ (or what ``CXX`` names) once: compiling takes two seconds, and the result is kept in ``$MXNET_HOME/kernels`` (`compiled`). Without a
compiler the same is computed with torch's operators.
"""
import ctypes
import functools
from typing import Optional

import torch

from ... import memory
from . import compiled

_LETTERS = {"p": ctypes.c_void_p, "l": ctypes.c_int64, "f": ctypes.c_float, "i": ctypes.c_int}


@functools.cache
def function(name, entry, signature):
    """A function of a kernel's library, or None where that can't be compiled, or not for this processor.

    `signature` has a letter for each parameter: ``p`` for a pointer (an int, or None), ``l`` for int64, ``f`` for float, ``i`` for int.
    """
    library = load(name)
    found = getattr(library, entry, None)
    if found is None:
        return None
    own_heap()
    found.restype, found.argtypes = None, [_LETTERS[letter] for letter in signature]
    return found


def holds_vectors(size, *tensors):
    """Whether each tensor (None counts as well) has what a kernel reads behind its pointer: `size` numbers in single precision, side by side."""
    return all(t is None or t.shape == (size,) and t.dtype is torch.float32 and t.is_contiguous() and t.device.type == "cpu" for t in tensors)


@functools.cache
def own_heap():
    """Let torch take large tensors from ``heap.cpp``; says whether it does. Done once, where the allocator is ours to tune.

    It comes with the first kernel, always: what an import does must not depend on what earlier processes left. Tensors made before stay
    where they are; of a network's those are its parameters, which no step frees.
    """
    library = load("heap") if memory.kept else None
    if library is None or not hasattr(library, "install") or not library.install():
        return False
    library.trim.restype = ctypes.c_int64
    memory.also_trims(library.trim)
    return True


@functools.cache
def load(name: str) -> Optional[ctypes.CDLL]:
    """The library compiled from ``<name>.cpp``, or None where it can't be compiled or kept; see `compiled`."""
    return compiled.load(name)
