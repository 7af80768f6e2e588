"""Whether networks on 8-bit integers see what they saw on real numbers: trained on hand-written digits, `make demo`'s, and scored on others.

    python benchmarks/agreement.py

Needs scikit-learn, which carries the digits, and no network. The table goes to `benchmarks/results/agreement.md`.
"""
import argparse
import os
import sys

import numpy as np
import peers

sys.path[:0] = [os.path.join(peers.ROOT, *folder) for folder in ((), ("src",), ("examples",), ("examples", "gluon"))]

import quantize  # noqa: E402  # the example
from train_digits import lenet  # noqa: E402

import mxnet as mx  # noqa: E402
from mxnet.contrib import quantization  # noqa: E402
from mxnet.gluon.model_zoo import vision  # noqa: E402

# Name: (how it is made, epochs).
NETWORKS = {"LeNet": (lambda: lenet(10), 8), "ResNet-18 v1": (lambda: vision.resnet18_v1(classes=10), 8),
            "MobileNet 0.25": (lambda: vision.MobileNet(0.25, classes=10), 20)}
TRAINED, CALIBRATED, BATCH = 1400, 512, 64
EQUAL, APART = 0.99, 0.005  # the goal


def integers(net, images, mode):
    """The network on 8-bit integers, compiled."""
    made = quantization.quantize_net_v2(net, calib_data=[images[i:i + BATCH] for i in range(0, len(images), BATCH)], calib_mode=mode)
    made.hybridize(static_alloc=True, static_shape=True)
    return made


def rows(images, labels):
    """(network, calibration, accuracy on real numbers, on integers, part of predictions that are equal)."""
    seen, expected = images[TRAINED:], labels[TRAINED:].asnumpy()
    for name, (make, epochs) in NETWORKS.items():
        mx.random.seed(0)
        np.random.seed(0)  # the order of images
        net = make()
        quantize.train(net, images[:TRAINED], labels[:TRAINED], epochs)
        before = quantize.predictions(net, seen, BATCH)
        for mode in ("naive", "entropy"):
            after = quantize.predictions(integers(net, images[:CALIBRATED], mode), seen, BATCH)
            yield name, mode, (before == expected).mean(), (after == expected).mean(), (before == after).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", default=os.path.join(peers.ROOT, "benchmarks", "results"))
    chosen = parser.parse_args()
    images, labels = quantize.digits()
    lines = ["# INT8 beside float32: what trained networks see", "", "`python benchmarks/agreement.py`", "",
             f"Goal, with the calibration `naive`: at least {EQUAL:.0%} of predictions equal, accuracy within {APART:.1%}.", "",
             f"{len(images) - TRAINED} images of hand-written digits; {TRAINED} others trained the networks, {CALIBRATED} of them calibrated.", "",
             "| network | calibration | accuracy, float32 | accuracy, INT8 | equal predictions | goal |", "|---|---|---|---|---|---|"]
    for name, mode, before, after, equal in rows(images, labels):
        met = "met" if equal >= EQUAL and abs(after - before) <= APART else "missed"
        lines.append(f"| {name} | {mode} | {before:.4f} | {after:.4f} | {equal:.4f} | {met if mode == 'naive' else '-'} |")
        print(lines[-1], flush=True)
    with open(os.path.join(chosen.results, "agreement.md"), "w") as file:
        file.write("\n".join([*lines, "", peers.versions(""), ""]))


if __name__ == "__main__":
    main()
