"""Comparisons and logic on two arrays. The result is 0 or 1 in the type of the inputs; no gradient flows through."""
from functools import partial

import torch

from .binary import elementwise_pair
from .common import truth

_LARGE = 4096  # elements


def _comparison(function, doc, name, old_name, result):
    def compare(lhs, rhs):
        return truth(function, lhs, rhs)

    _register(compare, doc, name, old_name, "[[1, 2]] and [[1], [2]]", result)


def _logical(function, combine, doc, name, old_name, result):
    def compare(lhs, rhs):
        if lhs.numel() < _LARGE:
            return truth(function, lhs, rhs)
        # Torch's logical operators take three times as long as this on anything but booleans.
        return combine(truth(torch.ne, lhs, 0), truth(torch.ne, rhs, 0))

    _register(compare, doc, name, old_name, "[[0, 5]] and [[0], [3]]", result)


def _register(compare, doc, name, old_name, inputs, result):
    elementwise_pair(compare, f"1 where {doc}, 0 elsewhere.", (f"_{name}", old_name), (f"broadcast_{name}",), f"{inputs} -> {result}",
                     amp="widest")


_comparison(torch.eq, "both are equal", "equal", "_Equal", "[[1., 0.], [0., 1.]]")
_comparison(torch.ne, "they differ", "not_equal", "_Not_Equal", "[[0., 1.], [1., 0.]]")
_comparison(torch.gt, "the first is greater", "greater", "_Greater", "[[0., 1.], [0., 0.]]")
_comparison(torch.ge, "the first is greater or equal", "greater_equal", "_Greater_Equal", "[[1., 1.], [0., 1.]]")
_comparison(torch.lt, "the first is smaller", "lesser", "_Lesser", "[[0., 0.], [1., 0.]]")
_comparison(torch.le, "the first is smaller or equal", "lesser_equal", "_Lesser_Equal", "[[1., 0.], [1., 1.]]")
_logical(torch.logical_and, torch.mul, "both are other than 0", "logical_and", "_Logical_And", "[[0., 0.], [0., 1.]]")
_logical(torch.logical_or, torch.maximum, "one is other than 0", "logical_or", "_Logical_Or", "[[0., 1.], [1., 1.]]")
_logical(torch.logical_xor, partial(truth, torch.ne), "exactly one is other than 0", "logical_xor", "_Logical_Xor", "[[0., 1.], [1., 0.]]")
