"""The converters, by family."""
from . import (
    attention,
    boxes,
    creation,
    elemwise,
    indexing,
    layers,
    linalg,
    normalization,
    pooling,
    random,
    reduce,
    rnn,
    sequence,
    shape,
    sort,
    spatial,
)
