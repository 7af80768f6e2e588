"""Operators of neural networks: layers, normalizations, activations, output layers."""
from . import (
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
    sliding_attention,
    softmax,
)
