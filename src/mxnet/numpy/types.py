"""Types of ``mx.np`` in MXNet 2.0's names: limits, conversions, and the common types of pairs."""
import itertools
from typing import Any, NamedTuple

import numpy as onp

from ..base import MXNetError
from ..ops import dtypes
from ..ops.numpy.promotion import common_type
from ..suggestions import shortened
from ..util import version
from .fallback import call_official
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
    """The result of `iinfo`."""

    bits: int
    max: int
    min: int


def _type_of(value: Any) -> Any:
    return value.dtype if isinstance(value, ndarray) else value


def finfo(dtype: Any) -> onp.finfo:
    """Return the limits of a floating-point type, or of an array's type, as the official NumPy's ``finfo``.

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
    """Return the limits of a type of integers, or of an array's type.

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


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Return the common type of arrays and types: by NumPy's rules, and after ``mx.util.set_version('2.0')`` by those of `mx.np.add`.

    Raises
    ------
    TypeError
        If there is none: in MXNet 2.0 for uint64 beside a signed type.
    ValueError
        Without arguments.

    Example
    -------
    >>> mx.np.result_type('int8', 'uint8')
    dtype('int16')
    """
    if version() == "1.9":
        return call_official(onp.result_type, arrays_and_dtypes, {})
    if not arrays_and_dtypes:
        raise ValueError("result_type: at least one array or type expected, received none")
    kinds = [onp.dtype(_type_of(value)) for value in arrays_and_dtypes]
    common = kinds[0]
    for kind in kinds[1:]:
        if (common, kind) not in _type_promotion_table:
            raise TypeError(f"result_type: {common} and {kind} have no type in common; convert one with astype")
        common = _type_promotion_table[common, kind]
    return common


def _common_types() -> dict[tuple[Any, Any], Any]:
    """Return the common type of each pair of types that have one."""
    table = {}
    for a, b in itertools.product([*numeric_dtypes, *boolean_dtypes], repeat=2):
        try:
            table[a, b] = onp.dtype(dtypes.to_numpy(common_type("mx.np", dtypes.to_torch(a), dtypes.to_torch(b))))
        except MXNetError:  # uint64 and a signed type have none
            continue
    return table


_type_promotion_table = _common_types()
