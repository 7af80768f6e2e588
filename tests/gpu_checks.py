"""What tests for GPUs share. Where torch sees none they are skipped, and say so."""
import numpy as np
import pytest
import torch

import mxnet as mx

GPU = mx.gpu(0)
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here; `make gpu` runs this where it does")


def close(found, expected, tolerance=1e-4):
    """Compare arrays by the largest difference over the largest expected value."""
    found, expected = (a.asnumpy().astype("float64") if isinstance(a, mx.nd.NDArray) else np.asarray(a, "float64") for a in (found, expected))
    assert found.shape == expected.shape
    scale = np.abs(expected).max() + 1e-9
    worst = np.abs(found - expected).max() / scale
    assert worst <= tolerance, f"the largest difference is {worst:.2g} of the largest value"
