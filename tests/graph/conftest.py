"""What tests of several passes need."""
import pytest

from kernel_limits import forget_choices, used_from
from mxnet import kernels
from mxnet.kernels.conv import convolution, prepacked_conv


@pytest.fixture
def kernels_compute_all(monkeypatch):
    """Kernels compute the smallest convolutions, and Winograd F(4x4) wins each race."""
    if any(kernels.load(name) is None for name in ("conv/convolution", "conv/prepacked_conv", "conv/winograd")):
        pytest.skip("no C++ compiler")
    used_from(monkeypatch, 0, prepacked_conv, convolution)
    forget_choices(monkeypatch, prepacked_conv)
    monkeypatch.setattr(prepacked_conv.autotuner, "fastest", lambda key, runs: "Winograd F(4x4)" if "Winograd F(4x4)" in runs else "direct")
