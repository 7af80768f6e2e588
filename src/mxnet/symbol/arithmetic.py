"""Python's operators on Symbols and their function forms."""
import numbers
from collections.abc import Callable
from typing import Any

from ..base import numeric_types
from ..ndarray.arithmetic import EXAMPLES, OF_NUMBERS
from ..ops.docstrings import with_example
from .functions import operator_function
from .symbol import Symbol

# name: operator for two Symbols, for Symbol and number, for number and Symbol; under the names that JSON and generated names come from.
BINARY = {
    "add": ("_Plus", "_PlusScalar", "_PlusScalar"),
    "subtract": ("_Minus", "_MinusScalar", "_RMinusScalar"),
    "multiply": ("_Mul", "_MulScalar", "_MulScalar"),
    "divide": ("_Div", "_DivScalar", "_RDivScalar"),
    "modulo": ("_Mod", "_ModScalar", "_RModScalar"),
    "power": ("_Power", "_PowerScalar", "_rpower_scalar"),
    "maximum": ("_Maximum", "_MaximumScalar", "_MaximumScalar"),
    "minimum": ("_Minimum", "_MinimumScalar", "_MinimumScalar"),
    "hypot": ("_Hypot", "_HypotScalar", "_HypotScalar"),
    "equal": ("_equal", "_equal_scalar", "_equal_scalar"),
    "not_equal": ("_not_equal", "_not_equal_scalar", "_not_equal_scalar"),
    "greater": ("_greater", "_greater_scalar", "_lesser_scalar"),
    "greater_equal": ("_greater_equal", "_greater_equal_scalar", "_lesser_equal_scalar"),
    "lesser": ("_lesser", "_lesser_scalar", "_greater_scalar"),
    "lesser_equal": ("_lesser_equal", "_lesser_equal_scalar", "_greater_equal_scalar"),
    "logical_and": ("_logical_and", "_logical_and_scalar", "_logical_and_scalar"),
    "logical_or": ("_logical_or", "_logical_or_scalar", "_logical_or_scalar"),
    "logical_xor": ("_logical_xor", "_logical_xor_scalar", "_logical_xor_scalar"),
}
_METHODS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "modulo": "mod", "power": "pow"}
_COMPARISONS = {"equal": "eq", "not_equal": "ne", "greater": "gt", "greater_equal": "ge", "lesser": "lt", "lesser_equal": "le"}
_NUMBERS = (*numeric_types, numbers.Real)


def _apply(name: str, lhs: Any, rhs: Any) -> Any:
    symbols, right_number, left_number = BINARY[name]
    if isinstance(lhs, Symbol):
        if isinstance(rhs, Symbol):
            return operator_function(symbols)(lhs, rhs)
        if isinstance(rhs, _NUMBERS):
            return operator_function(right_number)(lhs, scalar=rhs)
        raise TypeError(f"type {type(rhs)} not supported")
    if isinstance(lhs, _NUMBERS):
        if isinstance(rhs, Symbol):
            return operator_function(left_number)(rhs, scalar=lhs)
        if isinstance(rhs, _NUMBERS):
            return OF_NUMBERS[name](lhs, rhs) if name != "hypot" else (lhs * lhs + rhs * rhs) ** 0.5  # type: ignore[operator]  # numbers of any kind
        raise TypeError(f"type {type(rhs)} not supported")
    raise TypeError(f"types ({type(lhs)}, {type(rhs)}) not supported")


def _method(name: str, reflected: bool) -> Callable:
    if reflected:
        return lambda self, other: _apply(name, other, self)
    return lambda self, other: _apply(name, self, other)


def _function(name: str, left: str, right: str) -> Callable:
    def function(*args: Any, **kwargs: Any) -> Any:
        pair = [*args, *(kwargs[k] for k in (left, right)[len(args):] if k in kwargs)]
        if len(pair) != 2:
            raise TypeError(f"{name} takes two arguments, `{left}` and `{right}`")
        return _apply(name, *pair)

    import inspect
    function.__name__ = function.__qualname__ = name
    function.__module__ = "mxnet.symbol"
    arrays, result = EXAMPLES[name].split(" -> ")
    x, y = arrays.split(" and ")
    function.__doc__ = with_example(f"Element-wise `{name}` of two Symbols or numbers.",
                                    f"mx.sym.{name}(mx.sym.var('x'), mx.sym.var('y')).eval(x=mx.nd.array({x}), y=mx.nd.array({y}))[0].asnumpy() -> "
                                    f"array({result}, dtype=float32)")
    function.__signature__ = inspect.Signature([  # type: ignore[attr-defined]  # read by inspect
        inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in (left, right)])
    return function


for _name, _suffix in _METHODS.items():
    setattr(Symbol, f"__{_suffix}__", _method(_name, False))
    setattr(Symbol, f"__r{_suffix}__", _method(_name, True))
for _name, _suffix in _COMPARISONS.items():
    setattr(Symbol, f"__{_suffix}__", _method(_name, False))
Symbol.__neg__ = lambda self: self * -1.0  # type: ignore[method-assign]  # as setattr above
Symbol.__abs__ = lambda self: self.abs()  # type: ignore[method-assign]  # as setattr above

FUNCTIONS = {_name: _function(_name, "left", "right") for _name in ("maximum", "minimum", "hypot")}
FUNCTIONS["power"] = FUNCTIONS["pow"] = _function("power", "base", "exp")
FUNCTIONS.update({_name: _function(_name, "left", "right") for _name in ("logical_and", "logical_or", "logical_xor")})
