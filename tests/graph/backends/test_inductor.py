import sys
import types

import pytest
import torch

import mxnet as mx
from mxnet.graph import GraphRunner
from mxnet.graph.backends import inductor, registry
from mxnet.ndarray import dispatch


@pytest.fixture
def eager_compiler(monkeypatch):
    """torch.compile's front end, without its C++ compiler, which takes a while."""
    compiled, original = [], torch.compile
    monkeypatch.setattr(torch, "compile", lambda module, **options: compiled.append(options) or original(module, backend="aot_eager", **{
        k: v for k, v in options.items() if k != "options"}))
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
    assert len(eager_compiler) == 1 and eager_compiler[0]["options"] == {"cpp.enable_kernel_profile": sys.platform == "linux"}
    for a, b in zip(*results):
        torch.testing.assert_close(a, b)


def test_options(monkeypatch):
    with pytest.raises(mx.MXNetError, match="`mode` must be one of default, reduce-overhead.*received 'fast'"):
        GraphRunner(mx.sym.var("x") + 1, backend="inductor", options={"mode": "fast"})([torch.ones(1)])
    monkeypatch.setattr(inductor.Inductor, "available", lambda self: False)
    with pytest.raises(registry.Unavailable, match="needs a C"):
        GraphRunner(mx.sym.var("x") + 1, backend="inductor")([torch.ones(1)])


def recorded(*rows):
    """Events as torch records them: "+name" begins one, "-" ends it; a microsecond lies between two of them."""
    def event(number, row):
        return types.SimpleNamespace(kind=lambda: {"+": "push", "-": "pop"}.get(row[0], "mark"), name=lambda: row[1:], at=number,
                                     cpu_elapsed_us=lambda other: float(other.at - number))

    return [event(number, row) for number, row in enumerate(rows)]


def test_kernels_are_told_once_with_their_times():
    thread = recorded("!start", "+Torch-Compiled Region: 0/0", "+aten::mm", "+aten::resolve_conj", "-", "-",
                      "+graph_0_cpp_fused_add_0", "-", "-", "!end")
    found = inductor.kernels([thread, recorded("+graph_1_cpp_fused_0", "-"), recorded("-")])
    assert [(c.name, ns) for c, ns in found] == [("aten::mm", 3000), ("graph_0_cpp_fused_add_0", 1000), ("graph_1_cpp_fused_0", 1000)]


def test_an_observed_graph_tells_of_its_kernels(eager_compiler, monkeypatch):
    runner, data = GraphRunner(mx.sym.dot(mx.sym.var("x"), mx.sym.var("y")), backend="inductor"), [torch.ones(20, 20)] * 2
    told = []
    monkeypatch.setattr(dispatch, "graph_observer", lambda call, start, end, inputs, result, inside=(): told.append((call, end - start, inside)))
    for _ in range(3):
        assert runner(data)[0].sum() == 20 ** 3
    wholes = [(call, duration, inside) for call, duration, inside in told if call.graph]
    assert {call.name for call, *_ in wholes} == {"inductor"} and wholes[0][0].note == "compiles in its first call"
    call, duration, inside = wholes[-1]
    assert "aten::mm" in [c.name for c, _ in inside] and 0 < sum(ns for _, ns in inside) <= duration
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        assert runner(data)[0].sum() == 20 ** 3
    assert told[-1][2] == () and "torch's profiler" in told[-1][0].note


def test_observed_graphs_lie_within_ranges(eager_compiler, monkeypatch):
    runner, names = GraphRunner(mx.sym.var("x") + 1, backend="inductor"), []
    monkeypatch.setattr(dispatch, "graph_observer", lambda *args: None)
    monkeypatch.setattr(dispatch, "enclose", lambda name, function, args, kwargs: names.append(name) or function(*args, **kwargs))
    assert runner([torch.zeros(2)])[0].tolist() == [1, 1] and names[-1] == "inductor"
