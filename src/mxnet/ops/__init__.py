"""The operators: one decorated function each, over torch tensors, grouped into families by file."""
from . import (accumulation, bits, creation, diagonals, elemwise, graph_sampling, histogram, image, indexing, linalg, nn, optimizer_update,
               quantization, random, reduce, sequence, shape, sort, spatial, storage)
from .registry import OPERATORS, Operator, get, op

__all__ = ["OPERATORS", "Operator", "get", "op"]
