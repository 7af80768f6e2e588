"""Captures work on a stand-in for torch.cuda."""
import pytest

from mxnet.graph.backends.cuda import graph_capture, scoring_layers
from simulated_captures import Cuda


@pytest.fixture
def cuda(monkeypatch):
    fake = Cuda()
    for module in (graph_capture, scoring_layers):
        monkeypatch.setattr(module, "_cuda", fake)
    monkeypatch.setattr(graph_capture, "_devices", {})
    return fake
