"""The store of one process. Literal numbers come from MXNet 1.9.1."""
import os

import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError

DEVICES = [mx.cpu(i) for i in range(3)]
TYPES = ["local", "local_update_cpu", "local_allreduce_cpu", "device", "local_allreduce_device"]


def ones(ctx=mx.cpu(), value=1.0):
    return mx.nd.full((2, 2), value, ctx=ctx)


def pulled(store, key, ctx=mx.cpu()):
    out = mx.nd.full((2, 2), -9, ctx=ctx)
    store.pull(key, out=out)
    return out.asnumpy().tolist()


def full(value):
    return [[value, value], [value, value]]


@pytest.mark.parametrize("kind", TYPES)
def test_values_of_all_devices_are_added_up(kind):
    store = mx.kv.create(kind)
    assert store.type == kind and store.rank == 0 and store.num_workers == 1 and store.is_capable("optimizer")
    store.init("a", ones())
    assert pulled(store, "a") == full(1)
    store.push("a", [ones(d, i + 1) for i, d in enumerate(DEVICES)])
    assert [pulled(store, "a", d) for d in DEVICES] == [full(6)] * 3
    store.push("a", ones(value=2))  # replaces, for want of an optimizer
    assert pulled(store, "a") == full(2)


def test_lists_of_keys_and_repeated_keys():
    store = mx.kv.create()
    store.init([3, 5], [ones(), ones(value=2)])
    store.push([3, 5, 3], [ones(), [ones(DEVICES[0]), ones(DEVICES[1])], ones(value=4)])
    outs = [mx.nd.empty((2, 2)), [mx.nd.empty((2, 2), d) for d in DEVICES]]
    store.pull([3, 5], out=outs)
    assert outs[0].asnumpy().tolist() == full(5) and [o.asnumpy().tolist() for o in outs[1]] == [full(2)] * 3


def test_a_pushed_array_may_change_afterwards():
    store = mx.kv.create()
    store.init(1, ones())
    value = ones(value=3)
    store.push(1, value)
    value[:] = 7
    assert pulled(store, 1) == full(3)
    out = ones()
    store.pull(1, out=out)
    out[:] = 5
    assert pulled(store, 1) == full(3)


@pytest.mark.parametrize("kind", ["local", "device"])
def test_pushpull_in_place_and_into_others(kind):
    store = mx.kv.create(kind)
    out = mx.nd.empty((2, 2))
    store.broadcast("w", ones(value=4), out=out)
    assert out.asnumpy().tolist() == full(4)
    values = [ones(d, i + 1) for i, d in enumerate(DEVICES)]
    targets = [mx.nd.empty((2, 2), d) for d in DEVICES]
    store.pushpull("w", values, out=targets)
    assert [t.asnumpy().tolist() for t in targets] == [full(6)] * 3 and values[1].asnumpy().tolist() == full(2)
    store.pushpull("w", values)
    assert [v.asnumpy().tolist() for v in values] == [full(6)] * 3
    assert [v.context for v in values] == DEVICES


@pytest.mark.parametrize("kind", ["local", "device"])
def test_the_optimizer_runs_in_the_store(kind, tmp_path):
    store = mx.kv.create(kind)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1, momentum=.5))
    store.init("x", mx.nd.ones((2,)))
    store.push("x", [mx.nd.ones((2,), d) for d in DEVICES[:2]])
    out = mx.nd.zeros((2,))
    store.pull("x", out=out)
    assert out.asnumpy().tolist() == [-1, -1]
    assert store._updater.states["x"].asnumpy().tolist() == [-2, -2]
    path = str(tmp_path / "states")
    store.save_optimizer_states(path)
    other = mx.kv.create(kind)
    other.set_optimizer(mx.optimizer.SGD(learning_rate=1, momentum=.5))
    other.load_optimizer_states(path)
    other.init("x", out)
    other.push("x", mx.nd.zeros((2,)))
    other.pull("x", out=out)
    assert out.asnumpy().tolist() == [-2, -2]
    store.save_optimizer_states(path, dump_optimizer=True)
    other.load_optimizer_states(path)
    assert other._updater.optimizer.momentum == .5


def test_saving_states_is_whole_or_not_at_all(tmp_path, monkeypatch):
    store = mx.kv.create()
    store.set_optimizer(mx.optimizer.SGD())
    path = tmp_path / "states"
    store.save_optimizer_states(str(path))
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(MXNetError, match="states: No space left on device"):
        store.save_optimizer_states(str(path))
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_custom_updaters_see_keys_as_they_are():
    for keys in ([3, 5], ["a", "b"]):
        store = mx.kv.create()
        seen = []

        def add(key, pushed, kept, seen=seen):
            seen.append(key)
            kept += 2 * pushed

        store._set_updater(add)
        store.init(keys, [ones(), ones()])
        store.push(keys, [[ones(d) for d in DEVICES]] * 2)
        assert pulled(store, keys[0]) == full(7) and seen == keys


