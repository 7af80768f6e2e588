"""Flushing of denormal numbers to zero during large products, convolutions and recurrent layers.

The gradients of a softmax over thousands of classes soon lie below 1.2e-38, and a processor takes a hundred cycles for each such number that it
multiplies: a product of (128, 512) and (512, 10000) took 4.3 s instead of 0.05, in MXNet as in torch (Xeon, two cores; November 2026). While a
product of many numbers is computed they count as zero, for the threads that compute it; nothing else that these threads do is changed.
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import Any

import torch

from ... import interrupts
from . import libraries
from .libraries import load

HEAVY = 1 << 25  # multiplications, from which on the four microseconds of the switching are negligible


class Zeroed(interrupts.Scope):
    """A ``with`` block in which this thread and its worker threads treat denormal numbers as zero."""

    __slots__ = ("_begin", "_end")
    _blocks = interrupts.Blocks()

    def __init__(self, begin: Any, end: Any) -> None:
        threads = torch.get_num_threads()
        self._begin, self._end = functools.partial(begin, threads), functools.partial(end, threads)

    def _changes(self) -> list[functools.partial[None]]:
        return [self._begin, self._end]


def zeroed(work: int) -> contextlib.AbstractContextManager[Any]:
    """Return a block for a product of `work` multiplications; from `HEAVY` on, denormal numbers count as zero in it."""
    if work < HEAVY:
        return _UNCHANGED
    functions = _functions()
    return _UNCHANGED if functions is None else Zeroed(*functions)


_UNCHANGED = contextlib.nullcontext()


@functools.cache
def _functions() -> tuple[Any, Any] | None:
    """Return the functions `begin` and `end` of the library, or None if one is missing."""
    library = load("runtime/denormals")
    begin, end = (libraries.symbol(library, entry, True) for entry in ("begin", "end"))
    if begin is None or end is None:
        return None
    for function in (begin, end):
        function.argtypes, function.restype = [ctypes.c_int], None
    return begin, end
