"""Trains the demo's network on hand-written digits, quantizes it to 8-bit integers, and shows accuracy and speed before and after.

    python examples/quantize.py [--calib-mode naive] [--epochs 6] [--batch-size 64]

Needs scikit-learn, which carries the digits.
"""
import argparse
import os
import sys
import time

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.contrib import quantization

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gluon"))
from train_digits import lenet  # noqa: E402


def digits():
    """1797 images of 28 x 28 pixels, shuffled, and what they show: arrays."""
    from sklearn.datasets import load_digits
    dataset = load_digits()
    order = np.random.RandomState(0).permutation(len(dataset.target))
    images = np.kron(dataset.images[order] / 16, np.ones((1, 3, 3))).astype("float32")
    return nd.array(np.pad(images, ((0, 0), (2, 2), (2, 2)))[:, None]), nd.array(dataset.target[order])


def train(net, data, labels, epochs, batch_size=64):
    """Train a network; its learning rate falls along a cosine."""
    net.initialize(mx.init.Xavier())
    net.hybridize()
    schedule = mx.lr_scheduler.CosineScheduler(epochs * -(-len(data) // batch_size), 0.05)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05, "momentum": 0.9, "lr_scheduler": schedule})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(epochs):
        for batch, label in gluon.data.DataLoader(gluon.data.ArrayDataset(data, labels), batch_size, shuffle=True):
            with autograd.record():
                total = loss(net(batch), label)
            total.backward()
            trainer.step(len(batch))


def predictions(net, data, batch_size):
    """Return the predicted class of each image."""
    return np.concatenate([net(data[i:i + batch_size]).asnumpy().argmax(1) for i in range(0, len(data), batch_size)])


def images_per_second(nets, batch, seconds=1.0):
    """Return the throughput of each network, measured in turns."""
    times = [[] for _ in nets]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for net, taken in zip(nets, times):
            start = time.perf_counter()
            net(batch).wait_to_read()
            taken.append(time.perf_counter() - start)
    return [len(batch) / np.median(taken) for taken in times]


def main(arguments=None):
    """Run the program; returns the accuracies before and after, and the part of predictions that are equal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calib-mode", choices=["naive", "entropy"], default="naive", help="where the ranges of layers come from")
    parser.add_argument("--epochs", type=int, default=6, help="passes over the training images")
    parser.add_argument("--batch-size", type=int, default=64, help="of the images whose speed is measured")
    options = parser.parse_args(arguments)
    mx.random.seed(0)
    data, labels = digits()
    data_test, labels_test = data[1400:], labels[1400:].asnumpy()
    net = lenet(10)
    train(net, data[:1400], labels[:1400], options.epochs)
    calibration = gluon.data.DataLoader(gluon.data.ArrayDataset(data[:256], labels[:256]), 64)
    start = time.perf_counter()
    quantized = quantization.quantize_net_v2(net, quantized_dtype="auto", calib_data=calibration, calib_mode=options.calib_mode)
    print(f"quantized and calibrated in {time.perf_counter() - start:.1f} s\n\n{quantization.compare(net, quantized, data[:64])}\n")
    for one in (net, quantized):
        one.hybridize(static_alloc=True, static_shape=True)
    before, after = (predictions(one, data_test, options.batch_size) for one in (net, quantized))
    rates = images_per_second([net, quantized], data_test[:options.batch_size])
    accuracies = [(p == labels_test).mean() for p in (before, after)]
    for name, accuracy, rate in zip(("float32", "INT8"), accuracies, rates):
        print(f"{name:8} accuracy {accuracy:.4f}  {rate:10.0f} images/s")
    agreement = (before == after).mean()
    print(f"equal predictions: {agreement:.4f}; {rates[1] / rates[0]:.2f} times as fast")
    return (*accuracies, agreement)


if __name__ == "__main__":
    main()
