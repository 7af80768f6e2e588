"""Python's operators on ``mx.np`` arrays, and the methods that are functions of ``mx.np``."""
import inspect

from ..ndarray import dispatch
from ..ndarray.dispatch import in_graph, mode, refuse_inplace
from ..ops.registry import get
from .frontend import TABLE, arrays
from .functions.elementwise import BINARY, binary, unary
from .multiarray import ndarray

_METHODS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "mod": "mod", "power": "pow", "bitwise_and": "and",
            "bitwise_or": "or", "bitwise_xor": "xor"}
_COMPARISONS = {"equal": "eq", "not_equal": "ne", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"}


def _fast_pair(fn, a, b):
    """The result where nothing is to be recorded or explained, otherwise None."""
    if type(a) is type(b) is ndarray and a._ctx is b._ctx and dispatch.observer is None:
        x, y = a._data, b._data
        if a._autograd is None and b._autograd is None:
            try:
                return ndarray._new(fn(x, y), a._ctx)
            except Exception:  # the general path explains what is wrong
                return None
    return None


def binary_function(name):
    """``mx.np.<name>`` of two arrays or numbers."""
    fn = get(BINARY[name][0]).fn

    def function(x1, x2, out=None, **kwargs):
        if out is None and not kwargs:
            result = _fast_pair(fn, x1, x2)
            if result is not None:
                return result
        return binary(arrays, name, x1, x2, out, kwargs)

    return function


def _forward(name):
    fn, scalar_op = get(BINARY[name][0]).fn, get(BINARY[name][1])
    scalar_fn = scalar_op.fn

    def method(self, other):
        result = _fast_pair(fn, self, other)
        if result is not None:
            return result
        if type(other) in (int, float) and dispatch.observer is None and self._autograd is None and self._data.is_floating_point():
            return ndarray._new(scalar_fn(self._data, scalar=other), self._ctx)
        return binary(arrays, name, self, other)

    return method


def _inplace(name):
    def method(self, other):
        if mode.recording and in_graph(self):
            refuse_inplace()
        return binary(arrays, name, self, other, self)

    return method


for _name, _suffix in _METHODS.items():
    setattr(ndarray, f"__{_suffix}__", _forward(_name))
    setattr(ndarray, f"__r{_suffix}__", lambda self, other, _name=_name: binary(arrays, _name, other, self))
    setattr(ndarray, f"__i{_suffix}__", _inplace(_name))
for _name, _suffix in _COMPARISONS.items():
    setattr(ndarray, f"__{_suffix}__", _forward(_name))
ndarray.__matmul__ = lambda self, other: arrays.call("_npi_matmul", self, other)
ndarray.__rmatmul__ = lambda self, other: arrays.call("_npi_matmul", other, self)
ndarray.__imatmul__ = lambda self, other: arrays.call("_npi_matmul", self, other, out=self)
ndarray.__neg__ = lambda self: binary(arrays, "multiply", self, -1.0)
ndarray.__invert__ = lambda self: unary(arrays, "invert", self)
ndarray.__abs__ = lambda self: unary(arrays, "absolute", self)
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
    """A method with the parameters in the order of NumPy's methods, which is not that of MXNet's functions."""
    fn = TABLE[""][name]

    def method(self, *args, **kwargs):
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
