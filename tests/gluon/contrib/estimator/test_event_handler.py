import logging
import os
import warnings

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon.contrib.estimator import (
    BatchEnd,
    CheckpointHandler,
    EarlyStoppingHandler,
    EpochEnd,
    Estimator,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    ValidationHandler,
)


def loader(size=16):
    x = mx.nd.arange(size).reshape((size, 1)) / size
    return gluon.data.DataLoader(gluon.data.ArrayDataset(x, 2 * x), 4)


def estimator(net=None, **kwargs):
    if net is None:
        net = gluon.nn.Dense(1, use_bias=False, in_units=1)
    net.initialize(mx.init.Zero())
    made = Estimator(net, gluon.loss.L2Loss(), trainer=gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5, "momentum": 0.5}), **kwargs)
    made.logger.handlers = []
    return made


class Lines(logging.Handler):
    def __init__(self, made):
        super().__init__()
        self.lines = []
        made.logger.addHandler(self)

    def emit(self, record):
        self.lines.append(record.getMessage())


class Scripted(mx.metric.EvalMetric):
    """A metric with one given value after the other."""

    def __init__(self, values, name="loss"):
        self.values = iter(values)
        super().__init__(name)

    def get(self):
        return self.name, self.value

    def reset(self):
        self.value = float("nan")

    def next(self):
        self.value = next(self.values)


class Script(EpochEnd):
    priority = -1

    def __init__(self, monitored):
        self.scripted = monitored

    def epoch_end(self, estimator):
        self.scripted.next()


def test_stopping_counts_epochs_and_batches():
    handler = StoppingHandler()
    made = estimator()
    made.max_batch = 2
    handler.train_begin(made)
    assert [handler.batch_end(made), handler.epoch_end(made), handler.batch_end(made), handler.epoch_end(made)] == [False, False, True, True]


def test_metrics_get_losses_or_labels_and_outputs():
    loss, mse = mx.metric.Loss(), mx.metric.MSE()
    handler = MetricHandler([loss, mse])
    handler.batch_end(None, loss=[mx.nd.array([1.0, 2.0])], label=[mx.nd.array([[1.0]])], pred=[mx.nd.array([[3.0]])])
    assert (loss.get()[1], mse.get()[1]) == (1.5, 4)
    handler.epoch_begin(None)
    assert loss.num_inst == mse.num_inst == 0


def test_validation_every_so_many_batches_and_epochs():
    calls = []
    made = estimator()
    handler = ValidationHandler("data", lambda **kwargs: calls.append(kwargs), epoch_period=2, batch_period=3, event_handlers="them")
    made.fit(loader(), epochs=2, event_handlers=handler)
    assert calls == [{"val_data": "data", "batch_axis": 0, "event_handlers": "them"}] * 3  # after the batches 3 and 6, and the second epoch


def test_logging_every_so_many_batches():
    made = estimator()
    log = Lines(made)
    made.fit(loader(), epochs=1, event_handlers=LoggingHandler(log_interval=3, metrics=made.train_metrics))
    assert [line.split(" time")[0] for line in log.lines if "Batch" in line] == ["[Epoch 0][Batch 0][Samples 4]", "[Epoch 0][Batch 3][Samples 16]"]
    with pytest.raises(ValueError, match="log_interval is a number of batches or 'epoch', received 'batch'"):
        LoggingHandler(log_interval="batch")


def test_checkpoints_after_epochs(tmp_path):
    made = estimator(gluon.nn.HybridSequential())
    made.net.add(gluon.nn.Dense(1))
    made.net.initialize(mx.init.Zero())
    made.trainer = gluon.Trainer(made.net.collect_params(), "sgd")
    made.net.hybridize()
    log = Lines(made)
    made.fit(loader(), epochs=3, event_handlers=CheckpointHandler(str(tmp_path / "deep" / "er"), "best-model", verbose=1, max_checkpoints=2))
    assert sorted(os.listdir(tmp_path / "deep" / "er")) == [
        *(f"best-model-epoch{e}batch{b}.{x}" for e, b in ((1, 8), (2, 12)) for x in ("data", "params", "states")), "best-model-symbol.json"]
    assert f"[Epoch 2] CheckpointHandler: 13 batches trained, saved as best-model-epoch2batch12 in {tmp_path / 'deep' / 'er'}" in log.lines
    assert mx.sym.load(str(tmp_path / "deep" / "er" / "best-model-symbol.json")).list_outputs()


def test_checkpoints_after_batches(tmp_path):
    made = estimator()
    log = Lines(made)
    made.fit(loader(), batches=6, event_handlers=CheckpointHandler(str(tmp_path), epoch_period=None, batch_period=3))
    assert sorted(os.listdir(tmp_path)) == [f"model-epoch{e}batch{b}.{x}" for e, b in ((0, 2), (1, 5)) for x in ("data", "params", "states")]
    assert [line for line in log.lines if "is not written, since the network has no graph" in line]


