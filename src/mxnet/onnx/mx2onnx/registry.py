"""The table of converters from operators to ONNX nodes.

A converter is a function for one operator, or several, registered by name::

    @exports("expand_dims")
    def expand_dims(on, x, *, axis):
        return on.unsqueeze(x, axis)

Its arguments are a `Builder`, the inputs as `Value`s, and the operator's attributes among its parameters, parsed, with their defaults. All
other attributes must have their defaults: another value is an error, unless the attribute is in ``ignores``, the list of those without
effect here. A converter with a parameter `node` gets the node of the Symbol, too, and must handle all attributes.
It returns a `Value` or a list of them, one for each output that it can compute.
For uses that ONNX cannot express it raises `Unsupported`. Results of another type than the operator's are cast by the caller.
"""
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from ...ops.registry import Operator
from .builder import Unsupported


class Converter(NamedTuple):
    """The converter of an operator: the function, the attributes that it takes, and those that it ignores."""

    function: Callable
    takes: frozenset[str]
    ignores: frozenset[str]
    operator_name: bool  # True if it takes the name under which the table lists it
    node: bool  # True if it takes the node of the Symbol, in place of attributes, of which it drops none


CONVERTERS: dict[str, Converter] = {}
VARIABLE = "null"  # the name of variables in files; MXNet lists it among the operators


def exports(*names: str, ignores: tuple[str, ...] = ()) -> Callable[[Callable], Callable]:
    """Register the decorated function as the converter of these operators."""
    def register(function: Callable) -> Callable:
        keywords = frozenset(p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY)
        for name in names:
            if name in CONVERTERS:
                raise ValueError(f"two converters for {name}: {CONVERTERS[name].function.__name__} and {function.__name__}")
            CONVERTERS[name] = Converter(function, keywords - {"operator", "node"}, frozenset(ignores), "operator" in keywords, "node" in keywords)
        return function
    return register


def find(op: Operator) -> tuple[str, Converter] | None:
    """Return the converter of an operator and the name under which it is registered, or None."""
    for name in (op.name, *op.aliases):
        if name in CONVERTERS:
            return name, CONVERTERS[name]
    return None


def arguments(converter: Converter, name: str, attributes: dict[str, Any], defaults: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the keyword arguments for a converter, and the names of the attributes that it would drop."""
    given = {k: v for k, v in attributes.items() if k in converter.takes}
    if converter.operator_name:
        given["operator"] = name
    if converter.node:
        return given, []
    dropped = [k for k, v in attributes.items() if k not in converter.takes and k not in converter.ignores and v != defaults.get(k)]
    return given, dropped


def write(on: Any, op: Operator, attributes: dict[str, Any], *inputs: Any) -> Any:
    """Write an operator as a part of another's conversion; `attributes` are parsed.

    Raises
    ------
    Unsupported
        If it cannot be expressed.
    """
    known = find(op)
    if known is None:
        raise Unsupported(f"there is no conversion function for {op.name}, which it holds")
    name, converter = known
    attributes = {k: attributes.get(k, a.default) for k, a in op.attributes.items()}
    given, dropped = arguments(converter, name, attributes, {n: a.default for n, a in op.attributes.items()})
    if dropped:
        raise Unsupported(f"ONNX has no counterpart for {', '.join(f'{k}={attributes[k]!r}' for k in dropped)} of {op.name}")
    return converter.function(on, *inputs, **given)
