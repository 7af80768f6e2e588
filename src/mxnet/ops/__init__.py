"""What operators compute: one decorated function each, over torch tensors, in families by file."""
from . import creation, elemwise, image, indexing, linalg, nn, optimizer_update, random, reduce, sequence, shape, sort, storage, spatial  # noqa: F401
from .registry import OPERATORS, Operator, get, op

__all__ = ["OPERATORS", "Operator", "get", "op"]
