"""Python's operators on ``mx.np`` arrays, and the methods that are functions of ``mx.np``."""
import inspect
from collections.abc import Callable
from typing import Any

import numpy as onp
import torch

from ..ndarray.fast_calls import TORCH, in_place, number, operand
from ..ndarray.fast_calls import unary as fast_unary
from ..ops.registry import get
from ..util import fractions_widen
from .creation import of_official
from .frontend import TABLE, arrays, reduction
from .functions.elementwise import BINARY, IN_FLOATS, TRUTHS_IN_FLOATS, UNARY, WITHOUT_OPTIONS, binary, unary
from .multiarray import ndarray

_METHODS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "mod": "mod", "power": "pow", "bitwise_and": "and",
            "bitwise_or": "or", "bitwise_xor": "xor", "floor_divide": "floordiv", "bitwise_left_shift": "lshift", "bitwise_right_shift": "rshift"}
_COMPARISONS = {"equal": "eq", "not_equal": "ne", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"}


def _fast_operand(name: str) -> Callable:
    """``<name>(x1, x2)``."""
    pair, right, _, _ = BINARY[name]
    return operand(get(pair), get(right), ndarray, lambda x1, x2: _general(name, x1, x2), TORCH[name][0] if name in TORCH else None)


def _general(name: str, x1: Any, x2: Any, out: Any = None, kwargs: dict[str, Any] | None = None) -> Any:
    """`binary`, of complex numbers and NumPy's arrays too."""
    return binary(arrays, name, operand_beside(x1, x2), operand_beside(x2, x1), out, kwargs)


def operand_beside(value: Any, array: Any) -> Any:
    """Convert an operand for `binary`: NumPy's arrays and complex numbers beside an array become arrays on its device."""
    if type(array) is not ndarray:
        return value
    if isinstance(value, onp.ndarray) and value.dtype.kind in "biuf":
        return of_official(value, array._ctx)
    if type(value) is not complex:
        return value
    wide = array._data.dtype in (torch.float64, torch.complex128)
    return ndarray._new(torch.full((), value, dtype=torch.complex128 if wide else torch.complex64, device=array._data.device), array._ctx)


def _reflected(name: str) -> Callable:
    """``number <op> x``."""
    _, right, left, _ = BINARY[name]
    by_tensor = TORCH[name][0] if name in TORCH and left is None else None
    return number(get(left or right), ndarray, lambda x, other: _general(name, other, x), by_tensor)


def binary_function(name: str) -> Callable:
    """``mx.np.<name>`` of two arrays or numbers."""
    fast = _fast_operand(name)

    def function(x1: Any, x2: Any, out: ndarray | None = None, **kwargs: Any) -> Any:
        return _general(name, x1, x2, out, kwargs) if kwargs or out is not None else fast(x1, x2)

    def without_options(x1: Any, x2: Any, out: ndarray | None = None) -> Any:
        return _general(name, x1, x2, out) if out is not None else fast(x1, x2)

    return without_options if name in WITHOUT_OPTIONS else function


def unary_function(name: str) -> Callable:
    """``mx.np.<name>`` of an array or a number."""
    fast = fast_unary(get(UNARY[name][0]), ndarray, lambda x, out: unary(arrays, name, x))

    def function(x: Any, out: ndarray | None = None, **kwargs: Any) -> Any:
        return unary(arrays, name, x, out, kwargs) if kwargs or out is not None else fast(x)

    def in_floats(x: Any, out: ndarray | None = None, **kwargs: Any) -> Any:
        if fractions_widen and type(x) is ndarray and not (x._data.is_floating_point() or x._data.is_complex()):
            x = _widened(name, x)
        return unary(arrays, name, x, out, kwargs) if kwargs or out is not None else fast(x)

    return in_floats if name in IN_FLOATS or name in TRUTHS_IN_FLOATS else function


def _widened(name: str, x: ndarray) -> ndarray:
    """Convert integers and booleans to the floating-point type in which MXNet 2.0 computes, if it does not compute on them directly."""
    dtype = x.dtype
    if name in TRUTHS_IN_FLOATS and x._data.dtype is not torch.bool:
        return x
    return x.astype("float16" if dtype.itemsize == 1 else "float32")


def _inplace(name: str) -> Callable:
    """``x <op>= other``."""
    return in_place(TORCH[name][1] if name in TORCH else None, ndarray,
                    lambda x, other: _general(name, x, other, x))


for _name, _suffix in _METHODS.items():
    setattr(ndarray, f"__{_suffix}__", _fast_operand(_name))
    setattr(ndarray, f"__r{_suffix}__", _reflected(_name))
    setattr(ndarray, f"__i{_suffix}__", _inplace(_name))
for _name, _suffix in _COMPARISONS.items():
    setattr(ndarray, f"__{_suffix}__", _fast_operand(_name))
ndarray.__matmul__ = lambda self, other: arrays.call("_npi_matmul", self, operand_beside(other, self))
ndarray.__rmatmul__ = lambda self, other: arrays.call("_npi_matmul", operand_beside(other, self), self)
ndarray.__imatmul__ = lambda self, other: arrays.call("_npi_matmul", self, operand_beside(other, self), out=self)
ndarray.__neg__ = lambda self: binary(arrays, "multiply", self, -1)
ndarray.__pos__ = lambda self: self.copy()
ndarray.__div__, ndarray.__rdiv__, ndarray.__idiv__ = ndarray.__truediv__, ndarray.__rtruediv__, ndarray.__itruediv__
ndarray.__invert__ = lambda self: unary(arrays, "invert", self)
ndarray.__abs__ = lambda self: unary(arrays, "absolute", self) if not self._data.is_complex() else self._recorded_call(torch.abs, "abs", self._ctx)
ndarray.__ceil__ = lambda self: unary(arrays, "ceil", self)
ndarray.__floor__ = lambda self: unary(arrays, "floor", self)
ndarray.__trunc__ = lambda self: unary(arrays, "trunc", self)
ndarray.__round__ = lambda self, n=0: self.round(n)


def _method(name):
    fn = TABLE[""][name]

    def method(self, *args, **kwargs):
        return fn(arrays, self, *args, **kwargs)

    return method


def _reduction(name, *parameters):
    """Return a method with the parameters in the order of NumPy's methods, which is not that of MXNet's functions."""
    fn = TABLE[""][name]
    fast = reduction(fn)

    def method(self, *args, **kwargs):
        if not kwargs and len(args) < 2:  # all begin with the axis
            return fast(self, *args)
        kwargs.update(zip(parameters, args))
        if len(args) > len(parameters) or set(kwargs) - set(parameters):
            raise TypeError(f"{name}() takes the arguments {', '.join(parameters)}")
        return fn(arrays, self, **kwargs)

    P = inspect.Parameter
    defaults = {"ddof": 0, "keepdims": False}
    method.__signature__ = inspect.Signature([P("self", P.POSITIONAL_OR_KEYWORD)] + [
        P(n, P.POSITIONAL_OR_KEYWORD, default=defaults.get(n)) for n in parameters])
    return method


_ARRAY_METHODS = {name: _reduction(name, "axis", "out", "keepdims") for name in ("all", "any", "max", "min")}
_ARRAY_METHODS.update({name: _reduction(name, "axis", "dtype", "out", "keepdims") for name in ("sum", "prod", "mean")})
_ARRAY_METHODS.update({name: _reduction(name, "axis", "dtype", "out", "ddof", "keepdims") for name in ("std", "var")})
_ARRAY_METHODS.update({name: _method(name) for name in ("argmax", "argmin", "argsort", "broadcast_to", "cumsum", "dot", "nonzero", "repeat", "round",
                                                        "sort", "squeeze", "swapaxes", "take")})
for _name, _function in _ARRAY_METHODS.items():
    _function.__name__ = _function.__qualname__ = _name
    _function.__doc__ = TABLE[""][_name].__doc__
    setattr(ndarray, _name, _function)


def _clip(self, min=None, max=None, out=None):
    """Values limited to the range from `min` to `max`."""
    return TABLE[""]["clip"](arrays, self, min, max, out)


ndarray.clip = _clip
