"""Weights that something was made of, until one of them changes."""
import operator
from collections.abc import Sequence

import torch

from ..ndarray import writes

_version = operator.attrgetter("_version")


class WeightGuard:
    """The tensors that something was made of.

    Attributes
    ----------
    stale : bool
        True once one was written to.
    compares : bool
        Whether torch's version counters have to be looked at: somebody holds one as a torch tensor.
    """

    def __init__(self, weights: Sequence[torch.Tensor]):
        self.weights, self.stale, self.compares = list(weights), False, False
        self.addresses, self.versions = [w.data_ptr() for w in weights], list(map(_version, weights))
        writes.watch(weights, self)

    def holds(self, current: Sequence[torch.Tensor]) -> bool:
        """Whether these are the same, unchanged."""
        if self.stale:
            return False
        # Networks have hundreds of weights, and after a run none of them is in a cache: they are compared without being looked at.
        if self.compares and list(map(_version, current)) != self.versions:
            return False
        return len(current) == len(self.weights) and all(map(operator.is_, current, self.weights)) or all(
            t is w or t.data_ptr() == address and t.shape == w.shape and t.stride() == w.stride() and t.dtype is w.dtype
            for t, w, address in zip(current, self.weights, self.addresses, strict=True))
