"""Inputs of the networks, the same numbers in all processes."""
import numpy as np

CALIBRATION = 32  # images for calibration where quantizing itself is measured


def is_recurrent(name):
    """Return True if the network consists of recurrent layers, over (time, batch, channels)."""
    return name.startswith(("lstm", "gru"))


def shape(name, batch):
    """Return the shape of a network's input."""
    if is_recurrent(name):
        return (50, batch, int(name.split("x")[1]))
    if name in ("mlp", "transformer"):
        return (batch, 784) if name == "mlp" else (batch, 128, 768)
    size = {"inception-v3": 299, "iresnet100": 112}.get(name, 224)
    return (batch, 3, size, size)


def example(name, batch):
    """Return a batch of random numbers from a fixed seed."""
    return np.random.RandomState(0).standard_normal(shape(name, batch)).astype(np.float32)
