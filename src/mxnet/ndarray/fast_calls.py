"""Fast calls: an operator's function straight on the tensors of arrays, where no recording, profiling or conversion is needed.

`eligibility` is the only test of this condition. The functions below put it in front of `general`, the path of a call that also records,
observes and switches generators. `general` also raises the errors: a call whose fast path raises is repeated on the general path.

Attributes become the defaults of a copy of the operator's function (`Operator.bound`), so that a call with the same ones passes tensors only.

`mx.nd` and `mx.npx` get their functions from `fast`, by way of `functions`, and arrays most of their methods from those. Python's operators
and the functions of ``mx.np`` that compute element by element come from `unary`, `number`, `operand` and `in_place`.
"""
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..base import _Null
from ..ops.registry import Operator
from ..util import fractions_widen
from . import dispatch
from .dispatch import allocate, in_graph, mode, refuse_inplace, wrap

_MISSING = object()  # the default of arguments by position: a tuple of them would cost time
_NUMBERS = (float, int)  # not bool, nor numpy's numbers
# Torch takes 1.3 us longer for a Python number than for a tensor without axes; these are those made of numbers seen before.
_constants: dict[tuple[float, torch.dtype], Tensor] = {}
# The functions behind Python's operators: torch's function of two tensors, and its method that writes to the first.
TORCH: dict[str, tuple[Callable, Callable]] = {
    "add": (torch.add, Tensor.add_), "subtract": (torch.sub, Tensor.sub_),
    "multiply": (torch.mul, Tensor.mul_), "divide": (torch.div, Tensor.div_)}


def eligibility(cls: type[Any]) -> Callable[[Any], bool]:
    """Return the test whether an array may take a fast call; several arrays must be on one device, too.

    An array passes where it is of the class `cls` itself (so not sparse), nothing has to be recorded, and no profiler observes.
    """
    def eligible(array: Any) -> bool:
        return type(array) is cls and array._autograd is None and dispatch.observer is None

    return eligible


