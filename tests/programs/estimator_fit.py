"""The training loop of gluon.contrib.estimator, with a handler of the program's own, checkpoints and early stopping."""
import logging
import tempfile

import numpy as np

import mxnet as mx
from mxnet import gluon
from mxnet.gluon.contrib.estimator import BatchEnd, CheckpointHandler, EarlyStoppingHandler, Estimator, LoggingHandler


class Losses(BatchEnd):
    """Keeps the mean loss of each batch."""

    def __init__(self):
        self.values = []

    def batch_end(self, estimator, *args, **kwargs):
        self.values.append(float(np.mean([loss.mean().asscalar() for loss in kwargs["loss"]])))


def spirals(count, seed=0):
    """Points of two arms that wind around each other."""
    rng = np.random.RandomState(seed)
    kind = rng.randint(0, 2, count)
    angle = rng.uniform(0.5, 2.5 * np.pi, count)
    points = np.stack([np.cos(angle + np.pi * kind), np.sin(angle + np.pi * kind)], axis=1) * angle[:, None] / 5
    return gluon.data.ArrayDataset((points + rng.normal(0, 0.03, points.shape)).astype("float32"), kind.astype("float32"))


def train(epochs=20):
    """The first and the last loss, and the accuracy on points that were not trained on."""
    np.random.seed(14)
    mx.random.seed(14)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(32, activation="tanh"), gluon.nn.Dense(32, activation="tanh"), gluon.nn.Dense(2))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    accuracy, losses = mx.metric.Accuracy(), Losses()
    estimator = Estimator(net, gluon.loss.SoftmaxCrossEntropyLoss(), train_metrics=accuracy, context=[mx.cpu()],
                          trainer=gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01}))
    estimator.logger.setLevel(logging.ERROR)
    loaders = [gluon.data.DataLoader(spirals(count, seed), batch_size=50, shuffle=True) for count, seed in ((600, 0), (200, 1))]
    with tempfile.TemporaryDirectory() as folder:
        estimator.fit(loaders[0], loaders[1], epochs=epochs, event_handlers=[
            losses, LoggingHandler(metrics=estimator.train_metrics), CheckpointHandler(folder, model_prefix="spirals", max_checkpoints=2),
            EarlyStoppingHandler(accuracy, patience=10, mode="max")])
    estimator.evaluate(loaders[1])
    return losses.values[0], losses.values[-1], dict(m.get() for m in estimator.val_metrics)


if __name__ == "__main__":
    print(train())
