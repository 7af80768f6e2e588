"""The OpenMP threads of torch's operators.

After an operator they spin for milliseconds. If OpenVINO runs next, they take cores from its threads: AlexNet took 11.8 instead of 8.1 ms on two
cores after one call of `mx.nd.relu`; `rest` ends them. For small operators the overhead of a parallel region exceeds its gain, and spinning threads
slow the others down; `alone` runs them on one thread.
"""
import ctypes
import functools
import pathlib
from collections.abc import Callable
from typing import Any

import torch

_SOFT = 1  # omp_pause_soft: ends the threads and keeps the settings


@functools.cache
def _library() -> Any:
    """Load torch's OpenMP library; return None if torch bundles none."""
    path = next(iter(sorted((pathlib.Path(torch.__file__).parent / "lib").glob("libgomp*"))), None)
    return ctypes.PyDLL(str(path)) if path is not None else None  # holds the GIL during calls: the functions used here are short


@functools.cache
def _pause() -> Any:
    """Return OpenMP's function that ends the threads of the calling thread's pool, or None if torch's OpenMP has none."""
    return getattr(_library(), "omp_pause_resource_all", None)


@functools.cache
def _threads() -> tuple[Callable[[], int], Callable[[int], object]]:
    """Return OpenMP's getter and setter of the number of threads for the calling thread; without OpenMP, constants for one thread."""
    library = _library()
    return (lambda: 1, lambda count: None) if library is None else (library.omp_get_max_threads, library.omp_set_num_threads)


def rest() -> None:
    """End the spinning threads of torch's operators in this thread's pool; the next operator starts them again."""
    pause = _pause()
    if pause is not None:
        pause(_SOFT)


def share(count: int) -> None:
    """Set the number of threads for later operators of the calling thread."""
    _threads()[1](count)


def alone(call: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with its operators on this thread only, and return its result. Other threads are not affected."""
    get, put = _threads()
    before = get()
    if before == 1:
        return call(*arguments)
    try:
        put(1)
        return call(*arguments)
    finally:
        put(before)
