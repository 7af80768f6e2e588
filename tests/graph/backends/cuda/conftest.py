"""Captures work on a stand-in for torch.cuda."""
import pytest

from mxnet.graph.backends.cuda import scoring_layers
from mxnet.kernels.nn import scoring_on_gpu
from simulated_captures import installed


@pytest.fixture(autouse=True)
def without_triton(monkeypatch):
    """What is rewritten is the same on all machines."""
    monkeypatch.setattr(scoring_on_gpu, "available", lambda device: False)


@pytest.fixture
def cuda(monkeypatch):
    return installed(monkeypatch, scoring_layers)
