"""Zeros that take memory where they are first written to: gradients before the first step, and states of tables of which a step touches some rows."""
import contextlib
import math
import mmap
from collections.abc import Sequence

import torch

_LARGE = 1 << 24  # bytes; smaller ones come from torch


def zeros(shape: Sequence[int], dtype: torch.dtype, device: torch.device, by_rows: bool = False) -> torch.Tensor:
    """Return a tensor of zeros; on a CPU, where the system can do it, no page of a large one takes memory before it is written to.

    Pages are huge where the system has them, unless rows are written `by_rows`: one would bring the memory of hundreds.
    """
    count = math.prod(shape)
    size = count * dtype.itemsize
    if device.type != "cpu" or size < _LARGE or not hasattr(mmap, "MAP_PRIVATE"):
        return torch.zeros(tuple(shape), dtype=dtype, device=device)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with contextlib.suppress(OSError):  # a system without huge pages
            memory.madvise(mmap.MADV_NOHUGEPAGE if by_rows else mmap.MADV_HUGEPAGE)
    # A tensor of its own, no view: such memory may be replaced.
    made = torch.empty(0, dtype=dtype)
    made.set_(torch.frombuffer(memory, dtype=dtype, count=count).untyped_storage(), 0, tuple(shape))  # type: ignore[call-overload]  # strides follow
    return made
