"""Front ends, which call operators for the functions of ``mx.np``, on arrays or on Symbols.

The functions in `functions` are written once. Their first parameter is a `Frontend`, which is either `arrays` or, from
``mxnet.symbol.numpy``, the one of Symbols; `bind` makes the public functions of them.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as onp

from ..base import numeric_types
from ..context import current_context, takes_device
from ..ndarray import NDArray
from ..ndarray.dispatch import invoke, wrap
from ..ndarray.fast_calls import eligibility
from ..ops import numpy as _register  # noqa: F401  (registers them)
from ..ops.docstrings import unindented
from ..ops.registry import OPERATORS, get
from ..suggestions import shortened
from ..util import fractions_widen
from .multiarray import ndarray

if TYPE_CHECKING:
    from ..context import Context
    from ..ops.registry import Operator

TABLE: dict = {}  # namespace ('', 'linalg', 'random', ...) -> name -> function(F, ...)
NUMBERS = numeric_types
Array = Any  # in annotations: the array type of `F`, which stubs use by name


def function(namespace: str = "", *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function in a namespace, under its own name or those given."""
    def register(fn):
        for name in names or (fn.__name__.rstrip("_"),):
            TABLE.setdefault(namespace, {})[name] = fn
        return fn
    return register


def reduces(operator: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function that, given only `a` and `axis`, passes them to this operator and does nothing else."""
    def mark(fn):
        fn.reduces = operator
        return fn
    return mark


def reduction(fn: Any) -> Callable[..., Any]:
    """Return the array form of a function marked by `reduces`, with a fast path straight on the tensors."""
    function, eligible = get(fn.reduces).raw, eligibility(ndarray)

    def bound(a, axis=None, *args, **kwargs):
        if not args and not kwargs and eligible(a):
            try:
                if type(axis) is int:
                    return wrap(ndarray, function(a._data, axis=axis), a._ctx)
                if axis is None:
                    return wrap(ndarray, function(a._data), a._ctx)
            except Exception:  # the general path raises the error
                pass
        return fn(arrays, a, axis, *args, **kwargs)

    return bound


def with_device_parameter(parameters: Iterable[inspect.Parameter]) -> list[inspect.Parameter]:
    """Return the parameters of a function that `takes_device` made."""
    device = inspect.Parameter("device", inspect.Parameter.KEYWORD_ONLY, default=None)
    return [*(p for p in parameters if p.kind is not p.VAR_KEYWORD), device, *(p for p in parameters if p.kind is p.VAR_KEYWORD)]


def bind(fn: Any, frontend: Any, name: str, module: str) -> Callable[..., Any]:
    """Return the public function: `fn` without its first parameter, which is bound to `frontend`."""
    def bound(*args, **kwargs):
        return fn(frontend, *args, **kwargs)

    signature = inspect.signature(fn)
    parameters = list(signature.parameters.values())[1:]
    if "ctx" in signature.parameters:
        bound = takes_device(bound)
        parameters = with_device_parameter(parameters)
    if frontend is arrays and hasattr(fn, "reduces"):
        bound = reduction(fn)
    bound.__signature__ = signature.replace(parameters=parameters)
    bound.__name__ = bound.__qualname__ = name
    bound.__module__, bound.__doc__ = module, _with_example(fn, name, module)
    return bound


def _with_example(fn, name, module):
    """Return the docstring of `fn` as the function `name`, with the example of the operator behind it if that calls this very function."""
    if fn.__doc__ is None or ">>>" in fn.__doc__:
        return fn.__doc__
    space = module.replace("mxnet.numpy_extension", "mx.npx").replace("mxnet.numpy", "mx.np")
    for prefix in ("_npi_", "_np_"):
        operator = OPERATORS.get(prefix + getattr(fn, "operator", fn.__name__.rstrip("_")))
        _, heading, example = unindented(getattr(operator, "__doc__", None) or "").partition("\n\nExample\n")
        shown = operator and f"{space}.{operator.name.removeprefix(prefix)}("  # the same function may have several names
        if example and shown in example:
            return unindented(fn.__doc__).rstrip() + heading + example.replace(shown, f"{space}.{name}(")
    return fn.__doc__


class Arrays:
    """Calls operators on ``mx.np`` arrays."""

    kind = ndarray

    def is_array(self, x: Any) -> bool:
        """Return True if `x` is one of this front end's arrays."""
        return isinstance(x, ndarray)

    def call(self, name: str, *inputs: Any, out: Any = None, **attrs: Any) -> Any:
        """Return the operator's results; attributes that are None are left at their defaults."""
        op = get(name)
        for i, x in enumerate(inputs):
            if x is not None and not isinstance(x, ndarray):
                refuse(op, i, x)
        return invoke(op, inputs, {k: v for k, v in attrs.items() if v is not None}, _checked_out(out), ndarray)

    def call_scalar(self, name: str, x: Any, scalar: Any, out: Any = None) -> Any:
        """Return the result of an operator on an array and a number."""
        op, attrs = get(name), {"scalar": float(scalar)}
        if fractions_widen and not isinstance(scalar, (int, onp.integer, onp.bool_)) and "is_int" in op.attributes:
            attrs["is_int"] = False
        return invoke(op, (x,), attrs, _checked_out(out), ndarray)

    def truth(self, x: Any) -> Any:
        """Return a boolean scalar as Python's."""
        return x.item()

    def context(self, ctx: Context | None) -> Context:
        """Return the context for an argument ``ctx=None``."""
        return current_context() if ctx is None else ctx

    def ndim(self, x: Any) -> int:
        """Return the number of axes of `x`."""
        return x.ndim


def _checked_out(out):
    if out is not None and not isinstance(out, (ndarray, list, tuple)):
        raise TypeError(f"`out` must be an mxnet.numpy.ndarray, received {type(out)}")
    return out


class InputTypeError(TypeError, AssertionError):
    """An argument is no ``mx.np`` array. MXNet asserts that it is, so that programs may catch an AssertionError."""


def refuse(op: Operator, position: int, x: Any) -> NoReturn:
    """Raise an error that names the input that is no array, and the remedy."""
    name = op.inputs[min(position, len(op.inputs) - 1)]
    if isinstance(x, NDArray):
        raise TypeError(f"{op.name}: input `{name}` is an mx.nd.NDArray where an mx.np.ndarray is expected; call as_np_ndarray() on it")
    raise InputTypeError(f"{op.name}: input `{name}` must be an array, received {shortened(x)} ({type(x).__name__}); "
                         "make arrays with mx.np.array(...)")


arrays = Arrays()
