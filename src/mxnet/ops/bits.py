"""Operators on the bits of numbers."""
from typing import Literal

import torch

from ..base import MXNetError
from . import dtypes
from .elemwise.common import broadcast_rule
from .registry import op
from .schema import DType
from .shapes import unify


@op("_contrib_bit_shift", no_gradient=True, complete_rule="shape", amp=None)
def bit_shift(data, amount, *, direction: Literal["LEFT", "RIGHT"]):
    """Shift the bits of integers by `amount`, which is broadcast. An amount below 0, or of all bits and more, shifts all of them out.

    Raises
    ------
    MXNetError
        If `data` or `amount` are no integers.

    Example
    -------
    >>> x, n = mx.nd.array([16, -8], dtype='int32'), mx.nd.array([1, 40], dtype='int32')
    >>> mx.nd.contrib.bit_shift(x, n, direction='RIGHT').asnumpy()
    array([ 8, -1], dtype=int32)
    """
    if data.is_meta:  # shapes are inferred before types are known
        return data.new_empty(torch.broadcast_shapes(data.shape, amount.shape))
    for tensor in (data, amount):
        if tensor.is_floating_point() or tensor.dtype is torch.bool:
            raise MXNetError(f"_contrib_bit_shift: expected integers, received {dtypes.name_of(tensor.dtype)}")
    bits = torch.iinfo(data.dtype).bits
    outside = (amount < 0) | (amount >= bits)
    inside = amount.clamp(0, bits - 1).to(data.dtype)
    if direction == "LEFT":
        return torch.where(outside, torch.zeros_like(data), torch.bitwise_left_shift(data, inside))
    signs = torch.where(data < 0, -torch.ones_like(data), torch.zeros_like(data)) if torch.iinfo(data.dtype).min else torch.zeros_like(data)
    return torch.where(outside, signs, torch.bitwise_right_shift(data, inside))


bit_shift.shape_rule(broadcast_rule)


@bit_shift.dtype_rule
def _(in_types, out_types, *, direction):
    first = in_types[0] or out_types[0] or in_types[1]
    return [first, in_types[1] or first], [first]


@op("_contrib_bitcast", no_gradient=True, complete_rule="shape", amp=None)
def bitcast(data, *, dtype: DType):
    """Reinterpret the bits of `data` as numbers of another type with equally many bits.

    Raises
    ------
    MXNetError
        If they have not.

    Example
    -------
    >>> mx.nd.contrib.bitcast(mx.nd.array([1.0, -2.5]), dtype='int32').asnumpy()
    array([ 1065353216, -1071644672], dtype=int32)
    """
    if data.dtype.itemsize != dtype.itemsize:
        raise MXNetError(f"_contrib_bitcast: {dtypes.name_of(dtype)} has {8 * dtype.itemsize} bits, received {dtypes.name_of(data.dtype)} of "
                         f"{8 * data.dtype.itemsize}")
    return data.clone().view(dtype)


@bitcast.shape_rule
def _(in_shapes, out_shapes, *, dtype):
    shape = unify(in_shapes[0], out_shapes[0])
    return [shape], [shape]


@bitcast.dtype_rule
def _(in_types, out_types, *, dtype):
    return in_types, [dtype]
