"""Compare the accuracy of INT8 networks with float32, on the hand-written digits of `make demo`.

    python benchmarks/int8_accuracy.py

Needs scikit-learn, which has the digits, and no network. The table goes to `benchmarks/results/int8_accuracy.md`.
"""
import argparse
import os
import sys

import numpy as np

from harness import common

sys.path[:0] = [os.path.join(common.ROOT, *folder) for folder in ((), ("src",), ("examples",), ("examples", "gluon"))]

import quantize  # noqa: E402  # examples/quantize.py
from train_digits import lenet  # noqa: E402

import mxnet as mx  # noqa: E402
from mxnet.contrib import quantization  # noqa: E402
from mxnet.gluon.model_zoo import vision  # noqa: E402

# Name: (constructor, epochs).
NETWORKS = {"LeNet": (lambda: lenet(10), 8), "ResNet-18 v1": (lambda: vision.resnet18_v1(classes=10), 8),
            "MobileNet 0.25": (lambda: vision.MobileNet(0.25, classes=10), 20)}
TRAINING_IMAGES, CALIBRATION_IMAGES, BATCH = 1400, 512, 64
MIN_EQUAL, MAX_DIFFERENCE = 0.99, 0.005  # the goal: equal predictions, difference of accuracies


def quantized(net, images, mode):
    """Return the INT8 network, hybridized."""
    int8_net = quantization.quantize_net_v2(net, calib_data=[images[i:i + BATCH] for i in range(0, len(images), BATCH)], calib_mode=mode)
    int8_net.hybridize(static_alloc=True, static_shape=True)
    return int8_net


def rows(images, labels):
    """Yield (network, calibration, accuracy in float32, in INT8, share of equal predictions)."""
    test_images, expected = images[TRAINING_IMAGES:], labels[TRAINING_IMAGES:].asnumpy()
    for name, (make, epochs) in NETWORKS.items():
        mx.random.seed(0)
        np.random.seed(0)  # the order of images
        net = make()
        quantize.train(net, images[:TRAINING_IMAGES], labels[:TRAINING_IMAGES], epochs)
        before = quantize.predictions(net, test_images, BATCH)
        for mode in ("naive", "entropy"):
            after = quantize.predictions(quantized(net, images[:CALIBRATION_IMAGES], mode), test_images, BATCH)
            yield name, mode, (before == expected).mean(), (after == expected).mean(), (before == after).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", default=common.RESULTS, help="the folder for the table")
    args = parser.parse_args()
    images, labels = quantize.digits()
    lines = ["# Accuracy in INT8 and float32", "", "`python benchmarks/int8_accuracy.py`", "",
             f"Goal, with the calibration `naive`: at least {MIN_EQUAL:.0%} of predictions equal, accuracy within {MAX_DIFFERENCE:.1%}.", "",
             f"{len(images) - TRAINING_IMAGES} images of hand-written digits; {TRAINING_IMAGES} others trained the networks, "
             f"{CALIBRATION_IMAGES} of them calibrated.", "",
             "| network | calibration | accuracy, float32 | accuracy, INT8 | equal predictions | goal |", "|---|---|---|---|---|---|"]
    for name, mode, before, after, equal in rows(images, labels):
        met = "met" if equal >= MIN_EQUAL and abs(after - before) <= MAX_DIFFERENCE else "missed"
        lines.append(f"| {name} | {mode} | {before:.4f} | {after:.4f} | {equal:.4f} | {met if mode == 'naive' else '-'} |")
        print(lines[-1], flush=True)
    with open(os.path.join(args.results, "int8_accuracy.md"), "w") as file:
        file.write("\n".join([*lines, "", common.versions(""), ""]))


if __name__ == "__main__":
    main()
