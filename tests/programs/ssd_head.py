"""A single-shot detector finds bright squares: MultiBoxPrior, MultiBoxTarget and MultiBoxDetection."""
import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


def scenes(count, size=32, seed=0):
    """Noisy pictures with a square each, bright (class 0) or dark (class 1), and (class, left, top, right, bottom) in parts of the picture."""
    rng = np.random.RandomState(seed)
    images = rng.normal(0, 0.1, (count, 1, size, size)).astype("float32")
    labels = np.zeros((count, 1, 5), "float32")
    for image, label in zip(images[:, 0], labels[:, 0]):
        side = rng.randint(8, 14)
        left, top = rng.randint(0, size - side, 2)
        kind = rng.randint(2)
        image[top:top + side, left:left + side] += 1 - 2 * kind
        label[:] = (kind, left / size, top / size, (left + side) / size, (top + side) / size)
    return nd.array(images), nd.array(labels)


class Detector(gluon.HybridBlock):
    """Features of stride 4, 3 boxes at each place, 2 classes and the background."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.body = nn.HybridSequential()
            for channels in (8, 16):
                self.body.add(nn.Conv2D(channels, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D())
            self.body.add(nn.Conv2D(24, 3, padding=1, activation="relu"))
            self.classes = nn.Conv2D(3 * 3, 3, padding=1)
            self.boxes = nn.Conv2D(3 * 4, 3, padding=1)

    def hybrid_forward(self, F, x):
        features = self.body(x)
        anchors = F.contrib.MultiBoxPrior(features, sizes=(0.25, 0.34, 0.42), ratios=(1,))
        classes = F.transpose(self.classes(features), axes=(0, 2, 3, 1)).reshape((0, -1, 3))
        boxes = F.transpose(self.boxes(features), axes=(0, 2, 3, 1)).reshape((0, -1))
        return anchors, classes, boxes


def overlap(a, b):
    """Intersection over union of two boxes."""
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def train(epochs=8, batch=32):
    """The share of unseen pictures whose best detection has the right class and overlaps by more than half."""
    np.random.seed(8)
    mx.random.seed(8)
    net = Detector()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.2, "wd": 5e-4, "momentum": 0.9})
    class_loss, box_loss = gluon.loss.SoftmaxCrossEntropyLoss(), gluon.loss.HuberLoss()
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(*scenes(512)), batch_size=batch, shuffle=True)
    for _ in range(epochs):
        for x, y in loader:
            with autograd.record():
                anchors, classes, boxes = net(x)
                with autograd.pause():
                    targets = nd.contrib.MultiBoxTarget(anchors, y, classes.transpose((0, 2, 1)), overlap_threshold=0.5,
                                                        negative_mining_ratio=3, negative_mining_thresh=0.5)
                box_target, box_mask, class_target = targets
                valid = (class_target >= 0).expand_dims(2)
                error = class_loss(classes, class_target, valid) + 4 * box_loss(boxes * box_mask, box_target * box_mask)
            error.backward()
            trainer.step(x.shape[0])
    x, y = scenes(100, seed=3)
    anchors, classes, boxes = net(x)
    found = nd.contrib.MultiBoxDetection(nd.softmax(classes).transpose((0, 2, 1)), boxes, anchors, nms_threshold=0.45).asnumpy()
    hits = 0
    for rows, label in zip(found, y[:, 0].asnumpy()):
        best = rows[rows[:, 1].argmax()]
        hits += best[0] == label[0] and overlap(best[2:], label[1:]) > 0.5
    return hits / 100


if __name__ == "__main__":
    print(train())
