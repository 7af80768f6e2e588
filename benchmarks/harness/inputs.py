"""The inputs of the networks: the same numbers in all processes."""
import numpy as np

CALIBRATION = 32  # images that a network is quantized with, where that is what is measured


def recurs(name):
    """Whether the network is made of recurrent layers, over (time, batch, channels)."""
    return name.startswith(("lstm", "gru"))


def shape(name, batch):
    """The shape of a network's input."""
    if recurs(name):
        return (50, batch, int(name.split("x")[1]))
    if name in ("mlp", "transformer"):
        return (batch, 784) if name == "mlp" else (batch, 128, 768)
    size = {"inception-v3": 299, "iresnet100": 112}.get(name, 224)
    return (batch, 3, size, size)


def example(name, batch):
    """A batch of random numbers from a fixed seed."""
    return np.random.RandomState(0).standard_normal(shape(name, batch)).astype(np.float32)
