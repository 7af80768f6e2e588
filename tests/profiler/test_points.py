import pytest
import torch

import mxnet as mx
from mxnet import gluon, nd, profiler
from mxnet.io import NDArrayIter, PrefetchingIter
from mxnet.profiler import points
from mxnet.profiler.recorder import recorder


@pytest.fixture
def names(tmp_path):
    """Runs a function with the profiler on; the names of the intervals by category."""
    def run(function):
        profiler.set_config(filename=str(tmp_path / "p.json"), profile_memory=False)
        recorder.events.take()
        profiler.set_state("run")
        try:
            function()
        finally:
            profiler.set_state("stop")
        found = {}
        for event in recorder.events.decoded(recorder.events.take()):
            found.setdefault(event.kind.category, []).append(event.kind.name)
        return found

    return run


def attributes():
    return {(point.owner, point.attribute): point.owner.__dict__.get(point.attribute) for point in points._found()}


def test_nothing_is_left_in_front_of_the_calls(names):
    before = attributes()
    names(lambda: None)
    assert attributes() == before and all(v is not None for (o, a), v in before.items() if a in ("asnumpy", "step", "_batch"))


def test_what_was_taken_while_it_ran_tells_nothing_later(names):
    taken = []
    names(lambda: taken.append(nd.NDArray.asnumpy))
    assert taken[0](nd.ones((2,))).tolist() == [1, 1] and len(recorder.events) == 0


def test_assignments_have_the_names_of_their_operators(names):
    def program():
        x[:] = 2
        x[1] = 3
        x[:] = y
        x[0:1] = y[0:1]
        y.copyto(x)
        x.copy()

    x, y = nd.ones((2, 2)), nd.zeros((2, 2))
    assert names(program)["operator"] == ["_full", "_slice_assign_scalar", "CopyCPU2CPU", "_slice_assign", "CopyCPU2CPU", "CopyCPU2CPU"]


@pytest.mark.parametrize("optimizer, arguments, dtype, name", [
    ("sgd", {}, "float32", "multi_sgd_update"),
    ("sgd", {"momentum": 0.9}, "float32", "multi_sgd_mom_update"),
    ("sgd", {"momentum": 0.9, "multi_precision": True}, "float16", "multi_mp_sgd_mom_update"),
    ("nag", {"momentum": 0.9}, "float32", "nag_mom_update"),
    ("adam", {}, "float32", "adam_update"), ("rmsprop", {}, "float32", "rmsprop_update"),
    ("rmsprop", {"centered": True}, "float32", "rmspropalex_update"),
    ("signum", {}, "float32", "signum_update"), ("ftrl", {}, "float32", "ftrl_update"), ("ftml", {}, "float32", "ftml_update"),
    ("adadelta", {}, "float32", "adadelta_update"), ("lamb", {}, "float32", "lamb_update")])
def test_updates_have_the_names_of_their_operators_and_count_once(names, optimizer, arguments, dtype, name):
    updater = mx.optimizer.get_updater(mx.optimizer.create(optimizer, **arguments))
    weight, gradient = nd.ones((3,), dtype=dtype), nd.ones((3,), dtype=dtype)
    updater(0, gradient, weight)
    assert [n for n in names(lambda: updater(0, gradient, weight))["operator"] if "update" in n] == [name]


def test_several_weights_at_once(names):
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9))
    weights, gradients = [nd.ones((3,))] * 2, [nd.ones((3,))] * 2
    assert [n for n in names(lambda: updater([0, 1], gradients, weights))["operator"] if "update" in n] == ["multi_sgd_mom_update"]


def test_stores(names):
    store = mx.kv.create("local")
    store.init(3, nd.ones((2,)))

    def program():
        store.push(3, [nd.ones((2,)), nd.ones((2,))])
        store.pull(3, out=out)
        store.pushpull(3, [nd.ones((2,))] * 2, out=out)

    out = nd.zeros((2,))
    found = names(program)
    assert found["MXNET_C_API"] == ["MXKVStorePush", "MXKVStorePull", "MXKVStorePushPull"]
    assert found["operator"].count("ElementwiseSum") == 2 and out.asnumpy().tolist() == [2, 2]


def test_iterators_wait_and_work(names):
    def program():
        for iterator in (NDArrayIter(nd.ones((4, 2)), batch_size=2), PrefetchingIter(NDArrayIter(nd.ones((8, 2)), batch_size=2))):
            while True:
                try:
                    iterator.next()
                except StopIteration:
                    break

    found = names(program)["io"]
    assert found.count("NDArrayIter.next") >= 3 and found.count("PrefetchingIter.next") == 5
    assert "waiting for data" in found and "making a batch" in found


def test_threads_of_a_loader_tell_of_their_work(names):
    loader = gluon.data.DataLoader(gluon.data.SimpleDataset(list(range(6))), batch_size=2, num_workers=1, thread_pool=True)
    assert names(lambda: list(loader))["io"].count("making a batch") == 3


def test_a_batch_that_was_ordered_while_it_ran_comes_as_it_is_later(names):
    loader = gluon.data.DataLoader(gluon.data.SimpleDataset(list(range(6))), batch_size=2, num_workers=1)
    taken = []
    names(lambda: taken.append(iter(loader)) or next(taken[0]))
    assert [b.asnumpy().tolist() for b in taken[0]] == [[2, 3], [4, 5]]


def test_layers_hold_their_layers(names):
    net = gluon.nn.HybridSequential(prefix="n_")
    with net.name_scope():
        net.add(gluon.nn.Dense(2, in_units=2))
    net.initialize()
    assert names(lambda: net(nd.ones((1, 2))))["layer"] == ["n_dense0", "n"]


def test_waits(names):
    x = nd.ones((2,))
    assert torch.cuda.is_available() or names(lambda: (x.wait_to_read(), nd.waitall())) == {
        "operator": ["WaitForVar"], "MXNET_C_API": ["MXNDArrayWaitToRead", "MXNDArrayWaitAll"]}
