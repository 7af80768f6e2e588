"""The threads of OpenMP that torch's operators run on.

They wait for the next operator at full speed, for milliseconds. Where OpenVINO follows, they take cores from its threads: AlexNet took 11.8 instead
of 8.1 ms on two cores behind one call of `mx.nd.relu`; `rest` ends them. Where operators are small, beginning and ending what threads share costs
more than sharing saves, and who waits slows down who works; `alone` shares nothing.
"""
import ctypes
import functools
import pathlib
from collections.abc import Callable
from typing import Any

import torch

_SOFT = 1  # omp_pause_soft: the threads go, what they were told stays


@functools.cache
def _library() -> Any:
    """Torch's OpenMP, or None where torch brings none along."""
    path = next(iter(sorted((pathlib.Path(torch.__file__).parent / "lib").glob("libgomp*"))), None)
    return ctypes.PyDLL(str(path)) if path is not None else None  # none of its functions that are called here takes long


@functools.cache
def _pause() -> Any:
    """OpenMP's function that ends the threads of the pool of the calling thread, or None where torch's OpenMP has none."""
    return getattr(_library(), "omp_pause_resource_all", None)


@functools.cache
def _threads() -> tuple[Callable[[], int], Callable[[int], object]]:
    """OpenMP's functions that say, and set, how many threads share what the calling thread begins; without them there is one."""
    library = _library()
    return (lambda: 1, lambda count: None) if library is None else (library.omp_get_max_threads, library.omp_set_num_threads)


def rest() -> None:
    """End the threads that torch's operators have left waiting in this thread's pool; the next operator starts them again."""
    pause = _pause()
    if pause is not None:
        pause(_SOFT)


def share(count: int) -> None:
    """Let so many threads share what the calling thread's operators do from now on."""
    _threads()[1](count)


def alone(call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call returns whose operators this thread shares with no other. Other threads, and those that it starts, do as they did."""
    get, put = _threads()
    before = get()
    if before == 1:
        return call(*arguments)
    try:
        put(1)
        return call(*arguments)
    finally:
        put(before)
