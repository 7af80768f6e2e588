import io
import logging
import re
import warnings

import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon.contrib.estimator import (
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    Estimator,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
)


def loader(size=8, batch_size=4):
    x = mx.nd.arange(size).reshape((size, 1)) / size
    return gluon.data.DataLoader(gluon.data.ArrayDataset(x, 2 * x), batch_size)


def estimator(rate=0.5, **kwargs):
    net = gluon.nn.Dense(1, use_bias=False, in_units=1)
    net.initialize(mx.init.Zero())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": rate})
    made = Estimator(net, gluon.loss.L2Loss(), trainer=trainer, **kwargs)
    made.logger.handlers = []
    return made


def log_of(made):
    stream = io.StringIO()
    made.logger.addHandler(logging.StreamHandler(stream))
    return stream


class Recorder(TrainBegin, EpochBegin, BatchBegin, BatchEnd, EpochEnd, TrainEnd):
    def __init__(self):
        self.events = []

    def train_begin(self, estimator):
        self.events.append("(")

    def epoch_begin(self, estimator):
        self.events.append("[")

    def batch_begin(self, estimator, batch):
        self.events.append(f"{batch[0].shape[0]}")

    def batch_end(self, estimator, batch, pred, label, loss):
        self.events.append(f"{pred[0].shape[0]}{label[0].shape[0]}{loss[0].shape[0]}.")

    def epoch_end(self, estimator):
        self.events.append("]")

    def train_end(self, estimator):
        self.events.append(")")


def test_fit_learns_and_calls_handlers_in_order():
    made, events = estimator(), Recorder()
    made.fit(loader(6), epochs=2, event_handlers=events)
    assert "".join(events.events) == "([4444.2222.][4444.2222.])"
    made.fit(loader(), epochs=60)
    assert abs(made.net.weight.data().asscalar() - 2) < 1e-3
    assert made.train_metrics[0].get()[1] < 1e-5


def test_batches_end_the_training_too():
    made, events = estimator(), Recorder()
    made.fit(loader(), batches=3, event_handlers=[events])
    assert "".join(events.events) == "([4444.4444.][4444.])" and (made.max_epoch, made.max_batch) == (None, 3)


def test_a_batch_is_divided_among_contexts():
    net = gluon.nn.Dense(1, in_units=1)
    seen = []

    class Watch(BatchEnd):
        def batch_end(self, estimator, **kwargs):
            seen.append([str(p.context) for p in kwargs["pred"]])

    with pytest.warns(UserWarning, match="^No trainer specified: the Estimator updates by SGD with a learning rate of 0.001"):
        made = Estimator(net, gluon.loss.L2Loss(), context=[mx.cpu(0), mx.cpu(1)])
    made.logger.handlers = []
    made.fit(loader(4), epochs=1, event_handlers=Watch())
    assert seen == [["cpu(0)", "cpu(1)"]] and made.trainer.learning_rate == 0.001


def test_default_metrics():
    made = estimator()
    assert [m.name for m in made.train_metrics] == ["training l2loss"] and [m.name for m in made.val_metrics] == ["validation l2loss"]
    made = Estimator(made.net, gluon.loss.SoftmaxCELoss(), trainer=made.trainer)
    assert [m.name for m in made.train_metrics] == ["training accuracy", "training softmaxcrossentropyloss"]
    composite = mx.metric.CompositeEvalMetric([mx.metric.MSE(), mx.metric.CompositeEvalMetric([mx.metric.MAE()])])
    made = estimator(train_metrics=composite, val_metrics=mx.metric.RMSE())
    assert [m.name for m in made.train_metrics + made.val_metrics] == ["training mse", "training mae", "validation rmse"]


def test_evaluate_uses_its_own_network_and_loss():
    doubled = gluon.nn.HybridLambda(lambda F, x: 2 * x)
    made = estimator(val_net=doubled, val_loss=gluon.loss.L1Loss(), val_metrics=[mx.metric.MSE(), mx.metric.Loss("loss")])
    log = log_of(made)
    made.evaluate(loader())
    assert [m.get() for m in made.val_metrics] == [("validation mse", 0.0), ("validation loss", 0.0)]
    assert re.fullmatch(r"Validation Begin\n\[Epoch 0\] Finished in \d\.\d{3}s, validation mse: 0\.0000, validation loss: 0\.0000\n", log.getvalue())


