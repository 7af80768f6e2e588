"""Captures work on a stand-in for torch.cuda."""
import pytest

from mxnet.graph.backends.cuda import graph_capture, scoring_layers
from mxnet.kernels.nn import scoring_on_gpu
from simulated_captures import Cuda


@pytest.fixture(autouse=True)
def without_triton(monkeypatch):
    """What is rewritten is the same on all machines."""
    monkeypatch.setattr(scoring_on_gpu, "available", lambda device: False)


@pytest.fixture
def cuda(monkeypatch):
    fake = Cuda()
    for module in (graph_capture, scoring_layers):
        monkeypatch.setattr(module, "cuda", fake)
    monkeypatch.setattr(graph_capture, "_devices", {})
    return fake
