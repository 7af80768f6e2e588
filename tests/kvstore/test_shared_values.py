"""Kept values that use the memory of the array which pulls them. What programs see is as if each had its own; literal values are MXNet 1.9.1's."""
import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.kvstore import shared_values
from mxnet.ndarray import mutation_tracking
from mxnet.ops import sparse_input_linear


def shared(store, array, key="w"):
    return store._values[key]._data is array._data


def value_of(store, key="w"):
    out = mx.nd.zeros(store._values[key].shape)
    store.pull(key, out=out)
    return out.asnumpy().ravel()[0]


@pytest.fixture
def pair():
    """A store with an optimizer, whose value is 1, and an array that has pulled it after an update: both are 0.5."""
    store, array = mx.kv.create("local"), mx.nd.zeros((2, 3))
    store.init("w", mx.nd.ones((2, 3)))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    store.pushpull("w", mx.nd.ones((2, 3)), out=array)
    assert shared(store, array) and array[0, 0].asscalar() == 0.5
    return store, array


GRADIENT = mx.nd.ones((2, 3))


def test_the_next_update_is_written_to_both_at_once(pair):
    store, array = pair
    memory, replaced = array._data.data_ptr(), mutation_tracking.tensor_replacements.count
    store.pushpull("w", GRADIENT, out=array)
    assert mutation_tracking.tensor_replacements.count == replaced  # the value had no memory of its own in between
    assert shared(store, array) and array._data.data_ptr() == memory and (array.asnumpy() == 0).all() and value_of(store) == 0


def everywhere(array):
    array[:] = 7


def part(array):
    array[1:] = 7


def through_a_view(array):
    array[0][:] = 7


def in_place(array):
    array += 7


def as_out(array):
    mx.nd.ones((2, 3), out=array)


def by_an_operator(array):
    mx.nd.sgd_update(array, GRADIENT, out=array, lr=1)


def by_a_copy(array):
    mx.nd.ones((2, 3)).copyto(array)


def by_torch(array):
    array.as_torch().mul_(3)


def by_dlpack(array):
    torch.from_dlpack(array.to_dlpack_for_write()).fill_(7)


def as_a_gradient(array):
    x = mx.nd.ones((2, 3))
    mx.autograd.mark_variables([x], [array])
    with mx.autograd.record():
        y = x * 9
    y.backward()


def through_an_exported_row(array):
    mx.nd.from_dlpack(array[1:].to_dlpack_for_read())[:] = 7


def by_the_dlpack_of_torch(array):
    torch.from_dlpack(array)[:] = 7


def by_a_loss_scale(array):
    """`amp.unscale` divides gradients."""
    trainer = mx.gluon.Trainer([], "sgd")
    trainer._params, trainer._scale = [type("Scaled", (), {"_grad": [array]})], 0.25
    mx.contrib.amp.unscale(trainer)


WRITES = [everywhere, part, through_a_view, in_place, as_out, by_an_operator, by_a_copy, by_torch, by_dlpack, by_the_dlpack_of_torch,
          through_an_exported_row, as_a_gradient, by_a_loss_scale]


@pytest.mark.parametrize("write", WRITES)
def test_what_a_program_writes_to_the_array_does_not_reach_the_store(pair, write):
    store, array = pair
    write(array)
    assert (array.asnumpy() != 0.5).any() and value_of(store) == 0.5
    store.pushpull("w", GRADIENT, out=array)
    assert (array.asnumpy() == 0).all() and value_of(store) == 0


@pytest.mark.parametrize("split", [False, True])
def test_a_gradient_that_is_computed_in_the_memory_of_the_last_one(split):
    net, store = (mx.gluon.nn.Sequential if split else mx.gluon.nn.HybridSequential)(), mx.kv.create("local")
    net.add(mx.gluon.nn.Dense(6, activation="tanh", in_units=6), (mx.gluon.nn.ShardedDense if split else mx.gluon.nn.Dense)(3, in_units=6))
    loss = mx.gluon.loss.ShardedSoftmaxCELoss() if split else mx.gluon.loss.SoftmaxCrossEntropyLoss()
    if not split:
        for block in (net, loss):
            block.hybridize(static_alloc=True, static_shape=True)
    net.initialize()

    def run():
        with mx.autograd.record():
            error = loss(net(mx.nd.arange(24).reshape((4, 6))), mx.nd.array([0, 2, 1, 2]))
        error.backward()
    run()
    gradient = net[1].weight.grad()
    memory = gradient._data.data_ptr()
    store.init("w", mx.nd.ones(gradient.shape))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    store.pushpull("w", mx.nd.ones(gradient.shape), out=gradient)
    assert shared(store, gradient)
    run()
    assert gradient._data.data_ptr() == memory and (gradient.asnumpy() != 0.5).any() and value_of(store) == 0.5


