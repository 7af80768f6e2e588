"""Types of ``mx.np`` in MXNet 2.0's names: limits, conversions, and the common types of pairs."""
import itertools
from typing import Any, NamedTuple

import numpy as onp

from ..base import MXNetError
from ..ops import dtypes
from ..ops.numpy.promotion import common_type
from ..suggestions import shortened
from .multiarray import ndarray

int16, uint16, uint32, uint64 = onp.int16, onp.uint16, onp.uint32, onp.uint64
dtype = onp.dtype
_NoValue = onp._NoValue

integer_dtypes = [onp.dtype(n) for n in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")]
floating_dtypes = [onp.dtype(n) for n in ("float16", "float32", "float64")]
numeric_dtypes = [*integer_dtypes, *floating_dtypes]
boolean_dtypes = [onp.dtype("bool")]

_BOOL = boolean_dtypes[0]
_DTYPE_2_STR_: dict[Any, str] = {**{t: t.name for t in numeric_dtypes}, _BOOL: "bool", float: "float64", int: "int64", bool: "bool", None: "None"}


class IntegerLimits(NamedTuple):
    """What `iinfo` returns."""

    bits: int
    max: int
    min: int


def _type_of(value: Any) -> Any:
    return value.dtype if isinstance(value, ndarray) else value


def finfo(dtype: Any) -> onp.finfo:
    """The limits of a floating-point type, or of an array's type, as the official NumPy's ``finfo``.

    Raises
    ------
    ValueError
        If the type holds integers or booleans.

    Example
    -------
    >>> mx.np.finfo('float32').bits
    32
    """
    return onp.finfo(_type_of(dtype))


def iinfo(dtype: Any) -> IntegerLimits:
    """The limits of a type of integers, or of an array's type.

    Raises
    ------
    ValueError
        If the type does not hold integers.

    Example
    -------
    >>> mx.np.iinfo(mx.np.uint16)
    IntegerLimits(bits=16, max=65535, min=0)
    """
    info = onp.iinfo(_type_of(dtype))
    return IntegerLimits(info.bits, int(info.max), int(info.min))


def can_cast(from_: Any, to: Any) -> bool:
    """True if `to` holds every number of a type, or of an array's type.

    Example
    -------
    >>> mx.np.can_cast('int32', 'int64'), mx.np.can_cast('float32', 'int64')
    (True, False)
    """
    try:
        return bool(onp.can_cast(_type_of(from_), to))
    except TypeError as error:
        raise TypeError(f"can_cast: types or arrays expected, received {shortened(from_)} and {shortened(to)}: {error}") from None


def _common_types() -> dict[tuple[Any, Any], Any]:
    """The common type of each pair of types that have one."""
    table = {}
    for a, b in itertools.product([*numeric_dtypes, *boolean_dtypes], repeat=2):
        try:
            table[a, b] = onp.dtype(dtypes.to_numpy(common_type("mx.np", dtypes.to_torch(a), dtypes.to_torch(b))))
        except MXNetError:  # uint64 and a signed type have none
            continue
    return table


_type_promotion_table = _common_types()