def test_resumed_training_equals_one_without_a_break(tmp_path):
    whole = estimator()
    whole.fit(loader(), epochs=12)
    first = estimator()
    first.fit(loader(), epochs=11, event_handlers=CheckpointHandler(str(tmp_path), max_checkpoints=3))  # 9, 10: by number, not by letter
    second = estimator()
    log = Lines(second)
    second.fit(loader(), epochs=12, event_handlers=CheckpointHandler(str(tmp_path), max_checkpoints=3, resume_from_checkpoint=True))
    assert second.max_epoch == 1 and "CheckpointHandler: resumed from epoch 10, batch 44; 1 epochs are left" in log.lines
    assert second.net.weight.data().asscalar() == whole.net.weight.data().asscalar()
    assert sorted(p.name for p in tmp_path.glob("*.params")) == [
        "model-epoch10batch44.params", "model-epoch11batch48.params", "model-epoch9batch40.params"]
    with pytest.raises(ValueError, match="model-epoch11batch48 in .* has trained the 12 epochs asked for; ask for more"):
        estimator().fit(loader(), epochs=12, event_handlers=CheckpointHandler(str(tmp_path), resume_from_checkpoint=True))


def test_resume_after_batches(tmp_path):
    handler = CheckpointHandler(str(tmp_path), epoch_period=None, batch_period=2, resume_from_checkpoint=True)
    made = estimator()
    log = Lines(made)
    made.fit(loader(), batches=4, event_handlers=handler)
    assert log.lines[0].startswith("CheckpointHandler: no checkpoint in") and log.lines[0].endswith("from scratch, for 4 batches")
    made = estimator()
    made.fit(loader(), batches=10, event_handlers=CheckpointHandler(str(tmp_path), epoch_period=None, batch_period=2, resume_from_checkpoint=True))
    assert made.max_batch == 6 and (tmp_path / "model-epoch2batch9.params").exists()


def test_resume_within_an_epoch_takes_the_rest_of_it(tmp_path):
    def shuffled():
        x = mx.nd.arange(16).reshape((16, 1)) / 16
        return gluon.data.DataLoader(gluon.data.ArrayDataset(x, x * x), 2, shuffle=True)
    mx.random.seed(1)
    np.random.seed(1)
    whole = estimator()
    whole.fit(shuffled(), batches=14)
    mx.random.seed(1)
    np.random.seed(1)
    options = {"epoch_period": None, "batch_period": 5, "resume_from_checkpoint": True}
    estimator().fit(shuffled(), batches=5, event_handlers=CheckpointHandler(str(tmp_path), **options))
    resumed = estimator()
    np.random.seed(2)
    resumed.fit(shuffled(), batches=14, event_handlers=CheckpointHandler(str(tmp_path), **options))
    assert resumed.net.weight.data().asscalar() == whole.net.weight.data().asscalar()
    assert sorted(p.name for p in tmp_path.glob("*.data")) == ["model-epoch0batch4.data", "model-epoch1batch9.data"]


def test_a_sampler_without_length_has_no_position(tmp_path):
    class Endless:
        def __iter__(self):
            while True:
                yield [0, 1]

    x = mx.nd.ones((2, 1))
    endless = gluon.data.DataLoader(gluon.data.ArrayDataset(x, x), batch_sampler=Endless())
    estimator().fit(endless, batches=2, event_handlers=CheckpointHandler(str(tmp_path), epoch_period=None, batch_period=2))
    assert sorted(os.listdir(tmp_path)) == ["model-epoch0batch1.params", "model-epoch0batch1.states"]


def test_resume_needs_both_files_and_one_kind_of_period(tmp_path):
    with pytest.raises(AssertionError, match="for a number of epochs is resumed from checkpoints after epochs alone; received epoch_period=1"):
        estimator().fit(loader(), epochs=1, event_handlers=CheckpointHandler(str(tmp_path), batch_period=2, resume_from_checkpoint=True))
    with pytest.raises(AssertionError, match="for a number of batches is resumed from checkpoints after batches alone"):
        estimator().fit(loader(), batches=1, event_handlers=CheckpointHandler(str(tmp_path), resume_from_checkpoint=True))
    estimator().net.save_parameters(str(tmp_path / "model-epoch0batch4.params"))
    with pytest.raises(AssertionError, match=r"model-epoch0batch4.params has no .*model-epoch0batch4.states beside it"):
        estimator().fit(loader(), epochs=3, event_handlers=CheckpointHandler(str(tmp_path), resume_from_checkpoint=True))