def test_two_bit_compression_carries_the_error_over():
    store = mx.kv.create("device")
    store.set_gradient_compression({"type": "2bit", "threshold": .5})
    store.init("q", mx.nd.zeros((5,)))
    gradient = [mx.nd.array([.3, .6, -.7, -.1, 1.2], d) for d in DEVICES[:2]]
    out = mx.nd.zeros((5,))
    received = []
    for _ in range(3):
        store.push("q", gradient)
        store.pull("q", out=out)
        received.append(out.asnumpy().tolist())
    assert received == [[0, 1, -1, 0, 1], [1, 1, -1, 0, 1], [0, 1, -1, 0, 1]]


def test_row_sparse_values():
    store = mx.kv.create()
    store.init("e", mx.nd.array([[1, 2], [3, 4], [5, 6]]).tostype("row_sparse"))
    out = mx.nd.sparse.zeros("row_sparse", (3, 2))
    store.row_sparse_pull("e", out=out, row_ids=mx.nd.array([2, 0, 2]))
    assert out.indices.asnumpy().tolist() == [0, 2] and out.data.asnumpy().tolist() == [[1, 2], [5, 6]]
    outs = [mx.nd.sparse.zeros("row_sparse", (3, 2)) for _ in range(2)]
    store.row_sparse_pull("e", out=outs, row_ids=[mx.nd.array([1]), mx.nd.array([[0], [1]])])
    assert [o.indices.asnumpy().tolist() for o in outs] == [[1], [0, 1]]
    dense = mx.nd.zeros((3, 2))
    store.pull("e", out=dense)
    assert dense.asnumpy().tolist() == [[1, 2], [3, 4], [5, 6]]
    store.push("e", [mx.nd.array(rows).tostype("row_sparse") for rows in ([[0, 0], [1, 1], [0, 0]], [[0, 0], [1, 1], [2, 0]])])
    store.pull("e", out=out, ignore_sparse=False)
    assert out.indices.asnumpy().tolist() == [1, 2] and out.data.asnumpy().tolist() == [[2, 2], [2, 0]]
    store.push("e", mx.nd.ones((3, 2)))
    store.pull("e", out=dense)
    assert dense.asnumpy().tolist() == [[1, 1]] * 3


def test_pulling_into_sparse_arrays_is_ignored_with_a_warning(caplog):
    store = mx.kv.create()
    store.init(3, ones())
    out = ones(value=2).tostype("row_sparse")
    store.pull(3, out=out)
    store.pull(3, out=out)
    assert out.asnumpy().tolist() == full(2)
    assert caplog.text.count("was ignored; use row_sparse_pull()") == 1


@pytest.mark.parametrize("call, text", [
    (lambda s: s.init(3, ones()), "duplicate init of key 3"),
    (lambda s: s.init("a", ones()), "all keys of a store have one type, in this one int; received 'a'"),
    (lambda s: s.pull("a", out=ones()), "all keys of a store have one type"),
    (lambda s: s.push(9, ones()), "key 9 has not been inited"),
    (lambda s: s.pull(9, out=ones()), "key 9 has not been inited"),
    (lambda s: s.pull(3), "pull needs out"),
    (lambda s: s.push(3.5, ones()), "a key must be a str or an int, received 3.5"),
    (lambda s: s.push(3, 5), "value of key 3 must be an NDArray or a list of them, received 5"),
    (lambda s: s.push([3, 3], [ones()]), "2 keys need as many values, received 1"),
    (lambda s: s.push(3, mx.nd.ones((3,))), r"key 3 was inited with shape \(2, 2\), received \(3,\)"),
    (lambda s: s.row_sparse_pull(3, out=ones(), row_ids=mx.nd.array([1])), "out of key 3 must have storage type 'row_sparse'"),
    (lambda s: s.row_sparse_pull(3, out=ones().tostype("row_sparse"), row_ids=mx.nd.array([1])), "the kept value of key 3 must have"),
    (lambda s: s.row_sparse_pull(3, out=ones()), "needs out=... and row_ids"),
    (lambda s: s.save_optimizer_states("x"), "this store has no optimizer; call set_optimizer"),
    (lambda s: s.set_gradient_compression({"type": "2bit"}), "compressed by a kvstore of type 'device', received 'local'"),
])
def test_errors(call, text):
    store = mx.kv.create()
    store.init(3, ones())
    with pytest.raises(MXNetError, match=text):
        call(store)


