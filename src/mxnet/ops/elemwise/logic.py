"""Comparisons and logic on two arrays. The result is 0 or 1 in the type of the inputs; no gradient flows through."""
from functools import partial

import torch

from ._common import truth
from .binary import elementwise_pair

_LARGE = 4096  # elements


def _comparison(function, doc, name, old_name):
    def compare(lhs, rhs):
        return truth(function, lhs, rhs)

    _register(compare, doc, name, old_name)


def _logical(function, combine, doc, name, old_name):
    def compare(lhs, rhs):
        if lhs.numel() < _LARGE:
            return truth(function, lhs, rhs)
        # Torch's logical operators take three times as long as this on anything but booleans.
        return combine(truth(torch.ne, lhs, 0), truth(torch.ne, rhs, 0))

    _register(compare, doc, name, old_name)


def _register(compare, doc, name, old_name):
    elementwise_pair(compare, f"1 where {doc}, 0 elsewhere.", (f"_{name}", old_name), (f"broadcast_{name}",), amp="widest")


_comparison(torch.eq, "both are equal", "equal", "_Equal")
_comparison(torch.ne, "they differ", "not_equal", "_Not_Equal")
_comparison(torch.gt, "the first is greater", "greater", "_Greater")
_comparison(torch.ge, "the first is greater or equal", "greater_equal", "_Greater_Equal")
_comparison(torch.lt, "the first is smaller", "lesser", "_Lesser")
_comparison(torch.le, "the first is smaller or equal", "lesser_equal", "_Lesser_Equal")
_logical(torch.logical_and, torch.mul, "both are other than 0", "logical_and", "_Logical_And")
_logical(torch.logical_or, torch.maximum, "one is other than 0", "logical_or", "_Logical_Or")
_logical(torch.logical_xor, partial(truth, torch.ne), "exactly one is other than 0", "logical_xor", "_Logical_Xor")
