"""The memory allocator of the CPU.

glibc hands every large buffer back to the kernel as soon as it is freed and page-faults it in again at the next operator, which
costs half of a network's time (``benchmarks/`` shows it). Told to keep its memory it does not. ``MXNET_CPU_MEM_POOL_TYPE=Unpooled``
leaves it as it is; `trim` gives back what is free. Large tensors have a heap
of their own besides (``kernels/runtime/heap.cpp``), where it can be compiled.
"""
import ctypes
import gc
import os
import sys

from . import interrupts
from .base import MXNetError
from .suggestions import shortened

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # glibc's malloc.h
_KEEP = -1  # never give free memory at the top of the heap back
_POOLED, _UNPOOLED = ("Naive", "Round"), "Unpooled"
kept = False
_others = []  # other heaps' functions that give free memory back, and return how much


def _libc():
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def configure():
    """Tell the allocator to keep its memory, unless the environment says otherwise. Called once, at import."""
    global kept
    choice = os.environ.get("MXNET_CPU_MEM_POOL_TYPE", "Naive")
    if choice not in (*_POOLED, _UNPOOLED):
        raise MXNetError(f"MXNET_CPU_MEM_POOL_TYPE must be one of {', '.join((*_POOLED, _UNPOOLED))}, received {shortened(choice)}")
    library = _libc()
    if choice == _UNPOOLED or library is None:
        return
    kept = bool(library.mallopt(_M_MMAP_MAX, 0) and library.mallopt(_M_TRIM_THRESHOLD, _KEEP))


@interrupts.scope
def without_collection():
    """Let Python's collector rest: what an import makes is there to stay, and to look for rubbish among all of torch's objects takes longer."""
    collects = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if collects:
            gc.enable()


def trim():
    """Give memory that the allocator holds but nothing uses back to the system; returns True if any was given."""
    library = _libc()
    given = [function() for function in _others]
    return any([library is not None and library.malloc_trim(0), *given])


def also_trims(function):
    """Let `trim` call a function too, which gives memory of another heap back and returns how many bytes."""
    _others.append(function)
