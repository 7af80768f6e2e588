"""Detection of changes of weights from which something was derived."""
import operator
from collections.abc import Sequence

import torch

from ..ndarray import mutation_tracking

_version = operator.attrgetter("_version")


class WeightGuard:
    """A guard of weights from which something was derived: it detects writes and replacements.

    Attributes
    ----------
    stale : bool
        True once a weight was written to.
    compares : bool
        If True, torch's version counters are compared: a weight is accessible as a torch tensor.
    """

    def __init__(self, weights: Sequence[torch.Tensor]):
        self.weights, self.stale, self.compares = list(weights), False, False
        self.addresses, self.versions = [w.data_ptr() for w in weights], list(map(_version, weights))
        mutation_tracking.watch(weights, self)

    def holds_unread(self) -> bool:
        """Return True if the guarded tensors have not changed, provided that this can be told without access to them."""
        return not self.stale and not self.compares

    def holds(self, current: Sequence[torch.Tensor]) -> bool:
        """Return True if these are the guarded tensors, and none of them has changed."""
        if self.stale:
            return False
        # Networks have hundreds of weights, none of them in a cache after a run: objects are compared by identity, without access to their fields.
        if self.compares and list(map(_version, current)) != self.versions:
            return False
        return len(current) == len(self.weights) and all(map(operator.is_, current, self.weights)) or all(
            t is w or t.data_ptr() == address and t.shape == w.shape and t.stride() == w.stride() and t.dtype is w.dtype
            for t, w, address in zip(current, self.weights, self.addresses, strict=True))
