"""Collectors of calibration statistics of a network's layers, and the resulting ranges."""
from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from ... import ndarray
from ...base import MXNetError
from ...context import cpu
from ...ndarray import NDArray
from ...ops import host_arrays

if TYPE_CHECKING:
    import logging

Histogram: TypeAlias = tuple[np.ndarray, np.ndarray, float, float, float]  # counts, edges, least and largest value, half the width
Range: TypeAlias = tuple[float, float]
NUM_BINS = 8001


def _numbers(values: Any) -> torch.Tensor:
    """Return the values of a layer, on the CPU."""
    return (values.as_torch() if isinstance(values, NDArray) else host_arrays.as_tensor(values)).detach().cpu()


class _LayerOutputMinMaxCollector:
    """The least and the largest value of each layer, in ``min_max_dict``.

    Parameters
    ----------
    quantized_dtype : str
    include_layer : collection of str, optional
        Names of the outputs that are observed; by default all.
    logger : logging.Logger, optional
    """

    def __init__(self, quantized_dtype: str = "int8", include_layer: Collection[str] | None = None, logger: logging.Logger | None = None):
        self.min_max_dict: dict[str, Range] = {}
        self.quantized_dtype, self.include_layer, self.logger = quantized_dtype, include_layer, logger

    def collect(self, name: str, arr: NDArray) -> None:
        """Take note of an output; a callback for ``Executor.set_monitor_callback``."""
        if self.include_layer is not None and name not in self.include_layer:
            return
        low, high = (end.item() for end in torch.aminmax(_numbers(arr)))
        before = self.min_max_dict.get(name, (low, high))
        # NumPy's, which propagate NaN.
        self.min_max_dict[name] = float(np.minimum(low, before[0])), float(np.maximum(high, before[1]))
        if self.logger:
            self.logger.debug("calibration: %s from %g to %g", name, *self.min_max_dict[name])


class _LayerHistogramCollector:
    """A histogram of the values of each layer, in ``hist_dict``.

    Parameters
    ----------
    num_bins : int
        An odd number: the bin in the middle is around 0.
    include_layer, logger
        As for `_LayerOutputMinMaxCollector`.
    """

    def __init__(self, num_bins: int = NUM_BINS, include_layer: Collection[str] | None = None, logger: logging.Logger | None = None):
        self.hist_dict: dict[str, Histogram] = {}
        self.num_bins, self.include_layer, self.logger = num_bins, include_layer, logger

    def collect(self, name: str, arr: NDArray) -> None:
        """Take note of an output; a callback for ``Executor.set_monitor_callback``."""
        if self.include_layer is not None and name not in self.include_layer:
            return
        values = _numbers(arr)
        low, high = (end.item() for end in torch.aminmax(values))
        width = max(abs(low), abs(high))
        if not np.isfinite(width):
            raise MXNetError(f"calibration: '{name}' has values from {low} to {high}: a histogram needs finite numbers; look for what overflows in "
                             "this layer for the calibration data, or exclude it")
        if name in self.hist_dict:
            self.hist_dict[name] = combine_histogram(self.hist_dict[name], values, low, high, width)
        else:
            self.hist_dict[name] = (*_histogram(values, self.num_bins, width), low, high, width)
        if self.logger:
            self.logger.debug("calibration: %s from %g to %g, a histogram of %d bins", name, low, high, len(self.hist_dict[name][0]))


def _histogram(values: Any, bins: int, width: float) -> tuple[np.ndarray, np.ndarray]:
    numbers = host_arrays.as_tensor(values) if not isinstance(values, torch.Tensor) else values
    numbers = numbers if numbers.is_floating_point() else numbers.float()
    width = width or 0.5  # all zeros
    return torch.histc(numbers, bins, -width, width).to(torch.int64).numpy(), np.linspace(-width, width, bins + 1)