def test_validation_during_training():
    made = estimator()
    log = log_of(made)
    made.fit(loader(), val_data=loader(4), epochs=2)
    lines = [re.sub(r"\d+\.\d{3}s", "#s", line) for line in log.getvalue().splitlines()]
    assert lines[:2] == ["Training begin: using optimizer SGD with current learning rate 0.5000 ", "Train for 2 epochs."]
    assert lines[2:4] == ["[Epoch 0] Begin, current learning rate: 0.5000", "Validation Begin"]
    assert lines[4].startswith("[Epoch 0] Finished in #s, validation l2loss: 0.2")
    assert lines[5].startswith("[Epoch 0] Finished in #s, training l2loss: 0.")
    assert re.match(r"Train finished using total \ds with 2 epochs. training l2loss: 0\.\d{4}$", lines[-1]) and len(lines) == 11


def test_own_batch_processor():
    class Twice:
        def fit_batch(self, estimator, train_batch, batch_axis=0):
            with mx.autograd.record():
                loss = estimator.loss(estimator.net(train_batch[0]) * 2, train_batch[1])
            loss.backward()
            return None, [train_batch[1]], [train_batch[0]], [loss]

        evaluate_batch = fit_batch

    made = estimator(batch_processor=Twice())
    made.fit(loader(), epochs=60)
    assert abs(made.net.weight.data().asscalar() - 1) < 1e-3


def test_default_handlers_are_added_and_sorted():
    made, recorder = estimator(), Recorder()
    given = [recorder]
    made.max_epoch, made.max_batch = 2, None
    handlers = made._prepare_default_handlers(loader(), given)
    assert [type(h) for h in handlers] == [GradientUpdateHandler, MetricHandler, ValidationHandler, Recorder, StoppingHandler, LoggingHandler]
    assert given == [recorder]
    own = [GradientUpdateHandler(), MetricHandler(made.train_metrics), ValidationHandler(loader(), made.evaluate), LoggingHandler()]
    assert len(made._prepare_default_handlers(loader(), own)) == 5


def test_handlers_may_only_refer_to_metrics_that_are_updated():
    made = estimator()
    with pytest.raises(ValueError, match=r"^LoggingHandler refers to EvalMetric: .*'rmse'.*, which nothing updates here; give it metrics out of"):
        made.fit(loader(), epochs=1, event_handlers=LoggingHandler(metrics=mx.metric.RMSE()))
    with pytest.raises(ValueError, match="MetricHandler refers to"):
        made.evaluate(loader(), event_handlers=MetricHandler(made.train_metrics))


@pytest.mark.parametrize("arguments, message", [
    ({"loss": "mse"}, "a gluon.loss.Loss expected as loss, received 'mse'"),
    ({"train_metrics": "acc"}, "an EvalMetric or a list of them expected, received 'acc'"),
    ({"trainer": "sgd"}, "a gluon.Trainer expected as trainer, received 'sgd'"),
    ({"context": "cpu"}, "a Context or a list of them expected as context, .* received 'cpu'"),
    ({"batch_processor": 3}, "has the methods fit_batch and evaluate_batch, received 3"),
])
def test_wrong_arguments(arguments, message):
    net = gluon.nn.Dense(1, in_units=1)
    net.initialize()
    with warnings.catch_warnings(), pytest.raises(ValueError, match=message):
        warnings.simplefilter("ignore")
        Estimator(net, **{"loss": gluon.loss.L2Loss(), **arguments})


def test_a_context_that_does_not_exist():
    with pytest.raises(AssertionError, match=r"there is no gpu\(100\) on this machine"):
        estimator(context=mx.gpu(100))


def test_wrong_arguments_of_fit():
    made = estimator()
    with pytest.raises(ValueError, match=r"a gluon.data.DataLoader expected as train_data, received <class 'list'>"):
        made.fit([1], epochs=1)
    with pytest.raises(ValueError, match="received epochs=None and batches=None"):
        made.fit(loader())
    with pytest.raises(ValueError, match="received epochs=1 and batches=1"):
        made.fit(loader(), epochs=1, batches=1)
    with pytest.raises(ValueError, match="an EventHandler or a list of them expected as event_handlers, received 7"):
        made.fit(loader(), epochs=1, event_handlers=7)


def test_an_initializer_is_for_what_has_no_value():
    with pytest.warns(UserWarning, match="Network already fully initialized"):
        assert estimator(initializer=mx.init.One()).net.weight.data().asscalar() == 0
    net = gluon.nn.Dense(1, in_units=1)
    with pytest.warns(UserWarning, match="No trainer"):
        Estimator(net, gluon.loss.L2Loss(), initializer=mx.init.One())
    assert net.weight.data().asscalar() == 1
