import numpy as np
import pytest
import torch

from mxnet import kernels
from mxnet.kernels.nn import kl_divergence
from mxnet.ops.quantization import calibration

needs_compiler = pytest.mark.skipif(kernels.load("nn/kl_divergence") is None, reason="no C++ compiler")


@needs_compiler
@pytest.mark.parametrize("n, bins", [(1001, 255), (400, 255), (21, 7), (20, 7), (8, 8), (3, 1), (1, 1)])
@pytest.mark.parametrize("kind", ["normal", "one-sided", "sparse", "zeros"])
def test_the_kernel_computes_what_numpy_does(n, bins, kind):
    random = np.random.RandomState(0)
    hist = np.histogram(random.normal(size=20000), n, (-4, 4))[0].astype("float32")
    if kind != "normal":
        hist *= {"one-sided": np.arange(n) > n // 2, "sparse": random.uniform(size=n) < 0.05, "zeros": np.zeros(n)}[kind]
    middle, half = n // 2, bins // 2
    expected = [calibration._divergence(hist, middle - i, min(middle + i + 1, n), bins) for i in range(half, middle + 1)]
    found = kl_divergence.of_all_thresholds(torch.from_numpy(hist), bins)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-6)


@needs_compiler
def test_a_histogram_that_is_too_coarse_is_left_alone():
    assert kl_divergence.of_all_thresholds(torch.ones(7), 8) is None and kl_divergence.of_all_thresholds(torch.ones(7), 0) is None
