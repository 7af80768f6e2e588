"""Calibration: the choice of a quantized array's range from a histogram, by Kullback-Leibler divergence."""
from typing import Optional

import numpy as np
import torch

from ...base import MXNetError
from ...kernels.nn import kl_divergence
from ..registry import op

_LEAST = np.float32(1e-4)


def _smoothed(distribution: np.ndarray, eps: np.float32 = _LEAST) -> Optional[np.ndarray]:
    """Zeros become `eps`, at the cost of the others; None where that is impossible."""
    zero = distribution == 0
    zeros = int(zero.sum())
    if zeros == len(distribution):
        return None
    taken = eps * np.float32(zeros) / np.float32(len(distribution) - zeros)
    return None if taken >= 1 else (distribution + np.where(zero, eps, -taken)).astype(np.float32)


def _divergence(hist: np.ndarray, first: int, last: int, bins: int) -> float:
    """Return the Kullback-Leibler divergence of a histogram clipped to its bins [first, last) from that quantized to `bins` levels."""
    inner = hist[first:last].astype(np.int64)
    inner[0] = 0
    p = inner.astype(np.float32)
    p[0], p[-1] = hist[:first + 1].sum(), p[-1] + hist[last:].sum()
    # Each level takes the same number of bins; the last one takes what remains.
    width = len(inner) // bins
    level = np.minimum(np.arange(len(inner)) // width, bins - 1)
    filled = np.bincount(level, inner != 0, bins)
    mean = np.bincount(level, inner, bins) / np.maximum(filled, 1)
    q = np.where((p != 0) & (filled[level] > 0), mean[level], 0).astype(np.float32)
    smooth_p, smooth_q = _smoothed(p), _smoothed(q)
    if smooth_p is None or smooth_q is None:
        return np.inf
    p, q = smooth_p / smooth_p.sum(), smooth_q / smooth_q.sum()
    return float((p * np.log(p / q)).sum())


@op("_contrib_calibrate_entropy", num_outputs=2, output_names=("threshold", "divergence"), no_gradient=True, amp=None)
def calibrate_entropy(hist: torch.Tensor, hist_edges: torch.Tensor, *, num_quantized_bins: int = 255) -> tuple[torch.Tensor, torch.Tensor]:
    """The threshold at which to clip values so that quantizing the rest loses least information, and that loss.

    `hist` (n,) is a histogram around 0, `hist_edges` (n + 1,) the edges of its bins.

    Example
    -------
    >>> counts, edges = mx.nd.array([0, 1, 9, 20, 9, 1, 0, 0, 1]), mx.nd.array([-9, -7, -5, -3, -1, 1, 3, 5, 7, 9])
    >>> threshold, loss = mx.nd.contrib.calibrate_entropy(counts, edges, num_quantized_bins=3)
    >>> threshold.asnumpy()
    array([7.], dtype=float32)
    """
    if hist.device.type == "meta":
        return hist.new_empty(1), hist.new_empty(1)
    n = hist.numel()
    if hist_edges.numel() != n + 1:
        raise MXNetError(f"_contrib_calibrate_entropy: {n} bins have {n + 1} edges, `hist_edges` has {hist_edges.numel()}")
    counts, edges = hist.cpu().numpy(), hist_edges.cpu().numpy()
    middle, half = n // 2, num_quantized_bins // 2
    if half > middle:
        raise MXNetError(f"_contrib_calibrate_entropy: a histogram of {n} bins is too coarse for {num_quantized_bins} levels")
    divergences = kl_divergence.of_all_thresholds(hist.cpu().contiguous(), num_quantized_bins)
    losses = divergences.tolist() if divergences is not None else [_divergence(counts, middle - i, min(middle + i + 1, n), num_quantized_bins)
                                                                   for i in range(half, middle + 1)]
    best = int(np.argmin(losses))
    return hist.new_tensor([edges[min(middle + half + best + 1, n)]]), hist.new_tensor([losses[best]])


@calibrate_entropy.shape_rule
def _entropy_shapes(in_shapes: list, out_shapes: list, **attributes: int) -> tuple[list, list]:
    return in_shapes, [(1,), (1,)]
