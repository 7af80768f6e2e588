"""A warning for 16-bit types on processors that compute slower in them than in float32, with the measured factor."""
import functools
import logging
from collections.abc import Callable, Iterable

import torch

from ...kernels.runtime.measurement import STEP, benchmark, timed
from ...ops.grad_mode import enable_grad

_log = logging.getLogger(__name__)
_TYPES = {torch.float16: "float16", torch.bfloat16: "bfloat16"}
_LIMIT = 1.5  # times as long as float32
_warned: set[torch.dtype] = set()


@functools.cache
def slowness(dtype: torch.dtype) -> float:
    """Return the time of a convolution with its gradients in `dtype`, relative to float32, on this processor: measured once, in milliseconds.

    Example
    -------
    >>> slowness(torch.float32) == 1
    True
    """
    if dtype is torch.float32:
        return 1.0
    times = benchmark({"float32": step(torch.float32), "16 bits": step(dtype)}, lambda run: [timed(run)[0]], STEP).times
    return times["16 bits"] / times["float32"]


def step(dtype: torch.dtype) -> Callable[[], object]:
    """Return a function that computes a convolution and its gradients."""
    data, weight = (torch.ones(shape, dtype=dtype, requires_grad=True) for shape in ((1, 32, 28, 28), (32, 32, 3, 3)))

    def run() -> object:
        with enable_grad():
            return torch.autograd.grad(torch.nn.functional.conv2d(data, weight, padding=1).sum(), (data, weight))
    run()  # with all initializations
    return run


def warn_if_slow(dtypes: Iterable[torch.dtype]) -> None:
    """Log a warning, once for each 16-bit type among `dtypes`, if float32 is faster on this processor by half or more."""
    for dtype in _TYPES.keys() & set(dtypes) - _warned:
        _warned.add(dtype)
        times = slowness(dtype)
        if times > _LIMIT:
            instead = ""
            if dtype is torch.float16 and slowness(torch.bfloat16) < _LIMIT:
                instead = f", or bfloat16, which takes {slowness(torch.bfloat16):.1f} times as long"
            _log.warning("%s is slow on this processor: a convolution takes %.1f times as long as in float32. Use float32%s", _TYPES[dtype], times,
                         instead)
