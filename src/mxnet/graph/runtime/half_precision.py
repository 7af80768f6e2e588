"""Types of 16 bits on processors that compute slower in them than in float32: whoever runs a network so is told, with the figure."""
import functools
import logging
import time
from collections.abc import Iterable

import torch

from ...ops.grad_mode import enable_grad

_log = logging.getLogger(__name__)
_TYPES = {torch.float16: "float16", torch.bfloat16: "bfloat16"}
_LIMIT = 1.5  # times as long as float32
_warned: set[torch.dtype] = set()


@functools.cache
def slowness(dtype: torch.dtype) -> float:
    """How many times as long as in float32 a convolution with its gradients takes on this processor: measured once, in some milliseconds.

    Example
    -------
    >>> slowness(torch.float32) == 1
    True
    """
    return 1.0 if dtype is torch.float32 else _seconds(dtype) / _seconds(torch.float32)


def _seconds(dtype: torch.dtype) -> float:
    """The fastest of three; the first one is slower for reasons of its own."""
    data, weight = (torch.ones(shape, dtype=dtype, requires_grad=True) for shape in ((1, 32, 28, 28), (32, 32, 3, 3)))
    times = []
    for _ in range(3):
        start = time.perf_counter()
        with enable_grad():
            torch.autograd.grad(torch.nn.functional.conv2d(data, weight, padding=1).sum(), (data, weight))
        times.append(time.perf_counter() - start)
    return min(times)


def warn_if_slow(dtypes: Iterable[torch.dtype]) -> None:
    """Log, once for each type of 16 bits that is among these, that float32 is faster on this processor, if it is by half or more."""
    for dtype in _TYPES.keys() & set(dtypes) - _warned:
        _warned.add(dtype)
        times = slowness(dtype)
        if times > _LIMIT:
            instead = ""
            if dtype is torch.float16 and slowness(torch.bfloat16) < _LIMIT:
                instead = f", or bfloat16, which takes {slowness(torch.bfloat16):.1f} times as long"
            _log.warning("%s is slow on this processor: a convolution takes %.1f times as long as in float32. Use float32%s", _TYPES[dtype], times,
                         instead)
