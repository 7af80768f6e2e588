import pytest
import torch

import mxnet as mx
from mxnet import autograd, gluon, nd, profiler
from mxnet.ndarray import dispatch
from mxnet.profiler import ranges
from mxnet.profiler.recorder import recorder


class Listener:
    """Stands in for a tool: what it was told, and what was open then."""

    def __init__(self, overlaps):
        self.told, self.open, self.apart, self.overlaps = [], [], {}, overlaps

    def push(self, name):
        self.open.append(name)
        self.told.append("/".join(self.open))

    def pop(self):
        self.open.pop()

    def mark(self, name):
        self.told.append(f"! {name}")

    def start(self, name):
        self.apart[len(self.told)] = name
        self.told.append(f"+ {name}")
        return len(self.told) - 1

    def end(self, number):
        self.told.append(f"- {self.apart.pop(number)}")

    def tool(self):
        return ranges.Tool(self.push, self.pop, self.mark, *((self.start, self.end) if self.overlaps else ()))


@pytest.fixture
def listen(monkeypatch, tmp_path):
    def run(function, overlaps=True):
        listener = Listener(overlaps)
        monkeypatch.setattr(ranges, "tools", lambda: [listener.tool()])
        profiler.set_config(filename=str(tmp_path / "profile.json"), profile_all=True)
        profiler.set_state("run")
        try:
            function()
        finally:
            profiler.set_state("stop")
        assert not listener.open and not listener.apart
        return listener.told

    yield run
    profiler.set_state("stop")


def test_ranges_lie_around_calls(listen):
    net = gluon.nn.Dense(2, in_units=3, prefix="d_")
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    x = nd.ones((4, 3))

    def program():
        with autograd.record():
            y = net(x).sum()
        y.backward()
        trainer.step(4)
        nd.exp(x)

    program()
    told = listen(program)
    assert told[:3] == ["d", "d/FullyConnected", "sum"] and "MXAutogradBackwardEx" in told and told[-1] == "exp"
    assert "Trainer.step" in told and any(t.startswith("Trainer.step/") and t.endswith("multi_sgd_update") for t in told)
    assert dispatch.enclose is None and dispatch.run.__name__ == "run" and recorder.listening == []
    count = len(told)
    program()
    assert len(told) == count


def test_ranges_of_graphs_name_what_they_run(listen):
    net = gluon.nn.HybridSequential(prefix="n_")
    net.add(gluon.nn.Dense(2, in_units=3, prefix="a_"), gluon.nn.Activation("tanh"))
    net.initialize()
    net.hybridize(backend="native")
    x = nd.ones((4, 3))
    net(x)
    told = listen(lambda: net(x))
    assert told == ["n", "n/MXInvokeCachedOpEx", "n/MXInvokeCachedOpEx/FullyConnected", "n/MXInvokeCachedOpEx/Activation"]


def test_a_call_that_fails_ends_its_range(listen):
    def program():
        with pytest.raises(mx.MXNetError):
            nd.dot(nd.ones((2, 3)), nd.ones((2, 3)))

    assert listen(program) == ["_ones", "_ones", "dot"]


def objects():
    domain = profiler.Domain("d")
    task, frame, event = domain.new_task("task"), domain.new_frame("frame"), profiler.Event("event")
    task.start()
    frame.start()
    event.start()
    task.stop()  # while others go on
    event.stop()
    frame.stop()
    domain.new_marker("marker").mark()


def test_what_programs_mark_themselves(listen):
    assert listen(objects) == ["+ task", "+ frame", "+ event", "- task", "- event", "- frame", "! marker"]


def test_a_tool_with_nested_ranges_only_is_told_of_events(listen):
    assert listen(objects, overlaps=False) == ["event", "! marker"]


def test_a_span_that_starts_again_ends_its_range(listen):
    def program():
        event = profiler.Event("event")
        event.start()
        event.start()
        event.stop()

    assert listen(program) == ["+ event", "- event", "+ event", "- event"]


def test_who_listens(monkeypatch):
    for name in ("INTEL_LIBITTNOTIFY64", "INTEL_LIBITTNOTIFY32"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert ranges.tools() == [] and ranges.enclosing([]) is None
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    nvtx, = ranges.tools()
    assert nvtx.push is torch.cuda.nvtx.range_push and nvtx.start is torch.cuda.nvtx.range_start
    monkeypatch.setenv("INTEL_LIBITTNOTIFY64", "collector.so")
    monkeypatch.setattr(torch.profiler.itt, "is_available", lambda: True)
    assert [tool.start is None for tool in ranges.tools()] == [False, True]


@pytest.mark.skipif(not torch.profiler.itt.is_available(), reason="needs torch with ITT")
def test_itt_of_torch_is_called(listen, monkeypatch):
    monkeypatch.setenv("INTEL_LIBITTNOTIFY64", "")
    itt = torch.profiler.itt
    enclose = ranges.enclosing([ranges.Tool(itt.range_push, itt.range_pop, itt.mark)])
    itt.mark("here")
    assert enclose("sum", sum, ([1, 2],), {"start": 4}) == 7
