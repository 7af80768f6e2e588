"""Products of a matrix of compressed rows with a dense one, and of its transpose, on a CPU: time goes with the numbers that are stored.

Torch has a sparse product for one of both only, and one of dense matrices multiplies mostly zeros: for 12,500 columns of which each of 128 rows has
100, and a width of 1024, forward and backward took 25 and 60 ms; these take 5 and 6 (two cores of a Xeon, November 2026).
"""
from typing import Any

import torch

from ..runtime.contract import Kernel

_WORTHWHILE = 1 << 16  # multiplications from which on the kernel is called (and compiled)
_MATRIX = {"starts": "int64 (s)", "columns": "int64 (k)", "values": "float32 (k)"}
_REST: dict[str, Any] = {"demands": ("s == m + 1", "n >= 1", "w >= 1"), "work": "k * w", "sizes": ("m", "n", "w", "k")}

_product = Kernel("gemm/csr", "product", {**_MATRIX, "dense": "float32 (n, w)"}, {"out": "float32 (m, w)"}, where={"m": "s - 1"}, **_REST)
_transposed = Kernel("gemm/csr", "transposed_product", {**_MATRIX, "dense": "float32 (m, w)"}, {"out": "float32 (n, w)"}, integers=("n",), **_REST)


def product(starts, columns, values, dense):
    """The matrix times `dense`; None if there is no kernel for these tensors.

    Parameters
    ----------
    starts, columns, values : torch.Tensor
        The matrix: where each row begins in both others, and where the last one ends; int64, int64 and float32.
    dense : torch.Tensor
    """
    return _run(_product, (starts, columns, values, dense))


def transposed_product(starts, columns, values, width, dense):
    """The transpose of a matrix with `width` columns times `dense`; see `product`."""
    return _run(_transposed, (starts, columns, values, dense), (width,))


def _run(kernel: Kernel, arrays, integers=()):
    if not arrays[3].is_cpu or torch.compiler.is_compiling():
        return None
    arrays = (*arrays[:3], arrays[3].contiguous())
    plan = kernel.plan(arrays, integers, _WORTHWHILE)
    return None if plan is None else plan(arrays)[0]
