"""What networks are trained with: the same batches in all processes, from which there is something to learn.

A name says what the network is, and for some its layers and width: lenet, lm2x64.
"""
import re

import numpy as np

WORDS, IN_USE = 1000, 50  # of language models and encoders: how many they know, and how many of these follow one another
TEXT, SENTENCE, WAVE = 35, 64, 48  # lengths: a language model's, an encoder's and a forecaster's
IMAGES = {"lenet": (1, 28, 28), "resnet18-thin": (3, 32, 32), "resnet8": (3, 32, 32), "resnet18-wide": (3, 224, 224)}
# Learning rates for SGD and Adam; where none stand, 0.01 and 0.001.
RATES = {"lenet": (1e-3, 1e-4), "resnet8": (1e-3, 1e-4), "resnet18-thin": (3e-4, 3e-5), "resnet18-wide": (1e-3, 1e-4), "lm": (0.2, 1e-3)}


def size(name):
    """(kind, layers, width) of a name such as lm2x64."""
    kind, layers, width = re.fullmatch(r"([a-z]+)(\d+)x(\d+)", name).groups()
    return kind, int(layers), int(width)


def heads(width):
    """How many heads an encoder of that width has."""
    return max(width // 64, 2)


def batch(name, count, seed=0):
    """`count` examples and what the network should make of them, as float32 arrays."""
    random = np.random.RandomState(seed)
    if name.startswith("lm"):
        text = _text(random, TEXT, count).T
        return np.ascontiguousarray(text[:-1]), np.ascontiguousarray(text[1:])
    if name.startswith("encoder"):
        text = _text(random, SENTENCE, count)
        return np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(text[:, 1:])
    if name.startswith("deepar"):
        time = np.arange(WAVE + 1) / 6 + random.uniform(0, 6, (count, 1))
        wave = random.uniform(0.5, 1.5, (count, 1)) * np.sin(time) + 0.1 * random.standard_normal(time.shape)
        known = [np.sin(time[:, 1:] / k) for k in range(1, 8)]
        return np.stack([wave[:, :-1], *known], 2).astype(np.float32), wave[:, 1:].astype(np.float32)
    shape, label = IMAGES.get(name, (784,)), random.randint(10, size=count)
    kinds = np.random.RandomState(1000).standard_normal((10, *shape))
    return (0.5 * kinds[label] + random.standard_normal((count, *shape))).astype(np.float32), label.astype(np.float32)


def settings(name, optimizer):
    """The parameters of the optimizer."""
    sgd, adam = next((rates for start, rates in RATES.items() if name.startswith(start)), (0.01, 1e-3))
    return {"learning_rate": sgd, "momentum": 0.9} if optimizer == "sgd" else {"learning_rate": adam}


def _text(random, length, count):
    """`length` + 1 words for each of `count`; each follows from the one before it, except for every tenth."""
    text = [random.randint(IN_USE, size=count)]
    for _ in range(length):
        text.append(np.where(random.rand(count) < 0.1, random.randint(WORDS, size=count), (7 * text[-1] + 3) % IN_USE))
    return np.stack(text, 1).astype(np.float32)
