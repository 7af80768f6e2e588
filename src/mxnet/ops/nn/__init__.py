"""Operators of neural networks: layers, normalizations, activations, output layers."""
from . import (  # noqa: F401
    activation,
    attention,
    contrib,
    convolution,
    ctc,
    dense,
    dropout,
    embedding,
    normalization,
    output_layers,
    pooling,
    rnn,
    softmax,
)
