"""Functions that MXNet hands to the official NumPy.

They compute on copies on the CPU and cannot be recorded. Functions that the installed NumPy no longer has are absent here, too.
"""
from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as onp

from ..base import MXNetError, numeric_types
from ..ndarray.dispatch import mode
from . import financial
from .creation import array
from .multiarray import ndarray

# Each function with its example; `array` is ``mx.np.array``, and the function itself is without ``mx.np``.
_EXAMPLES = """
allclose: allclose(array([1, 2]), array([1, 2])) -> True
alltrue: alltrue(array([True, False])) -> array(False)
apply_along_axis: apply_along_axis(lambda row: row.sum(), 1, array([[1, 2], [3, 4]])) -> array([3., 7.])
apply_over_axes: apply_over_axes(lambda x, axis: x.sum(axis, keepdims=True), array([[1, 2], [3, 4]]), [0, 1]) -> array([[10.]])
argpartition: argpartition(array([3, 1, 2]), 0)[0] -> array(1, dtype=int64)
argwhere: argwhere(array([[1, 0], [0, 2]])).tolist() -> [[0, 0], [1, 1]]
array_equal: array_equal(array([1, 2]), array([1, 2])) -> True
array_equiv: array_equiv(array([1, 2]), array([[1, 2], [1, 2]])) -> True
choose: choose(array([0, 1], dtype='int32'), [array([1, 2]), array([3, 4])]) -> array([1., 4.])
compress: compress(array([1, 2, 3]) != 2, array([1, 2, 3])) -> array([1., 3.])
corrcoef: corrcoef(array([[1, 2, 3], [6, 4, 2]])).round(3).tolist() -> [[1.0, -1.0], [-1.0, 1.0]]
correlate: correlate(array([1, 2, 3]), array([0, 1, 0.5])) -> array([3.5])
count_nonzero: int(count_nonzero(array([[1, 0], [0, 2]]))) -> 2
cov: cov(array([[1, 2, 3], [6, 4, 2]])).tolist() -> [[1.0, -2.0], [-2.0, 4.0]]
digitize: digitize(array([0.5, 2.5]), array([0, 1, 2, 3])) -> array([1, 3], dtype=int64)
divmod: divmod(array([7, 8]), array([2, 3])) -> (array([3., 2.]), array([1., 2.]))
extract: extract(array([1, 2, 3]) != 2, array([1, 2, 3])) -> array([1., 3.])
flatnonzero: flatnonzero(array([[1, 0], [0, 2]])) -> array([0, 3], dtype=int64)
float_power: float_power(array([2, 3]), 2) -> array([4., 9.], dtype=float64)
frexp: frexp(array([8, 10])) -> (array([0.5  , 0.625]), array([4, 4], dtype=int32))
heaviside: heaviside(array([-1, 0, 2]), 0.5) -> array([0. , 0.5, 1. ])
histogram2d: histogram2d(array([0, 1, 1]), array([0, 0, 1]), bins=2)[0].tolist() -> [[1.0, 0.0], [1.0, 1.0]]
histogram_bin_edges: histogram_bin_edges(array([0, 1, 4]), bins=4) -> array([0., 1., 2., 3., 4.])
histogramdd: histogramdd(array([[0, 0], [1, 1]]), bins=2)[0].tolist() -> [[1.0, 0.0], [0.0, 1.0]]
i0: i0(array([0, 1])).round(3) -> array([1.   , 1.266])
in1d: in1d(array([1, 2, 5]), array([2, 5, 7])) -> array([False,  True,  True])
interp: interp(array([0.5, 1.5]), array([0, 1, 2]), array([0, 10, 30])) -> array([ 5., 20.], dtype=float64)
intersect1d: intersect1d(array([1, 2, 3]), array([2, 3, 4])) -> array([2., 3.])
isclose: isclose(array([1, 2]), array([1, 2.5])) -> array([ True, False])
isin: isin(array([[1, 2], [5, 6]]), array([2, 5])).tolist() -> [[False, True], [True, False]]
ix_: ix_(array([0, 2]) > 1, array([1, 2]) > 0)[1] -> array([[0, 1]], dtype=int64)
lexsort: lexsort((array([1, 2, 3]), array([2, 1, 1]))) -> array([1, 2, 0], dtype=int64)
min_scalar_type: min_scalar_type(array(10, dtype='uint8')) -> dtype('uint8')
mirr: f"{mirr(array([-100, 60, 60]), 0.1, 0.1):.3f}" -> '0.122'
modf: modf(array([1.5, -2.25])) -> (array([ 0.5 , -0.25]), array([ 1., -2.]))
msort: msort(array([[3, 1], [2, 4]])).tolist() -> [[2.0, 1.0], [3.0, 4.0]]
nanargmax: int(nanargmax(array([1, mx.np.nan, 3]))) -> 2
nanargmin: int(nanargmin(array([mx.np.nan, 4, 3]))) -> 2
nancumprod: nancumprod(array([1, mx.np.nan, 3])) -> array([1., 1., 3.])
nancumsum: nancumsum(array([1, mx.np.nan, 3])) -> array([1., 1., 4.])
nanmax: float(nanmax(array([1, mx.np.nan, 3]))) -> 3.0
nanmedian: float(nanmedian(array([1, mx.np.nan, 3]))) -> 2.0
nanmin: float(nanmin(array([1, mx.np.nan, 3]))) -> 1.0
nanpercentile: float(nanpercentile(array([1, mx.np.nan, 3]), 50)) -> 2.0
nanprod: float(nanprod(array([2, mx.np.nan, 3]))) -> 6.0
nanquantile: float(nanquantile(array([1, mx.np.nan, 3]), 0.5)) -> 2.0
nanstd: float(nanstd(array([1, mx.np.nan, 3]))) -> 1.0
nansum: float(nansum(array([1, mx.np.nan, 3]))) -> 4.0
nanvar: float(nanvar(array([1, mx.np.nan, 3]))) -> 1.0
ndim: ndim(array([[1, 2]])) -> 2
npv: f"{npv(0.1, array([-100, 60, 60])):.3f}" -> '4.132'
partition: partition(array([3, 1, 2]), 0)[0] -> array(1.)
packbits: packbits(array([1, 0, 1, 0, 0, 0, 0, 1], dtype='uint8')) -> array([161], dtype=uint8)
piecewise: piecewise(array([-1, 2]), [array([-1, 2]) < 0], [0, 1]) -> array([0., 1.])
pmt: f"{pmt(0.1, 2, 100):.3f}" -> '-57.619'
poly: poly(array([1, 2])) -> array([ 1., -3.,  2.])
polyadd: polyadd(array([1, 2]), array([3, 4])) -> array([4., 6.])
polydiv: polydiv(array([1, 3, 2]), array([1, 1])) -> (array([1., 2.]), array([0.]))
polyfit: polyfit(array([0, 1, 2]), array([1, 3, 5]), 1).round(3) -> array([2., 1.], dtype=float64)
polyint: polyint(array([2, 1])) -> array([1., 1., 0.], dtype=float64)
polymul: polymul(array([1, 1]), array([1, 2])) -> array([1., 3., 2.])
polysub: polysub(array([3, 4]), array([1, 2])) -> array([2., 2.])
ppmt: f"{ppmt(0.1, 1, 2, 100):.3f}" -> '-47.619'
promote_types: promote_types('int8', 'float32') -> dtype('float32')
ptp: float(ptp(array([1, 5, 3]))) -> 4.0
pv: f"{pv(0.1, 2, -60):.3f}" -> '104.132'
rate: f"{rate(2, 0, -100, 121):.3f}" -> '0.100'
real: real(array([1, 2])) -> array([1., 2.])
rollaxis: rollaxis(mx.np.zeros((2, 3, 4)), 2).shape -> (4, 2, 3)
roots: roots(array([1, -3, 2])).round(3) -> array([2., 1.])
searchsorted: searchsorted(array([1, 2, 4]), array([3, 0])) -> array([2, 0], dtype=int64)
select: select([array([1, 5]) < 3], [array([1, 2])], default=9) -> array([1., 9.])
setdiff1d: setdiff1d(array([1, 2, 3]), array([2])) -> array([1., 3.])
setxor1d: setxor1d(array([1, 2, 3]), array([2, 3, 4])) -> array([1., 4.])
signbit: signbit(array([-1, 2])) -> array([ True, False])
size: size(array([[1, 2], [3, 4]])) -> 4
spacing: spacing(array([1, 1024])) -> array([1.1920929e-07, 1.2207031e-04])
take_along_axis: take_along_axis(array([[3, 1], [2, 4]]), array([[1], [0]], dtype='int64'), 1).tolist() -> [[1.0], [2.0]]
trapz: float(trapz(array([1, 2, 3]))) -> 4.0
tril_indices_from: tril_indices_from(mx.np.zeros((2, 2))) -> (array([0, 1, 1], dtype=int64), array([0, 0, 1], dtype=int64))
trim_zeros: trim_zeros(array([0, 1, 2, 0])) -> array([1., 2.])
triu_indices_from: triu_indices_from(mx.np.zeros((2, 2))) -> (array([0, 0, 1], dtype=int64), array([0, 1, 1], dtype=int64))
union1d: union1d(array([1, 3]), array([2, 3])) -> array([1., 2., 3.])
unpackbits: unpackbits(array([161], dtype='uint8')) -> array([1, 0, 1, 0, 0, 0, 0, 1], dtype=uint8)
unwrap: unwrap(array([0, 3, 6.5])).round(2) -> array([0.  , 3.  , 0.22])
vander: vander(array([1, 2, 3]), 2).tolist() -> [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]
"""
_LINALG_EXAMPLES = """
cond: float(cond(array([[2, 0], [0, 1]]))) -> 2.0
matrix_power: matrix_power(array([[1, 1], [0, 1]]), 3).tolist() -> [[1.0, 3.0], [0.0, 1.0]]
matrix_rank: int(matrix_rank(array([[1, 2], [2, 4]]))) -> 1
multi_dot: multi_dot([array([[1, 2]]), array([[1], [1]]), array([[5]])]) -> array([[15.]])
"""