@pytest.mark.parametrize("params, text", [
    ({"type": "3bit"}, "Unknown type for gradient compression '3bit'; expected '2bit', '1bit', 'fp16', 'bf16'"),
    ({"type": "2bit", "threshold": 0}, "threshold must be greater than 0"),
    ({"type": "2bit", "threshold": "much"}, "threshold must be a number, received 'much'"),
    (5, "expected a dict such as"),
])
def test_compression_errors(params, text):
    with pytest.raises(MXNetError, match=text):
        mx.kv.create("device").set_gradient_compression(params)


def test_modules_train_through_the_store_for_tests():
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")
    data = mx.io.NDArrayIter(np.eye(4, 3, dtype="float32"), np.array([0, 1, 0, 1], "float32"), 4)
    results = []
    for kvstore in ("teststore", "device"):
        module = mx.mod.Module(net, context=DEVICES[:2])
        module.fit(data, num_epoch=2, kvstore=kvstore, initializer=mx.init.One(), optimizer_params={"learning_rate": .5})
        results.append(module.get_params()[0]["fc_weight"].asnumpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def test_commands_find_no_servers():
    assert mx.kv.create("local")._send_command_to_servers(0, "profile") is None


class Halved(mx.optimizer.Adam):
    """Goes on where Adam's step ends."""

    def update(self, index, weight, grad, state):
        super().update(index, weight, grad, state)
        weight *= 0.5


@pytest.mark.parametrize("optimizer", [mx.optimizer.Adam, mx.optimizer.Adamax, mx.optimizer.SGD, Halved])
@pytest.mark.parametrize("rescale", [1, 0.5])
def test_a_large_value_that_is_pushed_and_pulled_is_the_optimizers(optimizer, rescale):
    first, gradient = mx.nd.random.uniform(shape=(300, 400)), mx.nd.random.uniform(0.1, 1, shape=(300, 400))
    found = []
    for at_once in (True, False):
        store = mx.kv.create("local")
        store.init("w", first)
        store.set_optimizer(optimizer(learning_rate=0.1, rescale_grad=rescale))
        out = mx.nd.zeros((300, 400))
        for _ in range(2):
            if at_once:
                store.pushpull("w", [gradient], out=[out])
            else:
                store.push("w", gradient)
                store.pull("w", out=out)
        kept = mx.nd.zeros((300, 400))
        store.pull("w", out=kept)
        assert (kept == out).asnumpy().all()
        found.append(out.asnumpy())
    assert (found[0] == found[1]).all() and (found[0] != first.asnumpy()).all()


@pytest.mark.parametrize("kind", ["local", "device", "teststore"])
def test_nothing_that_a_store_moves_is_recorded(kind):
    """A Trainer makes its store in a block's first call where a parameter of rows is asked for, inside of record()."""
    store, weight, out, marked = mx.kv.create(kind), mx.nd.ones((2,)), mx.nd.zeros((2,)), mx.nd.zeros((2,))
    for array in (weight, marked):
        array.attach_grad()
    with mx.autograd.record():
        store.broadcast("w", weight * 3, out=marked)  # recorded, a write to an array with a gradient is refused
        store.pushpull("w", weight * 2, out=out)
    assert out.asnumpy().tolist() == [2, 2] and marked.asnumpy().tolist() == [3, 3]
    with pytest.raises(mx.MXNetError, match="not part of a recorded computation"):
        out.backward()


def test_a_trainer_may_begin_while_a_block_with_rows_is_recorded():
    class Net(mx.gluon.Block):
        def __init__(self):
            super().__init__()
            self.rows = self.params.get("rows", stype="row_sparse", shape=(4, 3), grad_stype="row_sparse")
            self.dense = mx.gluon.nn.Dense(2)

        def forward(self, x):
            return self.dense(mx.nd.Embedding(x, self.rows.row_sparse_data(x), input_dim=4, output_dim=3, sparse_grad=True))

    devices = [mx.cpu(1), mx.cpu(2)]
    net = Net()
    net.initialize(mx.init.One(), ctx=devices)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1})
    with mx.autograd.record():
        outputs = [net(x) for x in mx.gluon.utils.split_and_load(mx.nd.array([[0, 2], [1, 2]]), devices)]
    for out in outputs:
        out.backward()
    trainer.step(1)
    assert net.rows.row_sparse_data(mx.nd.arange(0, 4, ctx=mx.cpu(1))).asnumpy().tolist() == [[-1] * 3, [-1] * 3, [-3] * 3, [1] * 3]
