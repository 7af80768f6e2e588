"""Memory for large tensors: ``heap.cpp``, which torch's allocator on CPUs takes them from."""
import ctypes
import functools

from ... import memory
from .libraries import load


@functools.cache
def own_heap() -> bool:
    """Let torch take large tensors from ``heap.cpp``, where the allocator may be tuned; return whether it does.

    It comes with the first kernel, always: what an import does must not depend on what earlier processes left. Tensors made before stay
    where they are; of a network's those are its parameters, which no step frees.
    """
    library = load("runtime/heap") if memory.kept else None
    if library is None or not hasattr(library, "install") or not library.install():
        return False
    for entry in ("trim", "used", "peak"):
        getattr(library, entry).restype = ctypes.c_int64
    library.count.restype, library.count.argtypes = None, [ctypes.c_int64, ctypes.c_int64]
    library.holds.argtypes = [ctypes.c_void_p]
    memory.also_trims(library.trim)
    return True
