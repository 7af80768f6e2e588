"""Trainings of one process; those of several ranks are in `tests/training_checkpoint`."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon


class _Training:
    def __init__(self, contexts=1, optimizer="adam", store="device", **options):
        net = self.net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Dense(8), gluon.nn.Dropout(0.5), gluon.nn.BatchNorm(), gluon.nn.Dense(3, use_bias=False))
        self.contexts = [mx.cpu(i) for i in range(contexts)]
        net.initialize(mx.init.Xavier(), ctx=self.contexts)
        numbers = np.random.RandomState(3)
        self.data = gluon.data.DataLoader(gluon.data.ArrayDataset(numbers.rand(24, 6).astype("float32"), numbers.rand(24, 3).astype("float32")), 4,
                                          shuffle=True)
        if optimizer == "adam":
            options["lr_scheduler"] = mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.05)
        self.trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.05, **options}, kvstore=store)
        self.batches = None

    def train(self, count):
        self.batches = self.batches or iter(self.data)
        for number, (x, y) in enumerate(self.batches, 1):
            losses = []
            with mx.autograd.record():
                for a, b in zip(gluon.utils.split_and_load(x, self.contexts), gluon.utils.split_and_load(y, self.contexts)):
                    losses.append(((self.net(a) - b) ** 2).sum())
            mx.autograd.backward(losses)
            self.trainer.step(4)
            if number == count:
                return

    def values(self):
        return [array.asnumpy() for p in self.net.collect_params().values() for array in p.list_data()]


@pytest.mark.parametrize("contexts, optimizer, store, options", [
    (1, "adam", "device", {}), (2, "sgd", "device", {"momentum": 0.9}),
    (2, "sgd", "local", {"momentum": 0.9}), (1, "nadam", None, {}), (1, "lamb", None, {})])
def test_an_interrupted_training_ends_with_the_same_weights(tmp_path, contexts, optimizer, store, options):
    mx.random.seed(1)
    np.random.seed(1)
    one = _Training(contexts, optimizer, store, **options)
    one.train(2)
    one.trainer.save_training(tmp_path, one.net, one.data, epoch=3, batch=2).wait()
    one.train(4)
    other = _Training(contexts, optimizer, store, **options)
    assert other.trainer.resume_training(tmp_path, other.net, other.data) == (3, 2, True)
    other.train(4)
    for a, b in zip(one.values(), other.values()):
        assert (a == b).all()
    assert other.trainer.learning_rate == one.trainer.learning_rate and other.trainer.optimizer.num_update == 6


def test_half_precision_with_float32_copies(tmp_path):
    def made():
        net = gluon.nn.Dense(2, in_units=2)
        net.cast("float16")
        net.initialize(mx.init.One())
        return net, gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-4, "momentum": 0.9, "multi_precision": True})

    def train(net, trainer):
        for _ in range(3):
            with mx.autograd.record():
                loss = net(mx.nd.ones((1, 2), dtype="float16")).sum()
            loss.backward()
            trainer.step(1)
        return trainer._updaters[0].states[1][1].asnumpy()
    net, trainer = made()
    train(net, trainer)
    trainer.save_training(tmp_path, net).wait()
    expected = train(net, trainer)
    net, trainer = made()
    trainer.resume_training(tmp_path, net)
    found = train(net, trainer)
    assert (found == expected).all() and found.dtype == np.float32 and (found < 1).all()


def test_a_trainer_goes_back_to_its_own_checkpoint(tmp_path):
    training = _Training(2, "sgd", "local")
    training.train(2)
    training.trainer.save_training(tmp_path, training.net)
    before = training.values()
    training.train(2)
    training.trainer.resume_training(tmp_path, training.net)
    assert all((a == b).all() for a, b in zip(before, training.values()))
    training.trainer.set_learning_rate(0)
    training.train(1)
    assert (training.net[0].weight.data(mx.cpu(1)).asnumpy() == before[1]).all()  # the store has the old weights, too


def test_a_folder_without_checkpoints(tmp_path):
    training = _Training()
    assert training.trainer.resume_training(tmp_path / "none", training.net) is None
    training.train(1)
    assert training.trainer.optimizer.num_update == 1


def test_other_networks_and_optimizers(tmp_path):
    training = _Training()
    with pytest.raises(gluon.utils.UsageError, match="has no values yet, because its shape is not known; pass a batch through the network first"):
        training.trainer.save_training(tmp_path, training.net)
    training.train(1)
    with pytest.raises(gluon.utils.UsageError, match="save_training: the trainer updates '.*', which is no Parameter of the network"):
        training.trainer.save_training(tmp_path, gluon.nn.Dense(2))
    with pytest.raises(mx.MXNetError, match="save_training: batch=-1 is not a number from 0 on"):
        training.trainer.save_training(tmp_path, training.net, batch=-1)
    training.trainer.save_training(tmp_path, training.net).wait()
    for units, text in (2, r"'weights/weight': an array|lacks"), (8, "lacks"):
        net = gluon.nn.Dense(units, in_units=6)
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), "adam")
        with pytest.raises(mx.MXNetError, match=text):
            trainer.resume_training(tmp_path, net)
    other = _Training(optimizer="sgd", momentum=0.9)
    other.trainer.resume_training(tmp_path, other.net)
    assert type(other.trainer.optimizer) is mx.optimizer.Adam  # the optimizer is the saved one, as with load_states


def test_checkpoints_in_another_folder_wait_for_those_before(tmp_path):
    training = _Training()
    training.train(1)
    first = training.trainer.save_training(tmp_path / "a", training.net)
    training.trainer.save_training(tmp_path / "b", training.net).wait()
    assert first.done() and (tmp_path / "a" / "training-000000001").exists()
    with pytest.raises(mx.MXNetError, match="checkpoints need a folder of the file system, which all ranks share; received 's3://bucket/a'"):
        training.trainer.save_training("s3://bucket/a", training.net)


def test_row_sparse_weights_are_refused(tmp_path):
    net = gluon.contrib.nn.SparseEmbedding(4, 2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore="local")
    with pytest.raises(gluon.utils.UsageError, match="of storage type row_sparse is the kvstore's; use save_parameters and save_states"):
        trainer.save_training(tmp_path, net)


def test_contexts_without_a_store_have_weights_of_their_own(tmp_path):
    training = _Training(2, "sgd", None)
    training.train(1)
    with pytest.raises(mx.MXNetError, match="without a kvstore each of the contexts .* has weights of its own; use kvstore='device'"):
        training.trainer.save_training(tmp_path, training.net)
