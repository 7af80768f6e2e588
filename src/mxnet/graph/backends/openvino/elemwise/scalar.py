"""Operators on an array and a number in OpenVINO."""
from collections.abc import Callable

from ..conversion import Call, Converter, Value, converts
from .binary import BINARY, COMPARISONS


def scalar(function: Callable) -> Converter:
    """Return the converter of arithmetic on an array and a number."""
    def convert(call: Call, data: Value) -> Value:
        call.floats()
        return function(data, call.float(call.scalar))
    return convert


def reversed_scalar(function: Callable) -> Converter:
    """Return the converter of arithmetic on a number and an array."""
    def convert(call: Call, data: Value) -> Value:
        call.floats()
        return function(call.float(call.scalar), data)
    return convert


def _comparison(function: Callable) -> Converter:
    def convert(call: Call, data: Value) -> Value:
        call.floats()
        return call.cast(function(data, call.float(call.scalar)).output(0), call.out_types[0])
    return convert


for _name, _function in BINARY.items():
    _spelled = {"add": "plus", "sub": "minus"}.get(_name, _name)
    converts(f"_{_spelled}_scalar")(scalar(_function))
    if _name in ("sub", "div", "power"):
        converts(f"_r{_spelled}_scalar")(reversed_scalar(_function))
for _name, _function in COMPARISONS.items():
    converts(f"_{_name}_scalar")(_comparison(_function))
