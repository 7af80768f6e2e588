"""Histograms: the counts of values between edges."""
from typing import Optional

import torch

from ..base import MXNetError
from ..kernels.elementwise import histogram as kernels
from .registry import op
from .schema import Floats
from .shapes import unify


@op("_histogram", complete_rule="shape", aliases=("_npi_histogram",), num_outputs=2,
    inputs_rule=lambda attributes: ("data", "bins") if attributes["bin_cnt"] is None else ("data",))
def histogram(data, bins=None, *, bin_cnt: Optional[int] = None, range: Optional[Floats] = None):
    """Count the values between neighbouring edges: (counts as int64, edges).

    Parameters
    ----------
    bins : 1-D array
        The edges, ascending; the last bin includes its upper one.
    bin_cnt, range : int, (float, float)
        Instead of `bins`: that many equal bins between the two limits.

    Raises
    ------
    MXNetError
        Unless either `bins` or both `bin_cnt` and `range` are given.

    Example
    -------
    >>> counts, edges = mx.nd.histogram(mx.nd.array([1, 2, 2, 5]), bins=2, range=(1, 5))
    >>> counts.asnumpy(), edges.asnumpy()
    (array([3, 1]), array([1., 3., 5.], dtype=float32))
    """
    if bins is not None and (bin_cnt is not None or range is not None):
        raise MXNetError("histogram: either `bins`, or `bin_cnt` and `range`, expected, received others")
    values = data.reshape(-1)
    if bins is not None:
        # Ranks by the inner edges only: below the second edge is bin 0, from the last but one on is the last bin.
        at = torch.bucketize(values, bins[1:-1].contiguous(), right=True)
        at.masked_fill_(((values >= bins[0]) & (values <= bins[-1])).logical_not_(), bins.shape[0] - 1)
        return _counts(at, bins.shape[0] - 1), bins.clone()
    if bin_cnt is None or range is None:
        raise MXNetError("histogram: either `bins`, or `bin_cnt` and `range`, expected, received others")
    if bin_cnt < 1:
        raise MXNetError(f"histogram: `bin_cnt` must be at least 1, received {bin_cnt}")
    low, high = range if range[0] != range[1] else (range[0] - 0.5, range[1] + 0.5)
    rank = torch.arange(bin_cnt + 1, dtype=torch.float64, device=data.device)
    edges = ((high * rank + low * (bin_cnt - rank)) / bin_cnt).to(data.dtype)  # an edge in the middle of -x and x is exactly 0
    counts = kernels.in_equal_bins(values, edges, low, high)
    if counts is None:  # in pieces that stay in a processor's cache
        counts = sum(_count_in_equal_bins(piece, bin_cnt, low, high, edges) for piece in (values.split(1 << 14) if values.is_cpu else (values,)))
    return counts, edges


def _counts(at, size):
    """Count each number below `size` in `at`; elements equal to `size` are ignored."""
    if at.is_cpu:
        return torch.bincount(at, minlength=size + 1)[:size]
    return at.new_zeros(size + 1).scatter_add_(0, at, torch.ones_like(at))[:size]  # unlike `bincount`, it needs no maximum of `at`


def _count_in_equal_bins(values, bin_cnt, low, high, edges):
    # The bin by its place between the limits, then one further where an edge, rounded to the type, lies on the other side (histogram.cc).
    wide = values.double()  # a limit is not rounded to the values' type: float32's 0.6 is above 0.6
    at = (wide - low).mul_(bin_cnt).div_(high - low).long().clamp_(0, bin_cnt - 1)
    below = (values < edges.index_select(0, at)).to(torch.int8)
    above = (values >= edges.index_select(0, at + 1)).to(torch.int8).mul_(at != bin_cnt - 1)
    at += above.sub_(below)
    at.masked_fill_(((wide >= low) & (wide <= high)).logical_not_().logical_or_(at < 0), bin_cnt)
    return _counts(at, bin_cnt)


@histogram.shape_rule
def _(in_shapes, out_shapes, *, bin_cnt, range):
    edges = (bin_cnt + 1,) if bin_cnt is not None else in_shapes[1]
    if in_shapes[0] is None or edges is None or len(edges) != 1 or 0 <= edges[0] < 2 or (bin_cnt is None) != (range is None):
        return in_shapes, out_shapes  # the operator's call raises the error
    counts = (edges[0] - 1 if edges[0] >= 0 else -1,)
    return in_shapes, [unify(out_shapes[0], counts), unify(out_shapes[1], edges)]


@histogram.dtype_rule
def _(in_types, out_types, **_):
    first = in_types[0] or out_types[1]
    return [first] * len(in_types), [torch.int64, first]
