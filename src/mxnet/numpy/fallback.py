"""Functions that MXNet hands to the official NumPy.

They compute on copies on the CPU and cannot be recorded. Functions that the installed NumPy no longer has are absent here, too.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as onp

from ..base import MXNetError, numeric_types
from ..ndarray.dispatch import mode
from . import financial
from .creation import array
from .multiarray import ndarray

_NAMES = """allclose alltrue apply_along_axis apply_over_axes argpartition argwhere array_equal array_equiv choose compress corrcoef correlate
count_nonzero cov digitize divmod extract flatnonzero float_power frexp heaviside histogram2d histogram_bin_edges histogramdd i0 in1d
interp intersect1d isclose isin ix_ lexsort min_scalar_type mirr modf msort nanargmax nanargmin nancumprod nancumsum nanmax nanmedian nanmin
nanpercentile nanprod nanquantile nanstd nansum nanvar ndim npv partition packbits piecewise pmt poly polyadd polydiv polyfit polyint polymul
polysub ppmt promote_types ptp pv rate real rollaxis roots searchsorted select setdiff1d setxor1d signbit size spacing
take_along_axis trapz tril_indices_from trim_zeros triu_indices_from union1d unpackbits unwrap vander""".split()
_LINALG = ["cond", "matrix_power", "matrix_rank", "multi_dot"]


def to_official(value: Any) -> tuple[Any, Any]:
    """Return the same with every ``mx.np`` array as a NumPy array, and the context of the first (None without any)."""
    if isinstance(value, ndarray):
        return value.asnumpy(), value.ctx
    if isinstance(value, (list, tuple)):
        parts = [to_official(v) for v in value]
        contexts = [ctx for _, ctx in parts if ctx is not None]
        if any(ctx != contexts[0] for ctx in contexts):
            raise ValueError(f"arrays on one device expected, received {', '.join(map(str, contexts))}; move them with as_in_ctx()")
        return _rebuilt(value, [v for v, _ in parts]), contexts[0] if contexts else None
    return value, None


def from_official(value: Any, ctx: Any = None) -> Any:
    """Return the same with every NumPy array as an ``mx.np`` array on `ctx`."""
    if isinstance(value, onp.ndarray):
        if value.dtype.kind not in "biuf":
            return value
        return array(value, ctx=ctx)
    if isinstance(value, onp.bool_):
        return array(value, dtype="bool", ctx=ctx)
    if isinstance(value, (list, tuple)):
        return _rebuilt(value, [from_official(v, ctx) for v in value])
    if value is None or isinstance(value, (bool, *numeric_types, onp.dtype, type, str)):
        return value
    raise TypeError(f"Does not support converting {type(value)} to mx.np.ndarray.")


def _rebuilt(sequence, items):
    if hasattr(sequence, "_fields"):
        return type(sequence)(*items)
    return tuple(items) if isinstance(sequence, tuple) else list(items)


def call_official(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of a function of the official NumPy on ``mx.np`` arrays.

    Raises
    ------
    ValueError
        While autograd records, or if the arrays are on several devices.
    TypeError
        For a text that describes no type.
    MXNetError
        If there is no memory for the result.
    """
    if mode.tracing is not None:
        mode.tracing.fail(f"{getattr(function, '__name__', function)} is computed by NumPy, which can't be part of a graph")
    if mode.recording:
        raise ValueError(f"{getattr(function, '__name__', function)} is computed by NumPy, which autograd can't record; call it outside of "
                         "autograd.record()")
    given = (list(args), list(kwargs.values()))
    (plain_args, plain_kwargs), ctx = to_official(given)
    out = kwargs.get("out")
    named = dict(zip(kwargs, plain_kwargs))
    if isinstance(out, ndarray):
        named.pop("out")
    try:
        result = from_official(function(*plain_args, **named), ctx)
    except (SyntaxError, MemoryError) as error:  # NumPy reads texts such as "(2,3)f4" as Python does
        raise (TypeError if isinstance(error, SyntaxError) else MXNetError)(f"{getattr(function, '__name__', function)}: {error}") from error
    if isinstance(out, ndarray):
        out[...] = result
        return out
    return result


def _wrapped(function, name):
    def fallback(*args, **kwargs):
        return call_official(function, args, kwargs)

    fallback.__name__ = fallback.__qualname__ = name
    fallback.__module__ = "mxnet.numpy"
    fallback.__doc__ = f"`numpy.{name}`, computed by the official NumPy on the CPU; it cannot be recorded for autograd."
    fallback.__wrapped__ = function
    try:
        fallback.__signature__ = inspect.signature(function)
    except (ValueError, TypeError):
        pass
    return fallback


# Renamed or split off since the NumPy that MXNet 1.9.1 was made for.
_RENAMED = {"alltrue": "all", "trapz": "trapezoid"}


def _polyint(p, m=1, k=None):
    # NumPy calls itself once for each order, after it has made that many constants.
    if onp.ndim(m) == 0 and m > _MOST_ORDERS:
        raise ValueError(f"polyint: the order m must be at most {_MOST_ORDERS}, received {m}")
    return onp.polyint(p, m, k)


_MOST_ORDERS = 500


def _in1d(ar1, ar2, assume_unique=False, invert=False):
    return onp.isin(ar1, ar2, assume_unique=assume_unique, invert=invert).ravel()


def _official(name):
    if name == "polyint":
        return functools.wraps(onp.polyint)(_polyint)
    if name in financial.__all__:  # NumPy 1.20 to 1.26 still had the names, of functions that only raise
        return getattr(financial, name)
    function = getattr(onp, name, None) if name not in _RENAMED else getattr(onp, name, None) or getattr(onp, _RENAMED[name], None)
    if name == "in1d":
        return _in1d
    if function is None and name == "msort":
        return lambda a: onp.sort(a, axis=0)
    return function


def functions() -> dict[str, Callable[..., Any]]:
    """Return the functions for ``mx.np``, by name."""
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns when a deprecated name is looked up
        official = {name: _official(name) for name in _NAMES}
    return {name: _wrapped(function, name) for name, function in official.items() if function is not None}


def linalg_functions() -> dict[str, Callable[..., Any]]:
    """Return the functions for ``mx.np.linalg``, by name."""
    return {name: _wrapped(getattr(onp.linalg, name), name) for name in _LINALG}