def watched(op: Operator, cls: type[Any], arrays: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """Run a call that would be fast but for a profiler, notify the profiler and return the result; return None for a call that must take the
    general path, on which an event would cost twice as much."""
    tensors = []
    for array in arrays:
        if type(array) is not cls or array._autograd is not None or array._ctx is not arrays[0]._ctx:
            return None
        tensors.append(array._data)
    observer = dispatch.observer
    if observer is None:
        return None
    start = time.perf_counter_ns()
    try:
        result = op.bound(attrs)(*tensors) if attrs else op.raw(*tensors)
    except Exception:  # the general path raises the error
        return None
    several = isinstance(result, (tuple, list))
    if several and len(result) < 2:
        return None
    observer(op.name, start, time.perf_counter_ns(), tensors, result)
    ctx = arrays[0]._ctx
    return [wrap(cls, r, ctx) for r in result] if several else wrap(cls, result, ctx)


def fast(op: Operator, cls: type[Any], general: Callable) -> Callable:
    """`general`, behind the fast call that suits the operator, if there is one."""
    if op.wants_training or op.wants_device or op.mutates or not op.inputs or op.variadic and (len(op.inputs) > 1 or op.names_inputs):
        return general
    make = unary if op.num_inputs == 1 else binary if op.num_inputs == 2 and not op.optional_inputs and op.inputs_rule is None else nary
    return make(op, cls, general)


def unary(op: Operator, cls: type[Any], general: Callable) -> Callable:
    """Return the function of an operator with one input: ``call(x, **attributes)``."""
    function, bound, eligible = op.raw, op.bound, eligibility(cls)

    def simple(x: Any = _MISSING, /, *args: Any, out: Any = None, name: str | None = None, **kwargs: Any) -> Any:
        if not args and out is None and not kwargs:
            if eligible(x):
                try:
                    return wrap(cls, function(x._data), x._ctx)
                except Exception:  # the general path raises the error
                    pass
            elif dispatch.observer is not None and (watched_result := watched(op, cls, (x,), kwargs)) is not None:
                return watched_result
        return general(*args, out=out, **kwargs) if x is _MISSING else general(x, *args, out=out, **kwargs)

    def call(x: Any = _MISSING, /, *args: Any, out: Any = None, name: str | None = None, **kwargs: Any) -> Any:
        if not args and out is None:
            if eligible(x):
                try:
                    result = bound(kwargs)(x._data) if kwargs else function(x._data)
                    if type(result) is Tensor:
                        array: Any = allocate(cls)  # `wrap`, without a call
                        array._data, array._ctx, array._autograd = result, x._ctx, None
                        return array
                    if isinstance(result, (tuple, list)) and len(result) > 1:
                        return [wrap(cls, r, x._ctx) for r in result]
                    if isinstance(result, Tensor):
                        return wrap(cls, result, x._ctx)
                except Exception:  # the general path raises the error
                    pass
            elif dispatch.observer is not None and (watched_result := watched(op, cls, (x,), kwargs)) is not None:
                return watched_result
        elif out is None and eligible(x) and (named := _named(op, args, kwargs)) is not None:
            return call(x, **named)
        return general(*args, out=out, **kwargs) if x is _MISSING else general(x, *args, out=out, **kwargs)

    return simple if op.simple else call


def binary(op: Operator, cls: type[Any], general: Callable) -> Callable:
    """Return the function of an operator with two inputs: ``call(x, y, **attributes)``."""
    function, bound, eligible = op.raw, op.bound, eligibility(cls)

    def simple(x: Any = _MISSING, y: Any = _MISSING, /, *args: Any, out: Any = None, name: str | None = None, **kwargs: Any) -> Any:
        if not args and out is None and not kwargs:
            if eligible(x) and eligible(y) and x._ctx is y._ctx:
                try:
                    return wrap(cls, function(x._data, y._data), x._ctx)
                except Exception:  # the general path raises the error
                    pass
            elif dispatch.observer is not None and (watched_result := watched(op, cls, (x, y), kwargs)) is not None:
                return watched_result
        return general(*_given(x, y), *args, out=out, **kwargs)

    def call(x: Any = _MISSING, y: Any = _MISSING, /, *args: Any, out: Any = None, name: str | None = None, **kwargs: Any) -> Any:
        if not args and out is None:
            if eligible(x) and eligible(y) and x._ctx is y._ctx:
                try:
                    result = bound(kwargs)(x._data, y._data) if kwargs else function(x._data, y._data)
                    if type(result) is Tensor:
                        array: Any = allocate(cls)  # `wrap`, without a call
                        array._data, array._ctx, array._autograd = result, x._ctx, None
                        return array
                    if isinstance(result, (tuple, list)) and len(result) > 1:
                        return [wrap(cls, r, x._ctx) for r in result]
                    if isinstance(result, Tensor):
                        return wrap(cls, result, x._ctx)
                except Exception:  # the general path raises the error
                    pass
            elif dispatch.observer is not None and (watched_result := watched(op, cls, (x, y), kwargs)) is not None:
                return watched_result
        elif out is None and eligible(x) and (named := _named(op, args, kwargs)) is not None:
            return call(x, y, **named)
        return general(*_given(x, y), *args, out=out, **kwargs)

    return simple if op.simple else call


def _given(x: Any, y: Any) -> tuple[Any, ...]:
    """Return those of two arguments by position that the call has."""
    return (x, y) if y is not _MISSING else () if x is _MISSING else (x,)


def _named(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Return a call's attributes by name, of which `args` are those by position; None where the general path raises an error or needs `args`."""
    if len(args) > len(op.attributes):
        return None
    named = {}
    for attribute, value in zip(op.attributes, args):
        if value is not _Null:
            if attribute in kwargs:
                return None
            named[attribute] = value
    return {**named, **kwargs}


def nary(op: Operator, cls: type[Any], general: Callable) -> Callable:
    """Return the function of an operator with any number of inputs, the last of which may be optional: ``call(x, y, ..., **attributes)``."""
    function, bound, eligible = op.raw, op.bound, eligibility(cls)
    most = sys.maxsize if op.variadic else op.num_inputs
    least = max(1, sum(1 for i in op.inputs if i not in op.optional_inputs))
    by_name = frozenset(op.inputs[least:])  # those that may come by name without having come by position

    def call(*args: Any, out: Any = None, name: str | None = None, **kwargs: Any) -> Any:
        count = len(args)
        if out is None and least <= count <= most and (count == most or not by_name or by_name.isdisjoint(kwargs)):
            first, tensors = args[0], []
            for x in args:
                if not eligible(x) or x._ctx is not first._ctx:
                    break
                tensors.append(x._data)
            else:
                try:
                    result = bound(kwargs)(*tensors) if kwargs else function(*tensors)
                    if type(result) is Tensor:
                        array: Any = allocate(cls)  # `wrap`, without a call
                        array._data, array._ctx, array._autograd = result, x._ctx, None
                        return array
                    if isinstance(result, (tuple, list)) and len(result) > 1:
                        return [wrap(cls, r, first._ctx) for r in result]
                    if isinstance(result, Tensor):
                        return wrap(cls, result, first._ctx)
                except Exception:  # the general path raises the error
                    pass
            if dispatch.observer is not None and (watched_result := watched(op, cls, args, kwargs)) is not None:
                return watched_result
        return general(*args, out=out, **kwargs)

    return call


def number(op: Operator, cls: type[Any], general: Callable, by_tensor: Callable | None = None) -> Callable:
    """``call(x, number)`` of an operator with the attribute ``scalar``.

    `by_tensor` is the function of two tensors that computes the same from a tensor without axes; it may be faster.
    """
    function, eligible = op.raw, eligibility(cls)

    def call(lhs: Any, rhs: Any) -> Any:
        if type(rhs) in _NUMBERS and eligible(lhs):
            try:
                if by_tensor is not None:
                    tensor = lhs._data
                    constant = _constants.get((rhs, tensor.dtype))
                    if constant is None:
                        constant = _constant(rhs, tensor)
                    if constant is not None:
                        return wrap(cls, by_tensor(tensor, constant), lhs._ctx)
                if fractions_widen and type(rhs) is float and not lhs._data.dtype.is_floating_point:
                    return general(lhs, rhs)
                return wrap(cls, function(lhs._data, scalar=rhs), lhs._ctx)
            except Exception:  # the general path raises the error
                pass
        elif dispatch.observer is not None and type(rhs) in _NUMBERS and (result := watched(op, cls, (lhs,), {"scalar": float(rhs)})) is not None:
            return result
        return general(lhs, rhs)

    return call


def operand(op: Operator, number_op: Operator, cls: type[Any], general: Callable, by_tensor: Callable | None = None) -> Callable:
    """``call(x, other)``, where `other` may be an array, for `op`, or a number, for `number_op` (see `number`)."""
    function, eligible = op.raw, eligibility(cls)
    with_number = number(number_op, cls, general, by_tensor)

    def call(lhs: Any, rhs: Any) -> Any:
        if type(rhs) is not cls:
            return with_number(lhs, rhs)
        if eligible(lhs) and eligible(rhs) and lhs._ctx is rhs._ctx:
            try:
                result = function(lhs._data, rhs._data)
                array: Any = allocate(cls)  # `wrap`, without a call: of all calls x + y is the commonest
                array._data, array._ctx, array._autograd = result, lhs._ctx, None
                return array
            except Exception:  # the general path raises the error
                pass
        elif dispatch.observer is not None and (watched_result := watched(op, cls, (lhs, rhs), {})) is not None:
            return watched_result
        return general(lhs, rhs)

    return call


def in_place(function: Callable | None, cls: type[Any], general: Callable) -> Callable:
    """``call(x, other)`` that writes to `x`; by a function of torch, if there is one, where both have one floating-point type.

    Earlier recordings of `x` do not matter, since the write bypasses torch's version counter; `x` may not be in a graph that is being recorded.
    """
    eligible = eligibility(cls)

    def call(lhs: Any, rhs: Any) -> Any:
        if mode.recording and in_graph(lhs):
            refuse_inplace(lhs)
        if function is not None and eligible(rhs) and type(lhs) is cls and lhs._ctx is rhs._ctx:
            dtype = rhs._data.dtype
            if dtype is lhs._data.dtype and dtype.is_floating_point:
                try:
                    function(lhs._writable(), rhs._data)
                    return lhs
                except RuntimeError:  # the general path raises the error
                    pass
        return general(lhs, rhs)

    return call


def _constant(value: float, tensor: Tensor) -> Tensor | None:
    """Return a new tensor without axes for a number, of the type of a floating-point tensor; None where the number itself must be used."""
    if not value or value != value or not tensor.dtype.is_floating_point:  # 0.0 == -0.0 and nan != nan: no keys
        return None
    if len(_constants) > 4096:
        _constants.clear()
    constant = _constants[value, tensor.dtype] = torch.tensor(value, dtype=tensor.dtype)
    return constant
