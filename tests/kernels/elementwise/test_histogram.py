import numpy as np
import pytest
import torch

import mxnet as mx
from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.elementwise import histogram

needs_compiler = pytest.mark.skipif(kernels.load("elementwise/histogram") is None, reason="no C++ compiler")


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bins, limits", [(7, (0.1, 0.7)), (100, (0, 1)), (1, (0, 0)), (333, (0.5, 0.6))])
def test_the_kernel_counts_what_torch_does(dtype, bins, limits, monkeypatch, without_kernels):
    values = np.random.RandomState(0).uniform(-0.1, 1.1, 5000).astype(dtype)
    values[:50] = np.linspace(*limits, 50)
    values[50:53] = np.nan, np.inf, -np.inf
    used_from(monkeypatch, 0, histogram)
    found = mx.nd.histogram(mx.nd.array(values, dtype=dtype), bins=bins, range=limits)[0].asnumpy().tolist()
    with without_kernels():
        assert mx.nd.histogram(mx.nd.array(values, dtype=dtype), bins=bins, range=limits)[0].asnumpy().tolist() == found
    assert sum(found) > 0


@needs_compiler
def test_more_bins_than_values_are_left_to_torch(monkeypatch):
    used_from(monkeypatch, 0, histogram)
    edges = torch.linspace(0, 1, 11)
    assert histogram.in_equal_bins(torch.rand(9), edges, 0, 1) is None
    assert histogram.in_equal_bins(torch.full((10,), 0.25), edges, 0, 1).tolist() == [0, 0, 10, 0, 0, 0, 0, 0, 0, 0]
