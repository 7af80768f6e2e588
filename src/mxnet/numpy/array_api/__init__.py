"""The array API standard 2024.12 on ``mx.np`` arrays: the namespace that ``x.__array_namespace__()`` returns.

Its functions take and return the arrays of ``mx.np``. Types and defaults are the standard's; those of ``mx.np`` are MXNet's: see docs/mxnet2.md.
Libraries that follow the standard, such as SciPy and scikit-learn, compute with these arrays through it. Autograd records its functions.

Example
-------
>>> import mxnet as mx
>>> xp = mx.np.ones((2,)).__array_namespace__()
>>> xp.sum(xp.asarray([1, 2, 3]))
array(6, dtype=int64)
"""
from math import e, inf, nan, pi

from . import fft, linalg
from .creation import (
                       arange,
                       array,
                       asarray,
                       empty,
                       empty_like,
                       eye,
                       from_dlpack,
                       full,
                       full_like,
                       linspace,
                       meshgrid,
                       ones,
                       ones_like,
                       tril,
                       triu,
                       zeros,
                       zeros_like,
)
from .elementwise import (
                       abs,
                       acos,
                       acosh,
                       add,
                       asin,
                       asinh,
                       atan,
                       atan2,
                       atanh,
                       bitwise_and,
                       bitwise_invert,
                       bitwise_left_shift,
                       bitwise_or,
                       bitwise_right_shift,
                       bitwise_xor,
                       ceil,
                       clip,
                       conj,
                       copysign,
                       cos,
                       cosh,
                       divide,
                       equal,
                       exp,
                       expm1,
                       floor,
                       floor_divide,
                       greater,
                       greater_equal,
                       hypot,
                       imag,
                       isfinite,
                       isinf,
                       isnan,
                       less,
                       less_equal,
                       log,
                       log1p,
                       log2,
                       log10,
                       logaddexp,
                       logical_and,
                       logical_not,
                       logical_or,
                       logical_xor,
                       maximum,
                       minimum,
                       multiply,
                       negative,
                       nextafter,
                       not_equal,
                       positive,
                       pow,
                       real,
                       reciprocal,
                       remainder,
                       round,
                       sign,
                       signbit,
                       sin,
                       sinh,
                       sqrt,
                       square,
                       subtract,
                       tan,
                       tanh,
                       trunc,
)
from .linalg import matmul, matrix_transpose, tensordot, vecdot
from .manipulation import (
                       broadcast_arrays,
                       broadcast_to,
                       concat,
                       expand_dims,
                       flip,
                       moveaxis,
                       permute_dims,
                       repeat,
                       reshape,
                       roll,
                       squeeze,
                       stack,
                       tile,
                       unstack,
)
from .searching import (
                       argmax,
                       argmin,
                       argsort,
                       nonzero,
                       searchsorted,
                       sort,
                       take,
                       take_along_axis,
                       unique_all,
                       unique_counts,
                       unique_inverse,
                       unique_values,
                       where,
)
from .statistics import all, any, count_nonzero, cumulative_prod, cumulative_sum, diff, max, mean, min, prod, std, sum, var
from .types import (
                       __array_namespace_info__,
                       astype,
                       bool,
                       can_cast,
                       complex64,
                       complex128,
                       finfo,
                       float32,
                       float64,
                       iinfo,
                       int8,
                       int16,
                       int32,
                       int64,
                       isdtype,
                       result_type,
                       uint8,
                       uint16,
                       uint32,
                       uint64,
)

__array_api_version__ = "2024.12"
newaxis = None

__all__ = sorted([name for name in dict(globals()) if not name.startswith("_")
                  and name not in ("calls", "creation", "elementwise", "manipulation", "searching", "statistics", "types")])
