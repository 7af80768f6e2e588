"""What tests of several passes need."""
import pytest

from mxnet.ops import kernels
from mxnet.ops.kernels import convolution, kept


@pytest.fixture
def kernels_compute_all(monkeypatch):
    """Kernels compute the smallest convolutions, and Winograd F(4x4) wins each race."""
    if any(kernels.load(name) is None for name in ("convolution", "kept", "winograd")):
        pytest.skip("no C++ compiler")
    for module in (kept, convolution):
        monkeypatch.setattr(module, "_WORTHWHILE", 0)
    monkeypatch.setattr(kept, "_found", {})
    monkeypatch.setattr(kept.races, "winner", lambda key, runs: "Winograd F(4x4)" if "Winograd F(4x4)" in runs else "direct")
