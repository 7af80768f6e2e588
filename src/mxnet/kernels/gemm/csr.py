"""Products of a CSR matrix, or its transpose, with a dense matrix on a CPU; the time is proportional to the number of stored elements.

Torch has a sparse product for one of the two only, and a dense product multiplies mostly zeros. For 128 rows with 100 of 12,500 columns each and a
width of 1024, torch's forward and backward took 25 and 60 ms; these take 5 and 6 (two cores of a Xeon, November 2026).
"""
from __future__ import annotations

from typing import Any

import torch

from ..runtime.contract import Kernel

_WORTHWHILE = 1 << 16  # multiplications from which on the kernel is called (and compiled)
_MATRIX = {"starts": "int64 (s)", "columns": "int64 (k)", "values": "float32 (k)"}
_REST: dict[str, Any] = {"preconditions": ("s == m + 1", "n >= 1", "w >= 1"), "work": "k * w", "sizes": ("m", "n", "w", "k")}

_product = Kernel("gemm/csr", "product", {**_MATRIX, "dense": "float32 (n, w)"}, {"out": "float32 (m, w)"}, where={"m": "s - 1"}, **_REST)
_transposed = Kernel("gemm/csr", "transposed_product", {**_MATRIX, "dense": "float32 (m, w)"}, {"out": "float32 (n, w)"}, integers=("n",), **_REST)


def product(starts: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, dense: torch.Tensor) -> Any:
    """Return the matrix times `dense`; None if there is no kernel for these tensors.

    Parameters
    ----------
    starts, columns, values : torch.Tensor
        The matrix in CSR form: row pointers (int64), column indices (int64) and values (float32).
    dense : torch.Tensor
    """
    return _run(_product, (starts, columns, values, dense))


def transposed_product(starts: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, width: int, dense: torch.Tensor) -> Any:
    """Return the transpose of a matrix with `width` columns times `dense`; see `product`."""
    return _run(_transposed, (starts, columns, values, dense), (width,))


def _run(kernel: Kernel, arrays, integers=()):
    if not arrays[3].is_cpu or torch.compiler.is_compiling():
        return None
    arrays = (*arrays[:3], arrays[3].contiguous())
    plan = kernel.plan(arrays, integers, _WORTHWHILE)
    return None if plan is None else plan(arrays)[0]
