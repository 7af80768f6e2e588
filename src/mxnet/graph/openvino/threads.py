"""Torch's threads give way to OpenVINO's.

The threads of OpenMP that torch's operators run on wait for the next operator at full speed, for milliseconds. Where a network follows, they
take cores from OpenVINO's threads: AlexNet took 11.8 instead of 8.1 ms on two cores behind one call of `mx.nd.relu`.
"""
import ctypes
import functools
import pathlib
from typing import Any

import torch

_SOFT = 1  # omp_pause_soft: the threads go, what they were told stays


@functools.cache
def _pause() -> Any:
    """OpenMP's function that ends the threads of the pool of the calling thread, or None where torch's OpenMP has none."""
    path = next(iter(sorted((pathlib.Path(torch.__file__).parent / "lib").glob("libgomp*"))), None)
    function = getattr(ctypes.CDLL(str(path)), "omp_pause_resource_all", None) if path is not None else None
    if function is not None:
        function.argtypes, function.restype = [ctypes.c_int], ctypes.c_int
    return function


def rest() -> None:
    """End the threads that torch's operators have left waiting in this thread's pool; the next operator starts them again."""
    pause = _pause()
    if pause is not None:
        pause(_SOFT)
