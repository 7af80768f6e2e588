"""``mx.np``: arrays and functions with NumPy's semantics, recorded by autograd and run on any device.

Scalars are arrays without axes, comparisons give booleans, the default type is float32. Switch Gluon to these arrays with
``mx.npx.set_np()``; ``x.as_nd_ndarray()`` and ``x.as_np_ndarray()`` give the same memory to the other interface.

The functions are written in `functions`, once for arrays and for the Symbols of ``mx.sym.np``; those that MXNet leaves to the official NumPy
is in `fallback`.
"""
from __future__ import annotations

import sys as _sys
from typing import Any as _Any

from numpy import __version__ as _official_version
from numpy import bool_, e, float16, float32, float64, inf, int8, int32, int64, nan, newaxis, pi, uint8

from ..lazy_modules import load_module as _load_module
from ..suggestions import MissingAttributeError as _MissingAttributeError
from . import _internal, linalg, random
from . import arithmetic as _arithmetic
from . import fallback as _fallback
from . import functions as _functions
from . import protocols as _protocols
from .creation import array, asarray, broadcast_arrays, empty, fill_diagonal, from_dlpack, genfromtxt, meshgrid, set_printoptions, shape
from .frontend import TABLE as _TABLE
from .frontend import arrays as _arrays
from .frontend import bind as _bind
from .multiarray import ndarray
from .sets import unique_all, unique_inverse, unique_values
from .types import (
    _DTYPE_2_STR_,
    _NoValue,
    _type_promotion_table,
    boolean_dtypes,
    can_cast,
    dtype,
    finfo,
    floating_dtypes,
    iinfo,
    int16,
    integer_dtypes,
    numeric_dtypes,
    result_type,
    uint16,
    uint32,
    uint64,
)

# Names of constants that NumPy 2 has dropped and MXNet has.
PZERO, NZERO, NAN, NaN, PINF, NINF, Inf, Infinity = 0.0, -0.0, nan, nan, inf, -inf, inf, inf  # noqa: N816
__version__ = _official_version
bool = bool  # noqa: A001

globals().update(_fallback.functions())
for _name, _function in _TABLE[""].items():
    globals()[_name] = _bind(_function, _arrays, _name, __name__)
for _names, _make in ((_arithmetic.BINARY, _arithmetic.binary_function), (_arithmetic.UNARY, _arithmetic.unary_function)):
    for _name in _names:
        _fast, _slow = _make(_name), globals()[_name]
        _fast.__name__ = _fast.__qualname__ = _name
        _fast.__module__, _fast.__doc__, _fast.__signature__ = __name__, _slow.__doc__, _slow.__signature__
        globals()[_name] = _fast


def __getattr__(name: str) -> _Any:
    if name == "array_api":  # rarely used modules are loaded on demand
        return _load_module(f"{__name__}.array_api")
    raise _MissingAttributeError(__name__, name)


_protocols.register(_sys.modules[__name__])

__all__ = sorted({*_TABLE[""], *_fallback.functions(), "array", "asarray", "broadcast_arrays", "empty", "fill_diagonal", "from_dlpack", "genfromtxt",
                  "meshgrid", "set_printoptions", "shape", "ndarray", "linalg", "random", "unique_all", "unique_inverse", "unique_values", "can_cast",
                  "dtype", "result_type", "finfo", "iinfo", "int16", "uint16", "uint32", "uint64",
                  "bool_", "e", "float16", "float32", "float64", "inf", "int32", "int64", "int8", "nan", "newaxis", "pi", "uint8"})
