import pytest
import torch

import mxnet as mx
from mxnet.graph import GraphRunner, backends, inductor


@pytest.fixture
def eager_compiler(monkeypatch):
    """torch.compile's front end, without its C++ compiler, which takes a while."""
    compiled, original = [], torch.compile
    monkeypatch.setattr(torch, "compile", lambda module, **options: compiled.append(options) or original(module, backend="aot_eager", **{
        k: v for k, v in options.items() if k != "mode"}))
    return compiled


def test_it_trains_and_scores(eager_compiler):
    out = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="fc"), mx.sym.var("label"))
    results = []
    for backend in ("inductor", "native"):
        inputs = [torch.linspace(-1, 1, 8).reshape(2, 4), torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_(),
                  torch.zeros(3, requires_grad=True), torch.tensor([0.0, 2.0])]
        y, = GraphRunner(out, backend=backend)(inputs, is_train=True)
        y.backward(torch.ones_like(y))
        results.append((y.detach(), inputs[1].grad, inputs[2].grad))
    assert len(eager_compiler) == 1 and eager_compiler[0]["mode"] is None
    for a, b in zip(*results):
        torch.testing.assert_close(a, b)


def test_options(monkeypatch):
    with pytest.raises(mx.MXNetError, match="`mode` must be one of default, reduce-overhead.*received 'fast'"):
        GraphRunner(mx.sym.var("x") + 1, backend="inductor", options={"mode": "fast"})([torch.ones(1)])
    monkeypatch.setattr(inductor.Inductor, "available", lambda self: False)
    with pytest.raises(backends.Unavailable, match="needs a C"):
        GraphRunner(mx.sym.var("x") + 1, backend="inductor")([torch.ones(1)])
