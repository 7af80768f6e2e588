"""The operators that arrays and Symbols also have as methods: those with the trait ``method``."""
import functools
import types
from collections.abc import Callable
from typing import Any

from ..ops.registry import OPERATORS


def names() -> list[str]:
    """Return the methods' names: each the name or an alias of an operator, which is also that of the function."""
    return [name for name, op in OPERATORS.items() if op.method == name or op.method is True and name == op.name]


def attach(cls: type, function_of: Callable[[str], Callable], share: Callable | None = None) -> None:
    """Attach the methods to `cls`.

    `function_of(name)` returns the operator's function for that kind of array, ``share(name, array, ...)`` calls one whose result
    shares the array's memory; Symbols have none.
    """
    for name in names():
        method = _method(cls, name, function_of, share)
        setattr(cls, name, _with_leading_axes(method) if share is not None and name in ("broadcast_to", "broadcast_like") else method)


def _with_leading_axes(method: Callable) -> Callable:
    """Return an array's method that broadcasts, after which ``x.method(shape)`` and ``x.method(other)`` may have more axes than x; operators may not.

    Raises
    ------
    ValueError
        If the array cannot be broadcast to that shape.
    """
    def broadcast(self: Any, target: Any = None, *args: Any, **kwargs: Any) -> Any:
        if target is None:
            target = kwargs.pop("shape") if "shape" in kwargs else kwargs.pop("rhs", None)
        if target is not None and not args and not kwargs.keys() & {"lhs_axes", "rhs_axes"}:
            wanted = (target,) if isinstance(target, int) else target.shape if hasattr(target, "stype") else tuple(target)
            have = self.shape
            missing = len(wanted) - len(have)
            if missing < 0 or any(n not in (1, w) and w for n, w in zip(have, wanted[missing:])):
                raise ValueError(f"{method.__name__}: an array of shape {have} could not be broadcast to {wanted}")
            if missing:
                self = self.reshape((1,) * missing + have)
        return method(self, target, *args, **kwargs)

    broadcast.__name__, broadcast.__qualname__, broadcast.__doc__ = method.__name__, method.__qualname__, method.__doc__
    return broadcast


def _method(cls: type, name: str, function_of: Callable[[str], Callable], share: Callable | None) -> Callable:
    function: Callable | None = None  # made at the first call: making all of them at import would cost time

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal function
        if function is None:
            function = function_of(name)
            if vars(cls).get(name) is method and type(function) is types.FunctionType:  # its own calls are 0.2 us shorter
                setattr(cls, name, _with_texts_of(method, function))
        return function(self, *args, **kwargs)

    def reshaping(self: Any, *args: Any, inplace: bool = False, **kwargs: Any) -> Any:
        # `inplace` requests a result that shares memory; for a Symbol it makes no difference.
        return share(name, self, *args, **kwargs) if inplace and share is not None else method(self, *args, **kwargs)

    def transpose(self: Any, *axes: Any, **kwargs: Any) -> Any:
        if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
            axes = tuple(axes[0])
        return method(self, axes=axes, **kwargs) if axes else method(self, **kwargs)

    reshapes = OPERATORS[name].view is not None and OPERATORS[name].num_inputs == 1
    made = reshaping if reshapes else transpose if name == "transpose" else method
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"`{name}` of this array; see the function of that name for its arguments."
    return made


def _with_texts_of(method: Callable, function: types.FunctionType) -> Callable:
    """Return `function` under the name and with the docstring and signature of `method`."""
    copy = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(copy, method)
