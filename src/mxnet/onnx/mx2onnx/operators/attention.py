"""Attention over queries, keys and values that are interleaved in one array."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..builder import Unsupported
from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value


@exports("_contrib_div_sqrt_dim")
def div_sqrt_dim(on: Builder, x: Value) -> Value:
    return on.Div(x, math.sqrt(_width(x, 1)))


def _width(x, parts):
    if x.shape[-1] is None:
        raise Unsupported("the size of the last axis must not vary")
    return x.shape[-1] // parts


def _parts(on, x, heads, count):
    """Split (length, batch, heads * count * width) into `count` parts of shape (batch * heads, length, width)."""
    width = _width(x, heads * count)
    if width * heads * count != x.shape[-1]:
        raise Unsupported(f"{x.shape[-1]} features are no multiple of {heads * count}")
    pieces = on.split(on.reshape(x, [on.dim(x, 0), -1, count, width]), [1] * count, 2)
    return [on.transpose(on.squeeze(p, 2), (1, 0, 2)) for p in pieces], width


def _scores(on, queries, keys, width):
    return on.MatMul(on.Div(queries, math.sqrt(width)), on.Transpose(keys, perm=[0, 2, 1]))


def _joined(on, out, x, heads, width):
    """Reshape (batch * heads, length, width) to (length, batch, heads * width)."""
    turned = on.Transpose(out, perm=[1, 0, 2], out_shape=None if None in on.shape else (on.shape[0], on.shape[1] * heads, width))
    return on.reshape(turned, [0, -1, heads * width])


@exports("_contrib_interleaved_matmul_selfatt_qk")
def selfatt_qk(on: Builder, x: Value, *, heads: int) -> Value:
    (queries, keys, _), width = _parts(on, x, heads, 3)
    return _scores(on, queries, keys, width)


@exports("_contrib_interleaved_matmul_selfatt_valatt")
def selfatt_valatt(on: Builder, x: Value, attention: Value, *, heads: int) -> Value:
    (_, _, values), width = _parts(on, x, heads, 3)
    return _joined(on, on.MatMul(attention, values), x, heads, width)


@exports("_contrib_interleaved_matmul_encdec_qk")
def encdec_qk(on: Builder, x: Value, keys_values: Value, *, heads: int) -> Value:
    (queries,), width = _parts(on, x, heads, 1)
    (keys, _), _ = _parts(on, keys_values, heads, 2)
    return _scores(on, queries, keys, width)


@exports("_contrib_interleaved_matmul_encdec_valatt")
def encdec_valatt(on: Builder, keys_values: Value, attention: Value, *, heads: int) -> Value:
    (_, values), width = _parts(on, keys_values, heads, 2)
    return _joined(on, on.MatMul(attention, values), keys_values, heads, width)
