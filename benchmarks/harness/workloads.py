"""Training workloads: synthetic batches that can be learned, the same in all processes, and the optimizers' settings.

A name gives the kind of the network, and for some the number of layers and their width: lenet, lm2x64.
"""
import re

import numpy as np

VOCABULARY, FREQUENT = 1000, 50  # words of language models and encoders, and those that follow one another by a rule
LM_LENGTH, ENCODER_LENGTH, FORECAST_LENGTH = 35, 64, 48
IMAGES = {"lenet": (1, 28, 28), "resnet18-thin": (3, 32, 32), "resnet8": (3, 32, 32), "resnet18-wide": (3, 224, 224)}
# Learning rates for SGD and Adam; the default is 0.01 and 0.001.
RATES = {"lenet": (1e-3, 1e-4), "resnet8": (1e-3, 1e-4), "resnet18-thin": (3e-4, 3e-5), "resnet18-wide": (1e-3, 1e-4), "lm": (0.2, 1e-3)}


def size(name):
    """Return (kind, layers, width) of a name such as lm2x64."""
    kind, layers, width = re.fullmatch(r"([a-z]+)(\d+)x(\d+)", name).groups()
    return kind, int(layers), int(width)


def heads(width):
    """Return the number of attention heads of an encoder of that width."""
    return max(width // 64, 2)


def batch(name, count, seed=0):
    """Return `count` examples and their labels, as float32 arrays."""
    random = np.random.RandomState(seed)
    if name.startswith("lm"):
        text = _text(random, LM_LENGTH, count).T
        return np.ascontiguousarray(text[:-1]), np.ascontiguousarray(text[1:])
    if name.startswith("encoder"):
        text = _text(random, ENCODER_LENGTH, count)
        return np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(text[:, 1:])
    if name.startswith("deepar"):
        time = np.arange(FORECAST_LENGTH + 1) / 6 + random.uniform(0, 6, (count, 1))
        wave = random.uniform(0.5, 1.5, (count, 1)) * np.sin(time) + 0.1 * random.standard_normal(time.shape)
        covariates = [np.sin(time[:, 1:] / k) for k in range(1, 8)]
        return np.stack([wave[:, :-1], *covariates], 2).astype(np.float32), wave[:, 1:].astype(np.float32)
    shape, label = IMAGES.get(name, (784,)), random.randint(10, size=count)
    class_means = np.random.RandomState(1000).standard_normal((10, *shape))
    return (0.5 * class_means[label] + random.standard_normal((count, *shape))).astype(np.float32), label.astype(np.float32)


def settings(name, optimizer):
    """Return the parameters of the optimizer."""
    sgd, adam = next((rates for start, rates in RATES.items() if name.startswith(start)), (0.01, 1e-3))
    return {"learning_rate": sgd, "momentum": 0.9} if optimizer == "sgd" else {"learning_rate": adam}


def _text(random, length, count):
    """Return `length` + 1 words for each of `count`; nine in ten are determined by the word before."""
    text = [random.randint(FREQUENT, size=count)]
    for _ in range(length):
        text.append(np.where(random.rand(count) < 0.1, random.randint(VOCABULARY, size=count), (7 * text[-1] + 3) % FREQUENT))
    return np.stack(text, 1).astype(np.float32)
