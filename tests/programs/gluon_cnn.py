"""A small convolutional network in Gluon tells horizontal, vertical and diagonal bars apart."""
import os
import tempfile

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn


def bars(count, size=16, seed=0):
    """Noisy pictures of one bar each, and its direction: 0 across, 1 up, 2 falling, 3 rising."""
    rng = np.random.RandomState(seed)
    images = rng.normal(0, 0.3, (count, 1, size, size)).astype("float32")
    labels = rng.randint(0, 4, count)
    for image, label in zip(images[:, 0], labels):
        at, steps = rng.randint(3, size - 3), np.arange(size)
        if label == 0:
            image[at] += 1
        elif label == 1:
            image[:, at] += 1
        else:
            columns = (steps if label == 2 else steps[::-1]) + at - size // 2
            inside = (columns >= 0) & (columns < size)
            image[steps[inside], columns[inside]] += 1
    return images, labels.astype("float32")


class Net(gluon.HybridBlock):
    def __init__(self, classes, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(),
                              nn.Conv2D(16, 3, padding=1, activation="relu"), nn.GlobalAvgPool2D(), nn.Flatten())
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F, x):
        return self.output(F.Dropout(self.features(x), p=0.1))


def train(epochs=6, ctx=None):
    """Accuracy on pictures that the network has not seen, before and after saving and loading it."""
    ctx = ctx or mx.cpu()
    np.random.seed(1)
    mx.random.seed(1)
    data = gluon.data.ArrayDataset(*bars(512))
    loader = gluon.data.DataLoader(data, batch_size=32, shuffle=True, last_batch="rollover")
    net = Net(4)
    net.initialize(mx.init.Xavier(magnitude=2.24), ctx=ctx)
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(epochs):
        for x, y in loader:
            x, y = x.as_in_context(ctx), y.as_in_context(ctx)
            with autograd.record():
                error = loss(net(x), y)
            error.backward()
            trainer.step(x.shape[0])

    def accuracy(network):
        metric = mx.metric.CompositeEvalMetric([mx.metric.Accuracy(), mx.metric.TopKAccuracy(2)])
        x, y = bars(256, seed=5)
        metric.update(mx.nd.array(y, ctx=ctx), network(mx.nd.array(x, ctx=ctx)))
        return dict(metric.get_name_value())["accuracy"]

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bars")
        net.export(path, epoch=epochs)
        again = gluon.SymbolBlock.imports(path + "-symbol.json", ["data"], f"{path}-{epochs:04}.params", ctx=ctx)
        return accuracy(net), accuracy(again)


if __name__ == "__main__":
    print(train())
