"""The thresholds of MXNet 1.9.1 on the CPU."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import nd

C = nd.contrib


def test_calibrate_entropy():
    counts = [0, 1, 2, 3, 50, 400, 900, 1000, 880, 410, 40, 5, 2, 1, 0, 0, 0, 1, 0, 0, 1]
    threshold, loss = C.calibrate_entropy(nd.array(counts), nd.array(np.linspace(-4, 4, 22)), num_quantized_bins=7)
    np.testing.assert_allclose([threshold.asscalar(), loss.asscalar()], [3.2380953, 0.07057943], rtol=1e-5)
    with pytest.raises(mx.MXNetError, match="21 bins have 22 edges, `hist_edges` has 21"):
        C.calibrate_entropy(nd.array(counts), nd.array(np.linspace(-4, 4, 21)))
