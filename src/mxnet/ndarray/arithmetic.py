"""Python's operators on arrays (``x + y``, ``2 - x``, ``x += y``, ``x < y``) and their function forms (``mx.nd.add``)."""
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import numeric_types
from ..ops.docstrings import with_sample
from ..ops.registry import get
from .dispatch import invoke
from .fast_calls import TORCH, in_place, number, operand
from .ndarray import NDArray

# name: operator for two arrays, for array and number, for number and array
BINARY = {
    "add": ("broadcast_add", "_plus_scalar", "_plus_scalar"),
    "subtract": ("broadcast_sub", "_minus_scalar", "_rminus_scalar"),
    "multiply": ("broadcast_mul", "_mul_scalar", "_mul_scalar"),
    "divide": ("broadcast_div", "_div_scalar", "_rdiv_scalar"),
    "modulo": ("broadcast_mod", "_mod_scalar", "_rmod_scalar"),
    "power": ("broadcast_power", "_power_scalar", "_rpower_scalar"),
    "maximum": ("broadcast_maximum", "_maximum_scalar", "_maximum_scalar"),
    "minimum": ("broadcast_minimum", "_minimum_scalar", "_minimum_scalar"),
    "equal": ("broadcast_equal", "_equal_scalar", "_equal_scalar"),
    "not_equal": ("broadcast_not_equal", "_not_equal_scalar", "_not_equal_scalar"),
    "greater": ("broadcast_greater", "_greater_scalar", "_lesser_scalar"),
    "greater_equal": ("broadcast_greater_equal", "_greater_equal_scalar", "_lesser_equal_scalar"),
    "lesser": ("broadcast_lesser", "_lesser_scalar", "_greater_scalar"),
    "lesser_equal": ("broadcast_lesser_equal", "_lesser_equal_scalar", "_greater_equal_scalar"),
    "logical_and": ("broadcast_logical_and", "_logical_and_scalar", "_logical_and_scalar"),
    "logical_or": ("broadcast_logical_or", "_logical_or_scalar", "_logical_or_scalar"),
    "logical_xor": ("broadcast_logical_xor", "_logical_xor_scalar", "_logical_xor_scalar"),
}
# The functions for two numbers in place of arrays.
OF_NUMBERS: dict[str, Callable] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "modulo": np.mod, "power": np.power,
    "maximum": np.maximum, "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "lesser": np.less, "lesser_equal": np.less_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor}
# The example of each function: its result for two arrays.
EXAMPLES = {
    "add": "[3, 2, 1] and [2, 2, 2] -> [5., 4., 3.]", "subtract": "[3, 2, 1] and [2, 2, 2] -> [ 1.,  0., -1.]",
    "multiply": "[3, 2, 1] and [2, 2, 2] -> [6., 4., 2.]", "divide": "[3, 2, 1] and [2, 2, 2] -> [1.5, 1. , 0.5]",
    "modulo": "[3, 2, 1] and [2, 2, 2] -> [1., 0., 1.]", "power": "[3, 2, 1] and [2, 2, 2] -> [9., 4., 1.]",
    "maximum": "[3, 2, 1] and [2, 2, 2] -> [3., 2., 2.]", "minimum": "[3, 2, 1] and [2, 2, 2] -> [2., 2., 1.]",
    "equal": "[3, 2, 1] and [2, 2, 2] -> [0., 1., 0.]", "not_equal": "[3, 2, 1] and [2, 2, 2] -> [1., 0., 1.]",
    "greater": "[3, 2, 1] and [2, 2, 2] -> [1., 0., 0.]", "greater_equal": "[3, 2, 1] and [2, 2, 2] -> [1., 1., 0.]",
    "lesser": "[3, 2, 1] and [2, 2, 2] -> [0., 0., 1.]", "lesser_equal": "[3, 2, 1] and [2, 2, 2] -> [0., 1., 1.]",
    "logical_and": "[2, 2, 0] and [1, 0, 0] -> [1., 0., 0.]", "logical_or": "[2, 2, 0] and [1, 0, 0] -> [1., 1., 0.]",
    "logical_xor": "[2, 2, 0] and [1, 0, 0] -> [0., 1., 0.]", "hypot": "[3, 2, 0] and [4, 0, 0] -> [5., 2., 0.]"}