def test_a_gradient_that_an_executor_computes_in_its_memory(pair, monkeypatch):
    monkeypatch.setattr(sparse_input_linear, "LARGE", 1)
    store, array = pair
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, no_bias=True, name="fc")
    executor = net.bind(mx.cpu(), {"data": mx.nd.full((1, 3), 7), "fc_weight": mx.nd.ones((2, 3))}, args_grad={"fc_weight": array})
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((1, 2)))
    assert (array.asnumpy() == 7).all() and value_of(store) == 0.5


def test_an_update_alone_does_not_reach_the_array(pair):
    store, array = pair
    store.push("w", GRADIENT)
    assert (array.asnumpy() == 0.5).all() and value_of(store) == 0 and not shared(store, array)


def test_another_array_that_pulls(pair):
    store, array = pair
    other = mx.nd.zeros((2, 3))
    store.pushpull("w", GRADIENT, out=other)
    assert (array.asnumpy() == 0.5).all() and (other.asnumpy() == 0).all() and shared(store, other)
    array[:] = 7
    assert value_of(store) == 0


def test_a_new_value_for_the_store(pair):
    store, array = pair
    store._replace("w", mx.nd.full((2, 3), 4))
    assert (array.asnumpy() == 0.5).all() and value_of(store) == 4


def test_two_keys_for_one_array(pair):
    store, array = pair
    store.init("v", mx.nd.full((2, 3), 3))
    for expected in (2.5, 2):
        store.pushpull(["w", "v"], [GRADIENT, GRADIENT], out=[array, array])
        assert (array.asnumpy() == expected).all() and value_of(store, "v") == expected
    assert value_of(store) == -0.5


def test_a_view_of_the_array_sees_the_updates(pair):
    store, array = pair
    row = array[1]
    store.pushpull("w", GRADIENT, out=array)
    assert (row.asnumpy() == 0).all()
    row[:] = 7
    assert value_of(store) == 0


def test_an_array_that_is_gone(pair):
    store, array = pair
    del array
    other = mx.nd.zeros((2, 3))
    store.pushpull("w", GRADIENT, out=other)
    assert (other.asnumpy() == 0).all()


def test_other_memory_orders(pair):
    store, _ = pair
    store.init("c", mx.nd.ones((4, 3, 2, 2)))
    weight, gradient = mx.nd.zeros((4, 3, 2, 2)), mx.nd.ones((4, 3, 2, 2))
    store.pushpull("c", gradient, out=weight)
    mx.nd.ndarray.memory_format.channels_last(weight)
    store.pushpull("c", gradient, out=weight)
    assert not weight._data.is_contiguous() and shared(store, weight, "c") and (weight.asnumpy() == 0).all()
    weight[:] = 7
    assert value_of(store, "c") == 0


@pytest.mark.parametrize("type_of_out", ["two", "half", "gradient", "torch's", "numpy's"])
def test_what_does_not_share(pair, type_of_out):
    store, array = pair
    outs = {"two": [mx.nd.zeros((2, 3)), mx.nd.zeros((2, 3))], "half": mx.nd.zeros((2, 3), dtype="float16"), "gradient": None,
            "torch's": mx.nd.zeros((2, 3)), "numpy's": mx.nd.from_numpy(np.zeros((2, 3), "float32"))}[type_of_out]
    if type_of_out == "torch's":
        tensor = outs.as_torch()
    gradient = mx.nd.ones((2, 3))
    store.pushpull("w", gradient, out=outs)
    first = gradient if outs is None else outs[0] if isinstance(outs, list) else outs
    assert not shared(store, first) and (first.asnumpy() == 0).all()
    if type_of_out == "torch's":
        tensor.fill_(7)
    assert value_of(store) == 0