def _examples(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.strip().split("\n"))


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


def _example(text, space, name):
    """Return the lines of an example of a table."""
    call, result = text.split(" -> ")
    call = re.sub(rf"\b{name}\(", f"{space}.{name}(", call, count=1)
    call = re.sub(r"(?<![.\w])array\(", "mx.np.array(", call)
    return f">>> {call}\n    {result}"


def _wrapped(function, name, space, example):
    def fallback(*args, **kwargs):
        return call_official(function, args, kwargs)

    fallback.__name__ = fallback.__qualname__ = name
    fallback.__module__ = "mxnet.numpy"
    fallback.__doc__ = f"""`numpy.{name}`, computed by the official NumPy on the CPU; it cannot be recorded for autograd.

    Example
    -------
    {_example(example, space, name)}
    """
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
        official = {name: (_official(name), example) for name, example in _examples(_EXAMPLES).items()}
    return {name: _wrapped(function, name, "mx.np", example) for name, (function, example) in official.items() if function is not None}


def linalg_functions() -> dict[str, Callable[..., Any]]:
    """Return the functions for ``mx.np.linalg``, by name."""
    return {name: _wrapped(getattr(onp.linalg, name), name, "mx.np.linalg", example) for name, example in _examples(_LINALG_EXAMPLES).items()}
