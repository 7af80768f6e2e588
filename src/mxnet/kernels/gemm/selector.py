"""Products of large float32 matrices by the fastest of a library, the skinny GEMM for few rows, and bfloat16 tiles (`amx`).

Fully connected layers of few rows are bound by reading the weights, or by writing their gradient. Libraries block such products as all others: for
eight rows and the 4096 x 9216 weights of AlexNet, MKL took 13.9 ms, 8.2 for the gradient of the rows and 7.0 for that of the weights. `skinny.cpp`
passes over the large matrix once, in 7.1, 6.2 and 3.5 ms (both cores of a Xeon, family 6, model 167; November 2026). The autotuner chooses once for
each shape and machine.
"""
import functools
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch

from ...threads import of_kernels
from ..runtime.contract import Kernel
from ..runtime.tuning import Autotuner, postponed
from . import amx

ROWS = 32  # up to which the skinny GEMM is a candidate
_LARGE = 1 << 20  # elements of a matrix from which on it does not stay in the caches
_HEAVY = 1 << 26  # multiplications from which on AMX is a candidate
_MOST = 1 << 10  # programs whose shapes never repeat must not fill the memory
LIBRARY, FEW_ROWS = "library", "few rows"
_COMMON: dict[str, Any] = {"preconditions": ("c % 16 == 0", "min(n, c, k) >= 1"), "sizes": ("n", "c", "k"), "multiplies": "n * c * k"}
_FEW = {"forward": Kernel("gemm/skinny", "forward_float32", {"rows": "float32 (n, c)", "weight": "float32 (k, c)", "bias": "float32 (k) optional",
                                                      "out": "float32 (n, k)"}, **_COMMON),
        "gradient of data": Kernel("gemm/skinny", "backward_data_float32", {"dout": "float32 (n, k)", "weight": "float32 (k, c)",
                                                                            "dx": "float32 (n, c)"},
                                   **_COMMON),
        "gradient of weights": Kernel("gemm/skinny", "backward_weight_float32", {"dout": "float32 (n, k)", "rows": "float32 (n, c)",
                                                                          "dweight": "float32 (k, c)"}, **_COMMON)}
autotuner = Autotuner("products", "gemm/amx", "gemm/skinny")
_found: dict[tuple, str] = {}


def suits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return True if the library has a competitor for the product of matrices (N, M) and (M, K)."""
    few = len(a) <= ROWS and b.numel() >= _LARGE or a.shape[1] <= ROWS and len(a) * b.shape[1] >= _LARGE
    return few or len(a) * b.numel() >= _HEAVY and amx.available()


def product(a: torch.Tensor, b: torch.Tensor, bias: Optional[torch.Tensor], memory: Optional[torch.Tensor],
            library: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Return ``a @ b + bias`` of float32 matrices on a CPU, written to `memory` if given; `library` computes the same."""
    arrays: tuple[Optional[torch.Tensor], ...]
    if bias is None and b.is_contiguous() and a.t().is_contiguous() and (len(a) > a.shape[1] or not a.is_contiguous()):
        way, arrays = "gradient of weights", (a.t(), b)
    elif a.is_contiguous() and b.t().is_contiguous():
        way, arrays = "forward", (a, b.t(), bias)
    elif bias is None and a.is_contiguous() and b.is_contiguous():
        way, arrays = "gradient of data", (a, b)
    else:
        return library()
    key = way, a.shape, b.shape, bias is None, of_kernels()
    found = _found.get(key)
    if found == LIBRARY or found is None and postponed():
        return library()
    out = a.new_empty(len(a), b.shape[1]) if memory is None else memory
    runs: dict[str, Callable[[], Any]] = {LIBRARY: library, FEW_ROWS: lambda: _skinny(way, arrays, out),
                                          **{name: functools.partial(amx.multiply, name, way, arrays, out) for name in (amx.NAME, amx.ONE_PASS)}}
    if found is None:
        rivals = [name for name in runs if name == LIBRARY or _fits(name, way, arrays, out)]
        sizes = "x".join(map(str, (len(a), *b.shape)))
        if len(_found) >= _MOST:
            _found.clear()
        name = f"{way}, {sizes}, {key[-1]} threads"
        found = _found[key] = autotuner.fastest(name, {rival: runs[rival] for rival in rivals}) if rivals[1:] else LIBRARY
    if found == LIBRARY or not runs[found]():  # AMX turns infinite numbers into NaN: the library repeats the product
        return library()
    return out


def _fits(name: str, way: str, arrays: Sequence[Optional[torch.Tensor]], out: torch.Tensor) -> bool:
    """Return True if the named kernel takes arrays of these shapes."""
    if name in (amx.NAME, amx.ONE_PASS):
        return amx.available() and amx.fits(name, way, arrays, out)
    rows = arrays[0]
    return rows is not None and len(rows) <= ROWS and _FEW[way].plan((*arrays, out)) is not None


def _skinny(way: str, arrays: Sequence[Optional[torch.Tensor]], out: torch.Tensor) -> bool:
    _FEW[way]((*arrays, out))
    return True
