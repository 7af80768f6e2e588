"""Products of a large matrix with few rows: fully connected layers in training, whose time is that of reading weights, or of writing gradients.

Libraries cut such products as they cut all others. Eight rows and the 4096 x 9216 weights of AlexNet took MKL 13.9 ms, the gradient of the rows
8.2 and that of the weights 7.0; these kernels 7.1, 6.2 and 3.5 (both cores of a Xeon, family 6, model 167; November 2026). Which is faster is
found by a race, once for a shape on each machine.
"""
from collections.abc import Callable
from typing import Any, Optional

import torch

from .gate import Kernel
from .races import Races

ROWS = 32  # the most that are few
_LARGE = 1 << 20  # numbers of a matrix: smaller ones stay in the caches
_MOST = 1 << 10  # programs whose shapes never repeat must not fill the memory
LIBRARY, KERNEL = "library", "rows at once"
_COMMON: dict[str, Any] = {"demands": ("c % 16 == 0", "min(n, c, k) >= 1"), "sizes": ("n", "c", "k"), "multiplies": "n * c * k"}
_forward = Kernel("thin", "forward_float32", {"rows": "float32 (n, c)", "weight": "float32 (k, c)", "bias": "float32 (k) optional",
                                              "out": "float32 (n, k)"}, **_COMMON)
_backward_data = Kernel("thin", "backward_data_float32", {"dout": "float32 (n, k)", "weight": "float32 (k, c)", "dx": "float32 (n, c)"}, **_COMMON)
_backward_weight = Kernel("thin", "backward_weight_float32", {"dout": "float32 (n, k)", "rows": "float32 (n, c)", "dweight": "float32 (k, c)"},
                          **_COMMON)
races = Races("products", "thin")
_found: dict[tuple, str] = {}


def suits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether the product of a matrix (N, M) with one of shape (M, K) is one of few rows with a large matrix, or a large sum of few products."""
    return len(a) <= ROWS and b.numel() >= _LARGE or a.shape[1] <= ROWS and len(a) * b.shape[1] >= _LARGE


def product(a: torch.Tensor, b: torch.Tensor, bias: Optional[torch.Tensor], memory: Optional[torch.Tensor],
            library: Callable[[], torch.Tensor]) -> torch.Tensor:
    """``a @ b + bias`` of float32 matrices on a CPU, in `memory` if there is some; `library` computes the same."""
    extra: tuple[Optional[torch.Tensor], ...] = ()
    if len(a) <= ROWS and a.is_contiguous():
        way, kernel, first, second, extra = "forward", _forward, a, b.t(), (bias,)
        if bias is None and b.is_contiguous():
            way, kernel, second, extra = "gradient of data", _backward_data, b, ()
    else:
        way, kernel, first, second = "gradient of weights", _backward_weight, a.t(), b
    if bias is not None and not extra or not first.is_contiguous() or not second.is_contiguous():
        return library()

    def run():
        out = a.new_empty(len(a), b.shape[1]) if memory is None else memory
        kernel((first, second, *extra, out))
        return out

    key = way, first.shape, second.shape, bias is None, torch.get_num_threads()
    found = _found.get(key)
    if found is None:
        like = a.new_empty(len(a), b.shape[1]) if memory is None else memory
        fits = kernel.plan((first, second, *extra, like)) is not None
        name = f"{way}, {'x'.join(map(str, first.shape))}, {'x'.join(map(str, second.shape))}, {key[-1]} threads"
        if len(_found) >= _MOST:
            _found.clear()
        found = _found[key] = races.winner(name, {LIBRARY: library, KERNEL: run}) if fits else LIBRARY
    return library() if found == LIBRARY else run()
