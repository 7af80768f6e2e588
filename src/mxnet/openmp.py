"""The OpenMP threads of torch's operators.

After an operator they spin for milliseconds. If OpenVINO runs next, they take cores from its threads: AlexNet took 11.8 instead of 8.1 ms on two
cores after one call of `mx.nd.relu`; `rest` ends them. For small operators the overhead of a parallel region exceeds its gain, and spinning threads
slow the others down; `alone` runs them on one thread, except for kernels that limit their number of threads by their work (`most`).
"""
import ctypes
import functools
import pathlib
import threading
from collections.abc import Callable
from typing import Any

import torch


class _Outside(threading.local):
    count = 0  # the number of threads that `alone` has set aside


_outside = _Outside()
_SOFT = 1  # omp_pause_soft: ends the threads and keeps the settings


@functools.cache
def library() -> Any:
    """Load torch's OpenMP library; return None if torch bundles none."""
    path = next(iter(sorted((pathlib.Path(torch.__file__).parent / "lib").glob("libgomp*"))), None)
    return ctypes.PyDLL(str(path)) if path is not None else None  # holds the GIL during calls: the functions used here are short


@functools.cache
def pause_function() -> Any:
    """Return OpenMP's function that ends the threads of the calling thread's pool, or None if torch's OpenMP has none."""
    return getattr(library(), "omp_pause_resource_all", None)


@functools.cache
def thread_functions() -> tuple[Callable[[], int], Callable[[int], object]]:
    """Return OpenMP's getter and setter of the number of threads for the calling thread; without OpenMP, constants for one thread."""
    openmp = library()
    return (lambda: 1, lambda count: None) if openmp is None else (openmp.omp_get_max_threads, openmp.omp_set_num_threads)


def num_threads() -> int:
    """Return the number of threads for later operators of the calling thread."""
    return thread_functions()[0]()


def most() -> int:
    """Return the number of threads that a kernel may use which limits it by its work: in `alone` that of the caller outside."""
    return _outside.count or num_threads()


def rest() -> None:
    """End the spinning threads of torch's operators in this thread's pool; the next operator starts them again."""
    pause = pause_function()
    if pause is not None:
        pause(_SOFT)


def share(count: int) -> None:
    """Set the number of threads for later operators of the calling thread."""
    thread_functions()[1](count)


def alone(call: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with its operators on this thread only, and return its result. Other threads are not affected."""
    get, put = thread_functions()
    before = get()
    if before == 1:
        return call(*arguments)
    try:
        _outside.count = before
        put(1)
        return call(*arguments)
    finally:
        put(before)
        _outside.count = 0
