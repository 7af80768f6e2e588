"""Plans for the quantization of a node: its replacement in a quantized network."""
from typing import Any, NamedTuple, Optional

from ..registry import Operator


class Plan(NamedTuple):
    """The replacement of a node by an operator on quantized arrays.

    Attributes
    ----------
    operator : Operator
        The replacement.
    attrs : dict of str to str
        Attributes added to the node's.
    must : bool
        True if ``smart`` quantization always converts such nodes, which multiply matrices; it converts others only between two of them.
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
    """Return the plan for a use of an operator with all its attributes, or None if it has no quantized form."""
    return None if operator.quantization is None else operator.quantization(attributes, channel_wise)
