"""Trains 1,000,000 classes, or as many as it is told, on one process, and prints a line of JSON. usage: classes_worker.py CLASSES FRACTION STEPS
[BATCH [MOMENTUM]]

The planted task: each class has a random direction of 512 numbers, and samples are directions with noise; few classes have many samples, so that
what was learned can be tested. `FRACTION` of the classes are sampled in each step; 1 is the full softmax.
"""
import json
import statistics
import sys
import time

import numpy as np

import mxnet as mx
from harness import worker_protocol

CLASSES, FRACTION, STEPS = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
BATCH = int(sys.argv[4]) if len(sys.argv) > 4 else 128
MOMENTUM = float(sys.argv[5]) if len(sys.argv) > 5 else 0
FEATURES, COMMON, NOISE = 512, 512, 0.12


def batch(numbers, directions):
    """Samples of the common classes, which are spread over all."""
    which = numbers.randint(0, len(directions), BATCH)
    noisy = directions[which] + NOISE * numbers.standard_normal((BATCH, FEATURES))
    return mx.nd.array(noisy), mx.nd.array(which * (CLASSES // len(directions)), dtype="int64")


def main():
    numbers = np.random.RandomState(0)
    directions = numbers.standard_normal((min(COMMON, CLASSES), FEATURES)) / FEATURES ** 0.5
    head = mx.gluon.nn.ShardedDense(CLASSES, in_units=FEATURES, use_bias=False, normalize=True, sampled=FRACTION)
    before = worker_protocol.high_water()
    head.initialize(mx.init.Normal(0.01))
    weights = worker_protocol.high_water() - before
    trainer = mx.gluon.Trainer(head.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": MOMENTUM, "lazy_update": True})
    loss = mx.gluon.loss.ShardedSoftmaxCELoss(scale=32)
    seconds = []
    for _ in range(STEPS):
        x, y = batch(numbers, directions)
        start = time.perf_counter()
        with mx.autograd.record():
            out = loss(head(x), y)
        out.backward()
        trainer.step(BATCH)
        seconds.append(time.perf_counter() - start)
    peak = worker_protocol.high_water() - before
    right = []
    for _ in range(4):
        x, y = batch(numbers, directions)
        right.append(float((head(x).argmax().asnumpy() == y.asnumpy()).mean()))
    print(json.dumps({"seconds": statistics.median(seconds[1:]), "peak": peak, "weights": weights, "accuracy": statistics.mean(right),
                      "loss": float(out.mean().asscalar())}))


if __name__ == "__main__":
    main()
