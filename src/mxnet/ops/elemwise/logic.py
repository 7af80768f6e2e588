"""Comparisons and logic on two arrays. The result is 0 or 1 in the type of the inputs; no gradient flows through."""
import torch

from ._common import truth
from .binary import elementwise_pair


def _comparison(function, doc, name, old_name):
    def compare(lhs, rhs):
        return truth(function, lhs, rhs)

    elementwise_pair(compare, f"1 where {doc}, 0 elsewhere.", (f"_{name}", old_name), (f"broadcast_{name}",))


_comparison(torch.eq, "both are equal", "equal", "_Equal")
_comparison(torch.ne, "they differ", "not_equal", "_Not_Equal")
_comparison(torch.gt, "the first is greater", "greater", "_Greater")
_comparison(torch.ge, "the first is greater or equal", "greater_equal", "_Greater_Equal")
_comparison(torch.lt, "the first is smaller", "lesser", "_Lesser")
_comparison(torch.le, "the first is smaller or equal", "lesser_equal", "_Lesser_Equal")
_comparison(torch.logical_and, "both are other than 0", "logical_and", "_Logical_And")
_comparison(torch.logical_or, "one is other than 0", "logical_or", "_Logical_Or")
_comparison(torch.logical_xor, "exactly one is other than 0", "logical_xor", "_Logical_Xor")
