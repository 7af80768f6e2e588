"""Translations of ONNX's operators, by family; importing this package fills `registry.TRANSLATIONS`."""
from .. import folding
from . import (activation, control, counting, creation, dense, detection, elemwise, indexing, normalization, pooling, quantizing, reduce, resizing,
               rnn, sequences, shape, signal, slicing, spatial, training)
