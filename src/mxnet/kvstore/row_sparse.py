"""Sums of row_sparse arrays."""
from __future__ import annotations

from collections.abc import Sequence

from ..ndarray.sparse.arrays import RowSparseNDArray, summed_rows


def add(arrays: Sequence[RowSparseNDArray]) -> RowSparseNDArray:
    """Return the sum of row_sparse arrays on one device; a single one is returned unchanged."""
    first = arrays[0]
    if len(arrays) == 1:
        return first
    numbers, total = summed_rows([a._aux[0] for a in arrays], [a._values for a in arrays])
    return RowSparseNDArray._make(total, [numbers], first.shape, first.ctx)
