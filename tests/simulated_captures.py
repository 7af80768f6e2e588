"""Captured CUDA graphs where there is no GPU: a stand-in for torch.cuda that keeps their rules. What is captured is not run, and a replay reads and
writes the same memory."""
import contextlib
import threading
import time
import types

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from mxnet.graph.backends.cuda import graph_capture, training_capture


class Recorder(TorchDispatchMode):
    """Keeps every operation, together with the memory (not the tensors, whose memory can be exchanged) that it works on."""

    def __init__(self, graph):
        super().__init__()
        self.graph = graph

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        for t in tree_leaves((args, kwargs or {})):  # whatever was there before the capture is put back: not all of torch's schemas tell of writes
            if isinstance(t, torch.Tensor) and t.untyped_storage().data_ptr() not in self.graph.seen:
                self.graph.seen[t.untyped_storage().data_ptr()] = t.data, t.detach().clone()
        out = func(*args, **(kwargs or {}))
        held = tree_map_only(torch.Tensor, torch.Tensor.detach, (args, kwargs or {}, out))
        self.graph.steps.append((func, *held))
        return out


def made(args, out):
    """The results that lie in memory of their own."""
    known = {t.untyped_storage().data_ptr() for t in tree_leaves(args) if isinstance(t, torch.Tensor)}
    return [t for t in tree_leaves(out) if isinstance(t, torch.Tensor) and t.untyped_storage().data_ptr() not in known]


class Graph:
    def __init__(self):
        self.steps, self.seen, self.replays, self.generators = [], {}, 0, []

    def replay(self):
        assert self.steps, "replayed before it was captured"
        self.replays += 1
        with torch.no_grad():
            for func, args, kwargs, out in self.steps:
                fresh = func(*args, **kwargs)
                time.sleep(0)
                for target, value in zip(tree_leaves(out), tree_leaves(fresh)):
                    if any(target is t for t in made((args, kwargs), out)):
                        target.copy_(value)

    def register_generator_state(self, generator):
        self.generators.append(generator)

    def forget(self):
        for t, value in self.seen.values():
            if not torch.equal(t, value):
                t.copy_(value)
        for _, args, kwargs, out in self.steps:
            for t in made((args, kwargs), out):
                t.fill_(torch.nan if t.is_floating_point() else 0)  # what is captured next may take it for indices


def installed(monkeypatch, *modules):
    """Replace torch.cuda in the captures of graphs, and in `modules`, and forget the devices' pools of memory; return the replacement."""
    fake = Cuda()
    for module in (graph_capture, *modules):
        monkeypatch.setattr(module, "cuda", fake)
    monkeypatch.setattr(graph_capture, "_devices", {})
    monkeypatch.setattr(training_capture, "_levels", {})
    return fake


class Cuda:
    """The part of torch.cuda that captures use, on the CPU; `log` tells in which order it was used."""

    def __init__(self):
        self.log, self.graphs, self.broken, self.outer, self.pools = [], [], None, False, 0
        self._now = threading.local()
        self.main, self._names = self._stream("main"), iter(["side", "another", "a third", "a fourth", "a fifth"])

    def _stream(self, name):
        stream = types.SimpleNamespace(name=name)
        stream.wait_stream = lambda other: self.log.append(f"{name} waits for {other.name}")
        stream.wait_event = lambda event: self.log.append(f"{name} waits for {event.recorded or 'nothing'}")
        return stream

    def Stream(self):
        return self._stream(next(self._names))

    def Event(self):
        event = types.SimpleNamespace(recorded=None, synchronize=lambda: self.log.append(f"the host waits for {event.recorded}"))

        def record(stream):
            event.recorded = f"a run on {stream.name}"
        event.record = record
        return event

    def graph_pool_handle(self):
        self.pools += 1
        return self.pools

    def CUDAGraph(self):
        self.graphs.append(Graph())
        return self.graphs[-1]

    def current_stream(self, device=None):
        return getattr(self._now, "stream", self.main)

    def is_current_stream_capturing(self):
        return self.outer

    @contextlib.contextmanager
    def device(self, device):
        assert device.type == "cuda"
        yield

    @contextlib.contextmanager
    def stream(self, stream):
        before, self._now.stream = self.current_stream(), stream
        try:
            yield
        finally:
            self._now.stream = before

    @contextlib.contextmanager
    def graph(self, graph, stream, capture_error_mode, pool=None):
        assert capture_error_mode == "thread_local"
        graph.pool = pool
        self._now.stream = stream  # and like torch's, it is not put back if the capture cannot be ended
        self.log.append(f"capture on {stream.name}")
        try:
            with Recorder(graph):
                yield
        except Exception:
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture") from None
        graph.forget()
        if self.broken:
            raise RuntimeError(self.broken)
