"""Operators on an array and a number in OpenVINO."""
from ..conversion import converts
from .binary import BINARY, COMPARISONS


def scalar(function):
    """The converter of arithmetic on an array and a number."""
    def convert(call, data):
        call.floats()
        return function(data, call.float(call.scalar))
    return convert


def reversed_scalar(function):
    """The converter of arithmetic on a number and an array."""
    def convert(call, data):
        call.floats()
        return function(call.float(call.scalar), data)
    return convert


def _comparison(function):
    def convert(call, data):
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