@pytest.mark.parametrize("name, mode, kept", [
    ("loss", "min", 2), ("loss", "max", 1), ("loss", "auto", 2), ("top_accuracy", "auto", 1), ("F1", "auto", 1)])
def test_the_best_checkpoint(tmp_path, name, mode, kept):
    monitored = Scripted([0.5, 0.7, 0.2, 0.6], name)
    made = estimator()
    weights = []

    class Watch(EpochEnd):
        def epoch_end(self, estimator):
            weights.append(estimator.net.weight.data().asscalar())

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        handler = CheckpointHandler(str(tmp_path), monitor=monitored, save_best=True, mode=mode, verbose=1)
    assert [str(w.message) for w in caught] == ([] if mode != "auto" else [
        f"CheckpointHandler: the {'lower' if kept == 2 else 'higher'} value of {name!r} is taken for the better one; say mode='min' or mode='max'"])
    made.fit(loader(), epochs=4, event_handlers=[Watch(), Script(monitored), handler])
    net = gluon.nn.Dense(1, use_bias=False, in_units=1)
    net.load_parameters(str(tmp_path / "model-best.params"))
    assert net.weight.data().asscalar() == weights[kept] and (tmp_path / "model-best.states").exists()


def test_best_needs_a_metric_with_a_value(tmp_path):
    with pytest.raises(ValueError, match="save_best compares a metric out of .*, received monitor=None"):
        CheckpointHandler(str(tmp_path), save_best=True)
    with pytest.warns(RuntimeWarning, match="mode is 'auto', 'min' or 'max', received 'best'; it is taken for 'auto'"), pytest.warns(UserWarning):
        handler = CheckpointHandler(str(tmp_path), monitor=mx.metric.MSE(), save_best=True, mode="best")
    with pytest.warns(RuntimeWarning, match="CheckpointHandler: mse has no value; monitor a metric out of"):
        estimator().fit(loader(), epochs=1, event_handlers=handler)
    assert not (tmp_path / "model-best.params").exists()


@pytest.mark.parametrize("values, arguments, epochs", [
    ([0.5, 0.4, 0.3, 0.2], {"mode": "min"}, 4),
    ([0.5, 0.5, 0.3, 0.2], {"mode": "min"}, 2),
    ([0.5, 0.6, 0.7, 0.2], {"mode": "min", "patience": 2}, 3),
    ([0.5, 0.6, 0.2, 0.3], {"mode": "min", "patience": 2}, 4),
    ([0.5, 0.48, 0.2, 0.1], {"mode": "min", "min_delta": 0.05}, 2),
    ([0.5, 0.6, 0.5, 0.4], {"mode": "max", "min_delta": 0.05}, 3),
    ([0.5, 0.6, 0.7, 0.8], {"mode": "max", "baseline": 0.9, "patience": 1}, 1),
])
def test_early_stopping(values, arguments, epochs):
    monitored = Scripted(values)
    handler = EarlyStoppingHandler(monitored, **arguments)
    made = estimator()
    log = Lines(made)
    made.fit(loader(), epochs=4, event_handlers=[Script(monitored), handler])
    assert handler.current_epoch == epochs
    ended = [line for line in log.lines if "EarlyStopping" in line]
    assert ended == ([f"[Epoch {epochs - 1}] EarlyStoppingHandler: training ends since loss does not improve"] if 1 < epochs < 4 else [])


def test_early_stopping_needs_a_single_metric():
    for wrong in ("acc", mx.metric.CompositeEvalMetric(["acc"])):
        with pytest.raises(ValueError, match="EarlyStoppingHandler: a single metric out of"):
            EarlyStoppingHandler(wrong)


def test_gradients_are_applied_by_the_number_of_losses():
    steps = []

    class Trainer:
        step = staticmethod(steps.append)

    class Fake:
        trainer = Trainer

    GradientUpdateHandler().batch_end(Fake, loss=[mx.nd.zeros((3,)), mx.nd.zeros((2,))])
    GradientUpdateHandler().batch_end(Fake, loss=mx.nd.zeros((4,)))
    assert steps == [5, 4]


def test_an_own_update_takes_the_place_of_the_default_one():
    class Never(GradientUpdateHandler):
        def batch_end(self, estimator, **kwargs):
            return None

    made = estimator()
    made.fit(loader(), epochs=1, event_handlers=Never())
    assert made.net.weight.data().asscalar() == 0


def test_a_handler_ends_the_epoch():
    class Once(BatchEnd):
        batches = 0

        def batch_end(self, estimator, **kwargs):
            self.batches += 1
            return True

    once = Once()
    estimator().fit(loader(), epochs=3, event_handlers=once)
    assert once.batches == 3