METHODS = {"add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "divide": "__truediv__", "modulo": "__mod__",
            "power": "__pow__", "equal": "__eq__", "not_equal": "__ne__", "greater": "__gt__", "greater_equal": "__ge__",
            "lesser": "__lt__", "lesser_equal": "__le__"}
_NUMBERS = (*numeric_types, numbers.Real)


def _refuse(value: Any) -> Any:
    raise TypeError(f"type {type(value)} not supported")


def _general(name: str) -> Callable:
    """Return the function ``<name>(lhs, rhs)`` for any combination of arrays and numbers."""
    array_op, scalar_op, reflected_op = map(get, BINARY[name])

    def compute(lhs: Any, rhs: Any, out: NDArray | None = None) -> Any:
        if isinstance(lhs, NDArray):
            if isinstance(rhs, NDArray):
                return invoke(array_op, (lhs, rhs), {}, out)
            if isinstance(rhs, _NUMBERS):
                return invoke(scalar_op, (lhs,), {"scalar": float(rhs)}, out)
        elif isinstance(lhs, _NUMBERS):
            if isinstance(rhs, NDArray):
                return invoke(reflected_op, (rhs,), {"scalar": float(lhs)})
            if isinstance(rhs, _NUMBERS):
                return OF_NUMBERS[name](lhs, rhs)
        return _refuse(rhs if isinstance(lhs, (NDArray, *_NUMBERS)) else lhs)

    return compute


def _forward(name: str) -> Callable:
    """``x <op> other``."""
    by_tensor = TORCH[name][0] if name in TORCH else None
    return operand(get(BINARY[name][0]), get(BINARY[name][1]), NDArray, _general(name), by_tensor)


def _reflected_method(name: str) -> Callable:
    """``number <op> x``."""
    general, (_, forward, reflected) = _general(name), BINARY[name]
    by_tensor = TORCH[name][0] if name in TORCH and forward == reflected else None
    return number(get(reflected), NDArray, lambda x, other: general(other, x), by_tensor)


def _inplace_method(name: str) -> Callable:
    """``x <op>= other``."""
    general = _general(name)
    return in_place(TORCH[name][1] if name in TORCH else None, NDArray, lambda x, other: general(x, other, x))


def _function(name: str) -> Callable:
    """``mx.nd.<name>(lhs, rhs)``; `power` calls its arguments ``base`` and ``exp``."""
    function = compute = _forward(name)
    if name == "power":
        def function(base: Any, exp: Any) -> Any:
            return compute(base, exp)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "mxnet.ndarray"
    function.__doc__ = with_sample(f"""Element-wise `{name}` of two arrays or numbers, with broadcasting; comparisons and logic give 0 and 1 in the
    arrays' type.

    Raises
    ------
    TypeError
        If an argument is neither array nor number.""", f"mx.nd.{name}", EXAMPLES[name])
    return function


for _name, _method in METHODS.items():
    setattr(NDArray, _method, _forward(_name))
for _name in ("add", "subtract", "multiply", "divide", "modulo", "power"):
    _suffix = METHODS[_name].strip("_")
    setattr(NDArray, f"__r{_suffix}__", _reflected_method(_name))
    if _name != "power":
        setattr(NDArray, f"__i{_suffix}__", _inplace_method(_name))


def _conversion(kind: Callable[[Any], Any]) -> Callable[[NDArray], Any]:
    def convert(self: NDArray) -> Any:
        if self.size != 1:
            raise TypeError(f"a number needs an array of one element, received shape {self.shape}")
        return kind(self._raw().item())

    return convert


for _name, _kind in (("__float__", float), ("__int__", int)):
    setattr(NDArray, _name, _conversion(_kind))
FUNCTIONS = {_name: _function(_name) for _name in BINARY}
FUNCTIONS["true_divide"] = FUNCTIONS["divide"]
