"""How many values lie in each of equal bins."""
from ..runtime.contract import Kernel

# Fewer values are counted before a kernel would have been called.
_WORTHWHILE = 1 << 13
_count = Kernel("elementwise/histogram", "count_{T}", {"values": "T (n)", "edges": "T (bins + 1)"}, {"counts": "int64 (bins) filled 0"},
                integers=("bins",),
                demands=("bins >= 1",), sizes=("n", "bins"), numbers="dd")


def in_equal_bins(values, edges, low, high):
    """The counts (bins,), int64, of `values` (n,) between `low` and `high`; `edges` (bins + 1,) are in the values' type. None without a kernel."""
    bins = len(edges) - 1
    if values.numel() < max(_WORTHWHILE, bins):
        return None
    plan = _count.plan((values, edges), (bins,))
    return None if plan is None else plan((values, edges), (low, high))[0]
