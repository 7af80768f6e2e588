"""Kernels in C++ for what a training step spends time on, compiled for the processor that runs them.

They come with the wheel, or need g++ (or what ``CXX`` names) once: compiling takes two seconds, and the result is kept in
``$MXNET_HOME/kernels`` (`compiled`). Where there is neither the same is computed with torch's operators. Each states its demands on its
arguments beside its signature, and is called through a gate that enforces them (`gate`).
"""
import ctypes
import functools
from typing import Optional

from ... import memory
from . import compiled


@functools.cache
def own_heap():
    """Let torch take large tensors from ``heap.cpp``; says whether it does. Done once, where the allocator is ours to tune.

    It comes with the first kernel, always: what an import does must not depend on what earlier processes left. Tensors made before stay
    where they are; of a network's those are its parameters, which no step frees.
    """
    library = load("heap") if memory.kept else None
    if library is None or not hasattr(library, "install") or not library.install():
        return False
    for entry in ("trim", "used", "peak"):
        getattr(library, entry).restype = ctypes.c_int64
    library.count.restype, library.count.argtypes = None, [ctypes.c_int64, ctypes.c_int64]
    library.holds.argtypes = [ctypes.c_void_p]
    memory.also_trims(library.trim)
    return True


@functools.cache
def load(name: str) -> Optional[ctypes.CDLL]:
    """The library compiled from ``<name>.cpp``, or None where there is none; see `compiled`."""
    return compiled.load(name)
