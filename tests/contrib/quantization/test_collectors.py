"""Ranges out of what layers return; thresholds are those of MXNet 1.9.1."""
import numpy as np
import pytest

from mxnet import nd
from mxnet.contrib.quantization import collectors


def test_least_and_largest():
    collector = collectors._LayerOutputMinMaxCollector(include_layer={"a"})
    collector.collect("a", nd.array([1, 2]))
    collector.collect("a", nd.array([-3, 1], dtype="float64"))
    collector.collect("b", nd.array([7]))
    assert collector.min_max_dict == {"a": (-3, 2)}


def test_histograms_grow():
    """As with MXNet: bins of the same width are added on both sides."""
    collector = collectors._LayerHistogramCollector(num_bins=5)
    collector.collect("a", nd.array([-1, -.5, 0, .1, 1]))
    counts, edges, *rest = collector.hist_dict["a"]
    assert counts.tolist() == [1, 1, 2, 0, 1] and edges.tolist() == pytest.approx([-1, -.6, -.2, .2, .6, 1]) and rest == [-1, 1, 1]
    collector.collect("a", nd.array([.5]))
    assert collector.hist_dict["a"][0].tolist() == [1, 1, 2, 1, 1]
    collector.collect("a", nd.array([1.5]))
    counts, edges, low, high, width = collector.hist_dict["a"]
    assert counts.tolist() == [0, 0, 1, 1, 2, 1, 1, 0, 1] and (low, high) == (-1, 1.5) and width == pytest.approx(1.8)


def test_zeros_alone():
    collector = collectors._LayerHistogramCollector(num_bins=5)
    collector.collect("a", nd.zeros(3))
    collector.collect("a", nd.array([2]))
    assert collector.hist_dict["a"][0].sum() == 4


@pytest.mark.parametrize("dtype, low", [("int8", -2), ("auto", 0), ("uint8", 0)])
def test_threshold(dtype, low):
    data = np.linspace(0, 2, 4000)
    counts, edges = np.histogram(data, bins=2001, range=(-2, 2))
    ranges = collectors._get_optimal_thresholds({"a": (counts, edges, 0, 2, 2)}, dtype)
    assert [float(np.asarray(end).reshape(-1)[0]) for end in ranges["a"]] == pytest.approx([low, 2], abs=1e-2)


def test_smoothing():
    assert collectors._smooth_distribution(np.array([0, 1, 3]), 1e-2) == pytest.approx([.01, .995, 2.995])
    with pytest.raises(ValueError, match="received zeros only"):
        collectors._smooth_distribution(np.zeros(2))
    with pytest.raises(ValueError, match="3 of them zeros, cannot give 0.5 to each"):
        collectors._smooth_distribution(np.array([0, 0, 0, 1]), .5)
