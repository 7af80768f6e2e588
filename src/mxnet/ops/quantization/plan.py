"""What becomes of one use of an operator when its network is quantized."""
from typing import Any, NamedTuple, Optional

from ..registry import Operator


class Plan(NamedTuple):
    """How a node runs on integers.

    Attributes
    ----------
    operator : Operator
        The one that takes its place.
    attrs : dict of str to str
        What the node's attributes get in addition.
    must : bool
        Whether ``smart`` quantization starts from such nodes: they multiply matrices. Others follow where they stand between two of them.
    real : frozenset of int
        The inputs that stay real numbers.
    shifted : frozenset of int
        The inputs that `quantize_asym` makes, with a scale and a shift.
    wide : bool
        The results are int32 as long as they have no calibrated range, so that a `requantize` follows.
    returns_real : bool
        The results are real numbers.
    """

    operator: Operator
    attrs: dict[str, str]
    must: bool = False
    real: frozenset[int] = frozenset()
    shifted: frozenset[int] = frozenset()
    wide: bool = False
    returns_real: bool = False


def plan_of(operator: Operator, attributes: dict[str, Any], channel_wise: bool = False) -> Optional[Plan]:
    """The plan for a use of an operator with these attributes (all of them), or None if it has no form on integers."""
    return None if operator.quantization is None else operator.quantization(attributes, channel_wise)
