"""Products of large float32 matrices by whatever is the fastest: a library, kernels for few rows, or tiles of bfloat16 (`amx`).

Fully connected layers of few rows take as long as their weights take to be read, or the gradient of the weights to be written. Libraries cut such
products as they cut all others: eight rows and the 4096 x 9216 weights of AlexNet took MKL 13.9 ms, the gradient of the rows 8.2 and that of the
weights 7.0; `thin` goes through the large matrix once, in 7.1, 6.2 and 3.5 (both cores of a Xeon, family 6, model 167; November 2026). Which is the
fastest is found by a race, once for a shape on each machine.
"""
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch

from ...threads import reduced, usual
from ..runtime.contract import Kernel
from ..runtime.tuning import Races
from . import amx

ROWS = 32  # the most that are few
_LARGE = 1 << 20  # numbers of a matrix: smaller ones stay in the caches
_HEAVY = 1 << 26  # multiplications, from which on tiles take part
_MOST = 1 << 10  # programs whose shapes never repeat must not fill the memory
LIBRARY, FEW_ROWS = "library", "few rows"
_COMMON: dict[str, Any] = {"demands": ("c % 16 == 0", "min(n, c, k) >= 1"), "sizes": ("n", "c", "k"), "multiplies": "n * c * k"}
_FEW = {"forward": Kernel("gemm/skinny", "forward_float32", {"rows": "float32 (n, c)", "weight": "float32 (k, c)", "bias": "float32 (k) optional",
                                                      "out": "float32 (n, k)"}, **_COMMON),
        "gradient of data": Kernel("gemm/skinny", "backward_data_float32", {"dout": "float32 (n, k)", "weight": "float32 (k, c)",
                                                                            "dx": "float32 (n, c)"},
                                   **_COMMON),
        "gradient of weights": Kernel("gemm/skinny", "backward_weight_float32", {"dout": "float32 (n, k)", "rows": "float32 (n, c)",
                                                                          "dweight": "float32 (k, c)"}, **_COMMON)}
races = Races("products", "gemm/amx", "gemm/skinny")
_found: dict[tuple, str] = {}


def suits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether another than the library may compute the product of matrices (N, M) and (M, K)."""
    few = len(a) <= ROWS and b.numel() >= _LARGE or a.shape[1] <= ROWS and len(a) * b.shape[1] >= _LARGE
    return few or len(a) * b.numel() >= _HEAVY and amx.available()


def product(a: torch.Tensor, b: torch.Tensor, bias: Optional[torch.Tensor], memory: Optional[torch.Tensor],
            library: Callable[[], torch.Tensor]) -> torch.Tensor:
    """``a @ b + bias`` of float32 matrices on a CPU, in `memory` if there is some; `library` computes the same."""
    arrays: tuple[Optional[torch.Tensor], ...]
    if bias is None and b.is_contiguous() and a.t().is_contiguous() and (len(a) > a.shape[1] or not a.is_contiguous()):
        way, arrays = "gradient of weights", (a.t(), b)
    elif a.is_contiguous() and b.t().is_contiguous():
        way, arrays = "forward", (a, b.t(), bias)
    elif bias is None and a.is_contiguous() and b.is_contiguous():
        way, arrays = "gradient of data", (a, b)
    else:
        return library()
    key = way, a.shape, b.shape, bias is None, usual()
    found = _found.get(key)
    if found == LIBRARY or found is None and reduced():
        return library()
    out = a.new_empty(len(a), b.shape[1]) if memory is None else memory
    runs: dict[str, Callable[[], Any]] = {LIBRARY: library, FEW_ROWS: lambda: _few_rows(way, arrays, out),
                                          amx.NAME: lambda: amx.multiply(way, arrays, out)}
    if found is None:
        rivals = [name for name in runs if name == LIBRARY or _fits(name, way, arrays, out)]
        sizes = "x".join(map(str, (len(a), *b.shape)))
        if len(_found) >= _MOST:
            _found.clear()
        found = _found[key] = races.winner(f"{way}, {sizes}, {key[-1]} threads", {name: runs[name] for name in rivals}) if rivals[1:] else LIBRARY
    if found == LIBRARY or not runs[found]():  # tiles make numbers that are none of infinite ones
        return library()
    return out


def _fits(name: str, way: str, arrays: Sequence[Optional[torch.Tensor]], out: torch.Tensor) -> bool:
    """Whether a rival of the library takes arrays like these."""
    if name == amx.NAME:
        return amx.available() and amx.fits(way, arrays, out)
    rows = arrays[0]
    return rows is not None and len(rows) <= ROWS and _FEW[way].plan((*arrays, out)) is not None


def _few_rows(way: str, arrays: Sequence[Optional[torch.Tensor]], out: torch.Tensor) -> bool:
    _FEW[way]((*arrays, out))
    return True
