"""Histograms with bins of equal width."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..runtime.contract import Kernel

if TYPE_CHECKING:
    import torch

# Values below which torch is done before a kernel would have been called.
_WORTHWHILE = 1 << 13
_count = Kernel("elementwise/histogram", "count_{T}", {"values": "T (n)", "edges": "T (bins + 1)"}, {"counts": "int64 (bins) filled 0"},
                integers=("bins",),
                preconditions=("bins >= 1",), sizes=("n", "bins"), numbers="dd")


def in_equal_bins(values: torch.Tensor, edges: torch.Tensor, low: float, high: float) -> torch.Tensor | None:
    """Count `values` (n,) between `low` and `high` in int64 bins (bins,); `edges` (bins + 1,) have the values' type. Return None without a kernel."""
    bins = len(edges) - 1
    if values.numel() < max(_WORTHWHILE, bins):
        return None
    plan = _count.plan((values, edges), (bins,))
    return None if plan is None else plan((values, edges), (low, high))[0]