def combine_histogram(old_hist: Histogram, arr: Any, new_min: float, new_max: float, new_th: float) -> Histogram:
    """Return a histogram with the values of one more array, which lie within ``new_min`` and ``new_max``, and within `new_th` of 0.

    If they reach beyond the histogram, it gets as many bins more on both sides, of the same width.

    Example
    -------
    >>> import numpy as np
    >>> counts, edges = np.histogram([-1, 0, 1], bins=4, range=(-1, 1))
    >>> more = mx.nd.array([0.5, 2])
    >>> counts, edges, low, high, width = mx.contrib.quantization.combine_histogram((counts, edges, -1, 1, 1), more, 0.5, 2, 2)
    >>> counts.tolist(), width
    ([0, 0, 0, 1, 0, 1, 2, 0, 0, 1], 2.5)
    """
    counts, edges, low, high, width = old_hist
    low, high = min(low, new_min), max(high, new_max)
    if new_th > width:
        step = 2 * width / len(counts) or 2 * new_th / len(counts)
        more = int((new_th - width) // step + 1)
        width += more * step
        added, edges = _histogram(arr, len(counts) + 2 * more, width)
        added[more:len(added) - more] += counts
        return added, edges, low, high, width
    return counts + _histogram(arr, len(counts), width)[0], edges, low, high, width


def _smooth_distribution(p: np.ndarray, eps: float = 0.0001) -> np.ndarray:
    """Return a distribution whose zeros become `eps`, at the cost of the other entries.

    Raises
    ------
    ValueError
        If it has nothing but zeros, or too many.
    """
    zeros = p == 0
    count = int(zeros.sum())
    if count == p.size:
        raise ValueError("a distribution has an entry above 0; received zeros only")
    taken = eps * count / (p.size - count)
    if taken >= 1:
        raise ValueError(f"a distribution of {p.size} entries, {count} of them zeros, cannot give {eps} to each of these")
    return np.where(zeros, np.float32(eps), p.astype(np.float32) - np.float32(taken))


def _get_optimal_threshold(hist_data: Histogram, quantized_dtype: str, num_quantized_bins: int = 255) -> tuple[float, float, Any, Any]:
    """Return a histogram's least and largest value, the threshold with the least information loss, and that loss (arrays of one element)."""
    counts, edges, low, high, _ = hist_data
    if low >= 0 and quantized_dtype in ("auto", "uint8"):
        num_quantized_bins = 2 * num_quantized_bins + 1  # only the upper half of the levels will be used
    threshold, divergence = ndarray.contrib.calibrate_entropy(
        ndarray.array(counts, ctx=cpu()), ndarray.array(edges, ctx=cpu()), num_quantized_bins=num_quantized_bins)
    return low, high, threshold.asnumpy(), divergence.asnumpy()


def _get_optimal_thresholds(hist_dict: dict[str, Histogram], quantized_dtype: str, num_quantized_bins: int = 255,
                            logger: logging.Logger | None = None) -> dict[str, Any]:
    """Return the range to quantize for each layer; remove the histograms from the dict to free their memory."""
    ranges: dict[str, Any] = {}
    for name in list(hist_dict):
        low, high, threshold, divergence = _get_optimal_threshold(hist_dict.pop(name), quantized_dtype, num_quantized_bins)
        ranges[name] = (0 if low >= 0 and quantized_dtype in ("auto", "uint8") else -threshold, threshold)
        if logger:
            logger.debug("calibration: %s from %g to %g, threshold %g, divergence %g", name, low, high, threshold[0], divergence[0])
    return ranges


def ranges_of(collector: Any, calib_mode: str, quantized_dtype: str, logger: logging.Logger | None) -> Mapping[str, Any]:
    """Return the ranges out of a collector that has seen data.

    Raises
    ------
    ValueError
        If the mode is unknown.
    MXNetError
        If the collector has seen nothing.
    """
    kinds = {"naive": "min_max_dict", "entropy": "hist_dict", "customize": "min_max_dict"}
    if calib_mode not in kinds:
        raise ValueError(f"unknown calibration mode {calib_mode}: expected `none`, `naive`, `entropy` or `customize`")
    seen = getattr(collector, kinds[calib_mode], None)
    if not seen:
        raise MXNetError(f"calibration: the collector has seen no layer (its `{kinds[calib_mode]}` is {'empty' if seen is not None else 'missing'}); "
                         "run the network on calibration data with the collector's `collect` as its monitor first")
    return _get_optimal_thresholds(seen, quantized_dtype, logger=logger) if calib_mode == "entropy" else seen