def test_an_updater_of_the_programs_own_has_the_value_to_itself():
    store, array, held = mx.kv.create("local"), mx.nd.zeros((2, 3)), []

    def update(key, gradient, value):
        value -= gradient
        held.append(value)
    store.init(3, mx.nd.ones((2, 3)))
    store._set_updater(update)
    store.pushpull(3, GRADIENT, out=array)
    held[0][:] = 5
    assert (array.asnumpy() == 0).all()


class Holding(mx.optimizer.SGD):
    """Holds a row of the weight."""

    def create_state(self, index, weight):
        self.row = weight[0]


def test_an_optimizer_of_the_programs_own_has_the_value_to_itself():
    store, array, optimizer = mx.kv.create("local"), mx.nd.zeros((2, 3)), Holding(learning_rate=0.5)
    store.init("w", mx.nd.ones((2, 3)))
    store.set_optimizer(optimizer)
    for expected in (0.5, 0, -0.5):
        store.pushpull("w", GRADIENT, out=array)
        assert not shared(store, array) and optimizer.row[0].asscalar() == array[0, 0].asscalar() == expected
        array[:] = 9


def test_an_update_that_fails(pair, monkeypatch):
    store, array = pair
    update = mx.optimizer.SGD.update_multi_precision

    def fail(*args):
        update(*args)
        raise ValueError("no more")
    monkeypatch.setattr(mx.optimizer.SGD, "update_multi_precision", fail)
    with pytest.raises(ValueError, match="no more"):
        store.pushpull("w", GRADIENT, out=array)
    array[:] = 7
    assert value_of(store) == 0


def test_a_sparse_gradient(pair):
    store, array = pair
    store.pushpull("w", mx.nd.sparse.row_sparse_array(([[1, 1, 1]], [1]), shape=(2, 3)), out=array)
    assert array.asnumpy().tolist() == [[0.5] * 3, [0] * 3] and shared(store, array)


@pytest.mark.parametrize("optimizer", ["sgd", "nag", "adam", "adamax", "lamb", "ftrl", "signum", "dcasgd", "rmsprop", "lbsgd", "sgld"])
def test_optimizers_update_as_if_it_had_its_own(optimizer):
    found = []
    for together in (True, False):
        mx.random.seed(5)
        store, array, gradient = mx.kv.create("local"), mx.nd.zeros((8, 9)), mx.nd.arange(72).reshape((8, 9)) / 72
        store.init(0, mx.nd.ones((8, 9)))
        store.set_optimizer(mx.optimizer.create(optimizer, learning_rate=0.1, wd=0.01))
        for _ in range(3):
            if together:
                store.pushpull(0, gradient, out=array)
            else:
                store.push(0, gradient)
                store.pull(0, out=array)
        assert shared(store, array, 0) == together
        found.append(array.asnumpy())
    np.testing.assert_array_equal(*found)


def test_a_network_trains_the_same(monkeypatch):
    """Convolutions bring their weights into another memory order on the way."""
    found = []
    for shares in (True, False):
        if not shares:
            monkeypatch.setattr(shared_values.SharedValues, "pull", lambda self, key, value, arrays: False)
        mx.random.seed(3)
        net = mx.gluon.nn.HybridSequential()
        net.add(mx.gluon.nn.Conv2D(8, 3, in_channels=4), mx.gluon.nn.BatchNorm(in_channels=8), mx.gluon.nn.Dense(3, in_units=8 * 16))
        net.initialize(mx.init.Xavier())
        net.hybridize()
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9}, kvstore=mx.kv.create("local"),
                                   update_on_kvstore=True)
        x = mx.nd.random.normal(shape=(5, 4, 6, 6))
        for step in range(4):
            with mx.autograd.record():
                loss = net(x).square().sum()
            loss.backward()
            trainer.step(5)
            if step == 1:
                net[0].weight.data()[:] *= 0.5  # the store's value stays
        weights = [p.data() for p in net.collect_params().values() if p.grad_req != "null"]
        assert all(any(w._data is value._data for value in trainer._kvstore._values.values()) == shares for w in weights)
        found.append([w.asnumpy() for w in weights])
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)
