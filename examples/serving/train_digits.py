"""Train a small classifier of digits, and write what the server needs: the network, its parameters, its input, and the names of its classes.

    python train_digits.py models/digits              # needs scikit-learn, for its images of 8 x 8 pixels
"""
import argparse
import json
import pathlib

import cv2
import numpy as np
from sklearn.datasets import load_digits

import mxnet as mx
from mxnet.gluon import Trainer, loss, nn


def train(images, labels, epochs=20):
    """Return a network whose outputs are probabilities."""
    mx.random.seed(1)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, padding=1, activation="relu"), nn.MaxPool2D(), nn.Dense(64, activation="relu"), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer, error = Trainer(net.collect_params(), "adam", {"learning_rate": 0.001}), loss.SoftmaxCrossEntropyLoss()
    for _ in range(epochs):
        for at in range(0, len(images), 64):
            x, y = mx.nd.array(images[at:at + 64]), mx.nd.array(labels[at:at + 64])
            with mx.autograd.record():
                value = error(net(x), y)
            value.backward()
            trainer.step(len(x))
    out = nn.HybridSequential()
    out.add(net, nn.HybridLambda(lambda F, x: F.softmax(x)))
    out.hybridize()
    return out


def main(folder):
    """Train, export, and write an image for a request."""
    digits = load_digits()
    images = (digits.images[:, None] * (255 / 16)).astype(np.float32)
    net = train(images[:1500], digits.target[:1500])
    right = (net(mx.nd.array(images[1500:])).asnumpy().argmax(axis=1) == digits.target[1500:]).mean()
    print(f"accuracy {right:.3f}")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    net.export(str(folder / "digits"))
    (folder / "signature.json").write_text(json.dumps({"inputs": [{"data_name": "data", "data_shape": [0, 1, 8, 8]}], "input_type": "image/jpeg"}))
    (folder / "synset.txt").write_text("".join(f"{i}\n" for i in range(10)))
    cv2.imwrite(str(folder.parent / "digit.png"), images[1501, 0].astype(np.uint8))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the folder for the model")
    main(parser.parse_args().folder)
