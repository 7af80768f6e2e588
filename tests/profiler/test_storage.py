import gc

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

import mxnet as mx
from mxnet import autograd, gluon, kernels, nd, profiler
from mxnet.profiler import storage
from mxnet.profiler.recorder import recorder

CPU = torch.device("cpu")
needs_heap = pytest.mark.skipif(not kernels.own_heap(), reason="needs glibc and a C++ compiler")


@pytest.fixture
def counted():
    storage.watch(True)
    yield
    storage.watch(False)


@needs_heap
def test_large_and_small_tensors_are_counted(counted):
    place, before = storage.used(CPU)
    large = torch.empty(1 << 20)
    small = [torch.empty(100) for _ in range(50)]
    between = storage.used(CPU)[1] - before
    assert place == "cpu/0" and (4 << 20) + 50 * 400 <= between <= (4 << 20) + 50 * 800 + 64
    del large, small
    assert storage.used(CPU)[1] - before < 10_000
    assert storage.peak(CPU) >= before + between


@needs_heap
def test_what_was_there_before_is_counted_too():
    kept = [torch.empty(1000) for _ in range(1000)]
    storage.watch(True)
    try:
        before = storage.used(CPU)[1]
        assert before >= 4_000_000
        del kept
        gc.collect()
        assert before - storage.used(CPU)[1] >= 3_900_000
    finally:
        storage.watch(False)


def test_without_the_heap_it_is_the_process_and_says_so(monkeypatch):
    monkeypatch.setattr(storage, "_heap", None)
    place, used = storage.used(CPU)
    assert place == "cpu/0 (resident)" and used > 10_000_000


def test_uses():
    before = storage.uses().get("cpu/0", {})
    net = gluon.nn.Dense(500, in_units=1000)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam")
    with autograd.record():
        loss = net(nd.ones((2, 1000))).sum()
    loss.backward()
    trainer.step(2)
    found = storage.uses()["cpu/0"]
    size = 4 * (500 * 1000 + 500)
    grown = {use: found[use] - before.get(use, 0) for use in ("parameter", "gradient", "optimizer state")}
    assert grown == {"parameter": size, "gradient": size, "optimizer state": 2 * size}
    executor = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=100, no_bias=True, name="f").simple_bind(mx.cpu(), x=(2, 1000))
    assert storage.uses()["cpu/0"]["parameter"] - found["parameter"] == sum(4 * a.size for a in executor.arg_arrays)


def test_a_profile_ends_with_the_uses(tmp_path):
    net = gluon.nn.Dense(5, in_units=10)
    net.initialize()
    net(nd.ones((2, 10)))
    profiler.set_config(filename=str(tmp_path / "p.json"), profile_all=True, aggregate_stats=True)
    profiler.dumps(reset=True)
    profiler.set_state("run")
    net(nd.ones((2, 10)))
    profiler.set_state("stop")
    names = {e.kind.name for e in recorder.events.decoded(recorder.events.take()) if e.kind.category == "Device Storage"}
    assert {"Memory: cpu/0 (parameter)", "Memory: cpu/0 (gradient)"} <= names
    assert not kernels.own_heap() or {"Memory: cpu/0", "Memory: cpu/0 (peak)", "Memory: cpu/0 (activation)"} <= names


def test_stand_ins_of_compilers_have_no_memory():
    with FakeTensorMode():
        fake = torch.ones(3)
    assert storage.live() and type(fake) is not torch.Tensor


def test_uses_of_sparse_arrays_are_what_they_store_and_none_is_made_dense(monkeypatch):
    gc.collect()
    monkeypatch.setattr(mx.nd.sparse.RowSparseNDArray, "_dense", lambda self: pytest.fail("a sparse array was made dense"))
    before = storage.uses().get("cpu/0", {}).get("parameter", 0)
    weight = gluon.Parameter("w", shape=(100, 8), stype="row_sparse", grad_stype="row_sparse")
    weight._data = [mx.nd.sparse.row_sparse_array((np.ones((3, 8)), [0, 5, 9]), shape=(100, 8))]
    assert storage.uses()["cpu/0"]["parameter"] - before == 8 * 3 * 8 + 8 * 3
