"""The table of translations of ONNX's operators: functions over `Value`, and over numpy arrays for constant folding.

A function's positional parameters after the first are the operator's inputs (``=None`` for an optional one, ``*data`` for any number), its
keyword-only parameters the attributes with their defaults. An attribute with the name of an input takes the place of that input: many
attributes became inputs in later versions of ONNX. The first parameter is the `Translator`, which has the version.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....base import MXNetError

TRANSLATIONS: dict[str, Rule] = {}  # ONNX's operator -> Rule that makes a Symbol
FOLDS: dict[str, Rule] = {}  # ONNX's operator -> Rule over numpy arrays

_WITHOUT_MEANING = {"consumed_inputs", "is_test"}  # of the first versions of the format
_DOMAINS = {"": "", "ai.onnx": "", "com.microsoft": "com.microsoft."}


class Rule:
    """The translation of one of ONNX's operators.

    Attributes
    ----------
    function : callable
    inputs : tuple of str
    required : int
        The number of required inputs.
    attributes : frozenset of str
    """

    def __init__(self, function: Callable[..., Any]):
        parameters = list(inspect.signature(function).parameters.values())[1:]
        by_position = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        self.function = function
        self.variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        self.inputs = tuple(p.name for p in by_position)
        self.required = sum(p.default is p.empty for p in by_position)
        self.attributes = frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)

    def arguments(self, inputs: Sequence[Any], attributes: Mapping[str, Any], constant: Callable[[Any], Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the function's positional and named arguments.

        Parameters
        ----------
        inputs : list
            Of the node; None for one that is left out.
        attributes : dict
        constant : callable
            Makes an input of the value of an attribute.

        Raises
        ------
        MXNetError
            If there are too many or too few inputs, or an unknown attribute.
        """
        given = list(inputs)
        named = {}
        for name, value in attributes.items():
            if name in self.attributes:
                named[name] = value
            elif name in self.inputs:
                position = self.inputs.index(name)
                given += [None] * (position + 1 - len(given))
                given[position] = constant(value) if given[position] is None else given[position]
            elif name not in _WITHOUT_MEANING:
                known = ", ".join(sorted(self.attributes)) or "none"
                raise MXNetError(f"the attribute {name!r} (= {value!r:.60}) is not known; known are: {known}")
        if self.variadic:
            fixed = len(self.inputs)
            given = given[:fixed] + [None] * (fixed - len(given)) + [value for value in given[fixed:] if value is not None]
            if not given:
                raise MXNetError("expected at least one input, received none")
        elif len(given) > len(self.inputs):
            raise MXNetError(f"expected at most {len(self.inputs)} inputs, received {len(given)}")
        missing = [name for i, name in enumerate(self.inputs[:self.required]) if i >= len(given) or given[i] is None]
        if missing:
            raise MXNetError(f"the input `{missing[0]}` is missing")
        return given, named


def operator_name(node: Any) -> str:
    """Return the name of a node's operator in the table: with its domain, unless that is ONNX's own."""
    return _DOMAINS.get(node.domain, f"{node.domain}.") + node.op_type


def translates(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the translation of these operators to a Symbol."""
    def register(function):
        rule = Rule(function)
        TRANSLATIONS.update((name, rule) for name in names)
        return function
    return register


def folds(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the evaluation of these operators on numpy arrays."""
    def register(function):
        rule = Rule(function)
        FOLDS.update((name, rule) for name in names)
        return function
    return register
