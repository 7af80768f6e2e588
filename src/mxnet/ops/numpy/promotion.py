"""The common type of two arrays of unlike types, as MXNet 2.0 and the array API standard define it."""
import math

import torch

from ...base import MXNetError
from ..dtypes import name_of
from ..elemwise.common import wrap_integer
from ..host_arrays import constant
from .unsigned import WIDER

_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def common_type(operator: str, a: torch.dtype, b: torch.dtype) -> torch.dtype:
    """The type that `a` and `b` have in common: the wider one; the narrowest signed type that holds both a signed and an unsigned one.

    A floating-point type wins over integers, whatever their size, and any type over booleans.

    Raises
    ------
    MXNetError
        For uint64 and a signed type, which no integer type holds.
    """
    if a is b:
        return a
    if a not in WIDER and b not in WIDER:
        return torch.promote_types(a, b)
    for first, second in ((a, b), (b, a)):
        if first is torch.bool or second.is_floating_point or second.is_complex:
            return second
    signed = [t for t in (a, b) if t.is_signed]
    if not signed:
        return a if a.itemsize > b.itemsize else b
    unsigned = b if signed[0] is a else a
    size = max(signed[0].itemsize, 2 * unsigned.itemsize)
    if size > 8:
        raise MXNetError(f"{operator}: the data types {name_of(a)} and {name_of(b)} do not mix, since no integer type holds both; "
                         "convert one with astype")
    return _SIGNED[size]


def promoted_pair(operator: str, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors converted to their `common_type`."""
    common = common_type(operator, a.dtype, b.dtype)
    return a.to(common), b.to(common)


def number_beside(data: torch.Tensor, scalar: float) -> tuple[torch.Tensor, torch.Tensor]:
    """`data` and a tensor without axes for a number, both of one type: float32 for fractions beside integers, int64 for numbers beside booleans."""
    if data.is_floating_point() or data.is_complex():
        return data, data.new_full((), scalar)
    if not math.isfinite(scalar) or scalar != int(scalar):
        return data.float(), torch.full((), scalar, device=data.device)
    if data.dtype is torch.bool:
        if isinstance(scalar, bool):
            return data, data.new_full((), scalar)
        data = data.long()
    return data, constant([wrap_integer(scalar, data.dtype)], data.dtype, data.device).reshape(())
