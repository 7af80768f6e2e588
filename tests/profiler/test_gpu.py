import threading
import types

import pytest
import torch

from mxnet import nd, profiler
from mxnet.profiler import gpu
from mxnet.profiler.events import Events, Kind
from mxnet.profiler.trace import read

CPU, CUDA = torch.autograd.DeviceType.CPU, torch.autograd.DeviceType.CUDA
AHEAD = 1_000_000  # of Kineto's clock


def event(name, device, resource, start, duration, correlation=0, index=0):
    """What Kineto's events answer."""
    answers = {"name": name, "device_type": device, "device_index": index, "device_resource_id": resource, "start_ns": start + AHEAD,
               "duration_ns": duration, "correlation_id": correlation}
    return types.SimpleNamespace(**{key: lambda value=value: value for key, value in answers.items()})


SEEN = [event("aten::mm", CPU, 40, 90, 60, 5), event("cudaLaunchKernel", CPU, 40, 100, 10, 7), event("gemm", CUDA, 3, 130, 500, 7, index=1),
        event("cudaMemcpyAsync", CPU, 99, 110, 10, 8), event("Memcpy HtoD", CUDA, 4, 140, 20, 8), event("lonely", CUDA, 4, 200, 5)]


def test_kernels_and_the_calls_that_launched_them():
    found = list(gpu.rows(SEEN, AHEAD, {40: 1040}))
    assert found == [
        (Kind("X", "gemm", "gpu", "gpu/1"), 130, 500, 3), (Kind("s", "launch", "operator", counts=-1), 100, 7, 1040),
        (Kind("f", "launch", "operator", "gpu/1", counts=-1), 130, 7, 3),
        (Kind("X", "Memcpy HtoD", "gpu", "gpu/0"), 140, 20, 4), (Kind("X", "lonely", "gpu", "gpu/0"), 200, 5, 4)]


def test_the_clock_and_threads_are_those_of_torchs_profiler():
    """On a CPU: what Kineto tells of a call lies within the call, on the thread with the system's number."""
    import time
    profile = torch.autograd.profiler.profile(use_cpu=True, use_kineto=True)
    with profile:
        offset, start = time.time_ns() - time.perf_counter_ns(), time.perf_counter_ns()
        torch.ones(300, 300) @ torch.ones(300, 300)
        end = time.perf_counter_ns()
    product, = [e for e in profile.kineto_results.events() if e.name() == "aten::mm"]
    assert start - 1e6 < product.start_ns() - offset and product.start_ns() - offset + product.duration_ns() < end + 1e6
    assert product.device_resource_id() == threading.get_native_id() and product.device_type() == CPU


class Listening:
    """Stands in for torch's profiler."""

    ended = 0

    def __exit__(self, *args):
        Listening.ended += 1

    @property
    def kineto_results(self):
        launch = event("cudaLaunchKernel", CPU, threading.get_native_id(), 0, 10, 7)
        return types.SimpleNamespace(events=lambda: [launch, event("gemm", CUDA, 3, 5, 500, 7)])


@pytest.fixture
def listening(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu, "listen", Listening)
    Listening.ended = 0


def test_they_are_collected_while_it_listens_on(listening):
    events = Events()
    kernels = gpu.Kernels(events)
    kernels.collect()
    assert len(events) == 0
    kernels.watch(True)
    kernels.watch(True)
    kernels.collect()
    assert [e.kind.name for e in events.decoded(events.copy())] == ["gemm", "launch", "launch"] and Listening.ended == 1
    kernels.watch(False)
    kernels.watch(False)
    assert len(events) == 6 and Listening.ended == 2 and events.threads[3] == "stream 3"


def test_only_the_thread_that_began_can_collect(listening):
    events = Events()
    kernels = gpu.Kernels(events)
    kernels.watch(True)
    for work in (kernels.collect, lambda: kernels.watch(False)):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(10)
    assert [e.kind.name for e in events.decoded(events.copy())] == [gpu._LOST] and Listening.ended == 0


def test_a_profile_has_kernels_and_lines_from_their_launch(listening, monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *args: None)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    from mxnet.profiler import ranges
    monkeypatch.setattr(ranges, "tools", lambda: [])
    profiler.set_config(filename=str(tmp_path / "profile.json"), profile_all=True, aggregate_stats=True, profile_memory=False)
    profiler.set_state("run")
    nd.exp(nd.ones((2,)))
    profiler.dump()
    trace = read(str(tmp_path / "profile.json"))
    kernel, = [e for e in trace if e["name"] == "gemm"]
    start, end = [e for e in trace if e["name"] == "launch"]
    operator, = [e for e in trace if e["name"] == "exp"]
    assert kernel["dur"] == 0.5 and (kernel["pid"], kernel["tid"]) == (end["pid"], end["tid"]) and start["id"] == end["id"] == 7
    assert (start["ph"], end["ph"], end["bp"]) == ("s", "f", "e") and (start["pid"], start["tid"]) == (operator["pid"], operator["tid"])
    assert {e["args"]["name"] for e in trace if e["name"] == "process_name"} >= {"cpu/0", "gpu/0"}
    assert {e["args"]["name"] for e in trace if e["name"] == "thread_name"} >= {"MainThread", "stream 3"}


def test_a_program_that_uses_torchs_profiler_itself_is_told(monkeypatch):
    def busy():
        raise RuntimeError("profiler is already enabled")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu, "listen", busy)
    events = Events()
    gpu.Kernels(events).watch(True)
    assert [e.kind.name for e in events.decoded(events.copy())] == ["no kernels of GPUs here: torch's profiler is in use by the program itself"]


def test_without_a_gpu_nobody_listens(monkeypatch):
    monkeypatch.setattr(gpu, "listen", lambda: pytest.fail("listens"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    gpu.Kernels(Events()).watch(True)
