"""Trainings of one process; those of several ranks are in `tests/training_checkpoint`."""
import numpy as np
import pytest

import mxnet as mx


class _Training:
    def __init__(self, contexts=1, store="local", momentum=0.9):
        net = mx.sym.Dropout(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=8, name="a"), p=0.5)
        net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.BatchNorm(net, name="n"), num_hidden=3, name="b"), name="softmax")
        numbers = np.random.RandomState(3)
        self.data = mx.io.NDArrayIter(numbers.rand(24, 6).astype("float32"), numbers.randint(0, 3, 24).astype("float32"), 4, shuffle=True)
        self.module = mx.mod.Module(net, context=[mx.cpu(i) for i in range(contexts)])
        self.module.bind(self.data.provide_data, self.data.provide_label)
        self.module.init_params(mx.init.Xavier())
        self.module.init_optimizer(store, "sgd", {"learning_rate": 0.05, "momentum": momentum})

    def train(self, count):
        for _ in range(count):
            self.module.forward_backward(self.data.next())
            self.module.update()

    def values(self):
        return {name: array.asnumpy() for part in self.module.get_params() for name, array in part.items()}


@pytest.mark.parametrize("contexts, store", [(1, "local"), (2, "local"), (2, "device")])
def test_an_interrupted_training_ends_with_the_same_weights(tmp_path, contexts, store):
    mx.random.seed(1)
    np.random.seed(1)
    one = _Training(contexts, store)
    one.train(2)
    one.module.save_training(tmp_path, one.data, epoch=3, batch=2).wait()
    one.train(4)
    other = _Training(contexts, store)
    assert other.module.resume_training(tmp_path, other.data) == (3, 2, True)
    other.train(4)
    assert other.module._optimizer.num_update == 6
    found = other.values()
    for name, value in one.values().items():
        assert (value == found[name]).all(), name


def test_from_two_devices_to_one(tmp_path):
    one = _Training(2, "device")
    one.train(2)
    one.module.save_training(tmp_path).wait()
    other = _Training(1)
    other.module.resume_training(tmp_path)
    assert all((value == other.values()[name]).all() for name, value in one.values().items() if not name.startswith("n_moving"))
    states, saved = other.module._updater.states, one.module._kvstore._updater.states
    names = other.module._exec_group.param_names
    assert sorted(states) == [0, 1, 2, 3, 4, 5] and all((states[i].asnumpy() == saved[names[i]].asnumpy()).all() for i in states)
    other.train(1)


def test_devices_without_a_store_have_weights_of_their_own(tmp_path):
    with pytest.raises(mx.MXNetError, match="without a kvstore each of the devices .* has weights of its own; use kvstore='device'"):
        _Training(2, None).module.save_training(tmp_path)


def test_without_an_optimizer(tmp_path):
    module = mx.mod.Module(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2), label_names=None)
    with pytest.raises(mx.MXNetError):
        module.save_training(tmp_path)
