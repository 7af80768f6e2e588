"""``numpy.mean(x)`` and ``numpy.add(x, y)`` on ``mx.np`` arrays: NumPy's protocols for other arrays (NEP 13 and 18)."""
from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as onp
import torch

from ..ndarray.dispatch import mode
from .creation import of_official
from .fallback import call_official, to_official
from .multiarray import ndarray

FUNCTIONS = """all any sometrue argmin argmax around round round_ argsort sort append broadcast_arrays broadcast_to clip concatenate copy cumsum
diag diagonal diagflat dot expand_dims fix flip flipud fliplr inner insert max amax mean min amin nonzero ones_like atleast_1d atleast_2d
atleast_3d prod product ravel repeat reshape roll split array_split hsplit vsplit dsplit squeeze stack std sum swapaxes take tensordot tile
transpose unique unravel_index diag_indices_from delete var vdot vstack column_stack hstack dstack zeros_like linalg.norm linalg.cholesky
linalg.inv linalg.solve linalg.tensorinv linalg.tensorsolve linalg.pinv linalg.eigvals linalg.eig linalg.eigvalsh linalg.eigh shape trace tril
meshgrid outer einsum polyval shares_memory may_share_memory quantile percentile diff ediff1d resize where full_like bincount empty_like
nan_to_num isnan isfinite isposinf isneginf isinf pad""".split()
UFUNCS = """abs fabs add arctan2 copysign degrees hypot lcm subtract multiply true_divide negative power mod matmul absolute rint sign exp log
log2 log10 expm1 sqrt square cbrt reciprocal invert bitwise_not remainder sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh
arctanh maximum minimum ceil trunc floor bitwise_and bitwise_xor bitwise_or logical_not equal not_equal less less_equal greater
greater_equal""".split()
# NumPy's names of functions that have another name in MXNet.
_UFUNC_NAMES = {"divide": "true_divide"}

_functions: dict = {}
_ufuncs: dict = {}

# NumPy's functions that return several arrays, in a list, tuple or named tuple according to NumPy's version; each with a call that shows it.
_SEVERAL = {
    onp.broadcast_arrays: lambda: onp.broadcast_arrays(0, 0),
    onp.meshgrid: lambda: onp.meshgrid([0], [0]),
    onp.atleast_1d: lambda: onp.atleast_1d(0, 0),
    onp.atleast_2d: lambda: onp.atleast_2d(0, 0),
    onp.atleast_3d: lambda: onp.atleast_3d(0, 0),
    onp.split: lambda: onp.split(onp.zeros(2), 2),
    onp.linalg.eig: lambda: onp.linalg.eig(onp.eye(1)),
    onp.linalg.eigh: lambda: onp.linalg.eigh(onp.eye(1)),
}


@functools.cache
def _container(function):
    """Return the constructor of the sequence that the installed NumPy's function returns; None if it has no such sequence."""
    if function not in _SEVERAL:
        return None
    kind = type(_SEVERAL[function]())
    return getattr(kind, "_make", kind)  # a named tuple is made by a method of its own


def implements(numpy_function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a decorator that registers a function to replace `numpy_function` on ``mx.np`` arrays."""
    def decorator(own):
        _functions[numpy_function] = own
        return own

    return decorator


def register(namespace: Any) -> None:
    """Make the functions of a namespace those that NumPy calls for ``mx.np`` arrays."""
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in FUNCTIONS:
            official, own = onp, namespace
            for part in path.split("."):
                official, own = getattr(official, part, None), getattr(own, part)
            if official is not None:
                _functions[official] = own
    for name in UFUNCS:
        _ufuncs[name] = getattr(namespace, name)
        _ufuncs[getattr(onp, name).__name__] = getattr(namespace, name)


def _array_ufunc(self, ufunc, method, *inputs, **kwargs):
    """Handle a ufunc such as ``numpy.add(x, y)``: the method ``__array_ufunc__``."""
    if method != "__call__":
        return NotImplemented
    out = kwargs.get("out")
    if isinstance(out, tuple):
        if len(out) != 1:
            raise ValueError(f"`out` must be one array, received {len(out)}")
        kwargs["out"] = out = out[0]
    own = _ufuncs.get(ufunc.__name__)
    if own is None:
        return call_official(ufunc, inputs, kwargs)
    if isinstance(out, onp.ndarray):  # ``official += array``
        if mode.tracing is not None:
            mode.tracing.fail(f"{ufunc.__name__} writes to an array of NumPy's, which can't be part of a graph")
        return ufunc(*to_official(inputs)[0], **kwargs)
    return _call(own, _converted(inputs, _context(inputs)), kwargs)


def _context(values):
    """Return the device of the first ``mx.np`` array in arguments, None without any."""
    for value in values:
        if isinstance(value, ndarray):
            return value.ctx
        if isinstance(value, (list, tuple)) and (ctx := _context(value)) is not None:
            return ctx
    return None


def _converted(value, ctx):
    """Arguments with every NumPy array in them as an ``mx.np`` array on a device."""
    if isinstance(value, onp.ndarray) and ctx is not None and value.dtype.kind in "biuf":
        return of_official(value, ctx)
    return type(value)(_converted(v, ctx) for v in value) if type(value) in (list, tuple) else value


def _in_memory(value):
    """Return an array as a NumPy array of integers in the same memory; everything else as it is."""
    if not isinstance(value, ndarray):
        return value
    tensor = value._raw()
    return tensor.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]).numpy()


class _Running(threading.local):
    functions: tuple = ()


_running = _Running()


def _call(own, args, kwargs):
    """Call our function. On plain numbers it calls NumPy's, which would call ours again for any other array argument: a TypeError."""
    before = _running.functions
    if own in before:
        raise TypeError(f"{own.__name__}: an array of mx.np was given where numbers are expected, since the other arguments are plain numbers")
    _running.functions = (*before, own)
    try:
        return own(*args, **kwargs)
    finally:
        _running.functions = before


def _array_function(self, func, types, args, kwargs):
    """Handle a function such as ``numpy.mean(x)``: the method ``__array_function__``."""
    own = _functions.get(func)
    if own is None:
        return call_official(func, args, kwargs)
    if not all(issubclass(t, ndarray) for t in types):
        if not all(issubclass(t, (ndarray, onp.ndarray)) for t in types):
            return NotImplemented
        if func in (onp.may_share_memory, onp.shares_memory):
            return all(isinstance(a, onp.ndarray) or a.ctx.device_type != "gpu" for a in args[:2]) and func(*map(_in_memory, args), **kwargs)
        ctx = _context([*args, *kwargs.values()])
        args = _converted(args, ctx)
        kwargs = {name: value if name == "out" else _converted(value, ctx) for name, value in kwargs.items()}
    result = _call(own, args, kwargs)
    if type(result) not in (list, tuple):
        return result
    container = _container(func)
    return container(result) if container is not None else result


ndarray.__array_ufunc__ = _array_ufunc
ndarray.__array_function__ = _array_function
