"""The heap for large tensors: ``heap.cpp``, which replaces torch's CPU allocator for them."""
import ctypes
import functools

from ... import memory
from .libraries import load


@functools.cache
def own_heap() -> bool:
    """Make torch allocate large tensors in ``heap.cpp`` where the allocator may be tuned; return True if it does.

    The first kernel installs it, always: the effect of an import must not depend on files of earlier processes. Tensors made before stay where they
    are; of a network these are the parameters, which no step frees.
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
