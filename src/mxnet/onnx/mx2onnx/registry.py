"""Which operator is written how: one table of converters.

A converter is a function for one operator, or several, registered by name::

    @exports("expand_dims")
    def expand_dims(on, x, *, axis):
        return on.unsqueeze(x, axis)

It gets a `Builder`, the inputs as `Value`s, and those attributes of the operator that it takes, parsed, with their defaults. An attribute
that it does not take must have its default: a use that says otherwise is refused, unless the attribute is among those that are known
to change nothing here (``ignores``). With a parameter `node` it gets the node of the Symbol, too, and answers for all attributes.
It returns a `Value` or a list of them, one for each output that it can give.
What cannot be expressed it refuses by raising `Unsupported`. Results of another type than the operator's are cast by the caller.
"""
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from ...ops.registry import Operator
from .builder import Unsupported


class Converter(NamedTuple):
    """How an operator is written: the function, which attributes it takes, and which it may leave out."""

    function: Callable
    takes: frozenset[str]
    ignores: frozenset[str]
    operator_name: bool  # whether it wants to know under which name of the table it was found
    node: bool  # whether it takes the node of the Symbol, in place of attributes, of which it drops none


CONVERTERS: dict[str, Converter] = {}
VARIABLE = "null"  # what files call a variable; MXNet lists it among the operators


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
    """The converter of an operator, and the name under which it is registered; None if there is none."""
    for name in (op.name, *op.aliases):
        if name in CONVERTERS:
            return name, CONVERTERS[name]
    return None


def arguments(converter: Converter, name: str, attributes: dict[str, Any], defaults: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What to call a converter with, and the attributes that it would drop."""
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
