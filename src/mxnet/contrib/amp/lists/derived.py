"""AMP's lists of names, derived from the operators' trait ``amp``.

MXNet's lists hold spellings: each name and alias of an operator, but those that ``mx.np`` has for it. A few spellings stand in another list
there than the operator they mean, and a few name what only MXNet has; a list that is to be the same names these.
"""
from __future__ import annotations

from collections.abc import Sequence

from ....ops.registry import OPERATORS


def spellings(low: str, *precisions: str, without: Sequence[str] = (), besides: Sequence[str] = ()) -> list[str]:
    """Return the names of all operators that run so under mixed precision with the type `low`, but those in `without`; and those in `besides`."""
    names = (name for name, op in OPERATORS.items()
             if not name.startswith("_np") and op.float32_when is None and op.precision(low) in precisions and name not in without)
    return [*names, *besides]


def conditional(low: str) -> list[tuple[str, str, list[str]]]:
    """Return the operators that run in float32 with some values of an attribute: (operator, attribute, values)."""
    return [(op.name, op.float32_when[0], list(op.float32_when[1])) for name, op in OPERATORS.items() if name == op.name and op.float32_when]


def unlisted(low: str) -> tuple[list[str], list[str]]:
    """Return the multi-input operators that MXNet does not list, whose inputs could have two types: those that run in `low`, and those that
    run in the widest type of their inputs. Products run in `low`.
    """
    operators = [op for name, op in OPERATORS.items() if name == op.name and not name.startswith("_np") and op.precision(low) is None
                 and len(op.inputs) > 1 and "indices" not in op.inputs and not (op.mutates or op.computes_quantized or op.no_gradient)]
    return [op.name for op in operators if op.compute_bound], [op.name for op in operators if not op.compute_bound]


def losses() -> list[str]:
    """Output layers that compare with a label, and whose gradient `grad_scale` scales."""
    return [op.name for name, op in OPERATORS.items() if name == op.name and op.loss and "label" in op.inputs and "grad_scale" in op.attributes]
