"""Captures work on a stand-in for torch.cuda."""
import pytest

from mxnet.graph.backends.cuda import fused_convolutions, graph_capture
from simulated_captures import Cuda


@pytest.fixture
def cuda(monkeypatch):
    fake = Cuda()
    for module in (graph_capture, fused_convolutions):
        monkeypatch.setattr(module, "_cuda", fake)
    monkeypatch.setattr(graph_capture, "_devices", {})
    return fake
