"""The configuration of the CPU's memory allocator.

By default glibc returns every large buffer to the kernel as soon as it is freed, and the next operator page-faults a new one in, which costs half
of a network's time (see ``benchmarks/``). `configure` disables that, unless ``MXNET_CPU_MEM_POOL_TYPE=Unpooled`` is set; `trim` returns free
memory to the system. Large tensors have a heap of their own (``kernels/runtime/heap.cpp``), where it can be compiled.
"""
from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from . import interrupts
from .base import MXNetError
from .suggestions import shortened

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # glibc's malloc.h
_KEEP = -1  # never return free memory at the top of the heap
_POOLED, _UNPOOLED = ("Naive", "Round"), "Unpooled"
kept = False
_others: list[Callable[[], Any]] = []  # functions of other heaps that return free memory to the system, and the number of bytes to the caller


def _libc():
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def configure() -> None:
    """Configure the allocator to keep freed memory, unless the environment disables it. Called once, at import."""
    global kept
    choice = os.environ.get("MXNET_CPU_MEM_POOL_TYPE", "Naive")
    if choice not in (*_POOLED, _UNPOOLED):
        raise MXNetError(f"MXNET_CPU_MEM_POOL_TYPE must be one of {', '.join((*_POOLED, _UNPOOLED))}, received {shortened(choice)}")
    library = _libc()
    if choice == _UNPOOLED or library is None:
        return
    kept = bool(library.mallopt(_M_MMAP_MAX, 0) and library.mallopt(_M_TRIM_THRESHOLD, _KEEP))


@interrupts.scope
def without_collection() -> Iterator[None]:
    """Disable Python's garbage collector in a ``with`` block: an import creates no garbage, and scanning its objects and torch's takes long."""
    collects = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if collects:
            if not gc.get_freeze_count():  # else the program has frozen objects, which are not to be thawed here
                gc.freeze()
                gc.unfreeze()  # everything is in the oldest generation now, so that the first collection does not scan it
            gc.enable()


def trim() -> bool:
    """Return free memory of the allocator to the system; return True if there was any."""
    library = _libc()
    given = [function() for function in _others]
    return any([library is not None and library.malloc_trim(0), *given])


def also_trims(function: Callable[[], Any]) -> None:
    """Register a function for `trim` that returns free memory of another heap to the system and returns the number of bytes."""
    _others.append(function)
