"""Scaled dot product attention."""
from __future__ import annotations

import math

import torch

from ... import symbol as sym
from ...symbol import Symbol
from .layers import _as_matrices, _with_batch
from .registry import converts
from .values import Call, Value

_FAR = -3.0e38  # a score that softmax makes 0 of; the sum with any score is a number


@converts("scaled_dot_product_attention")
def attention(call: Call, query: Value, key: Value, value: Value, mask: Value | None = None, dropout: float = 0.0, causal: bool = False,
              scale: float | None = None, grouped: bool = False) -> Value:
    if grouped and len(query.shape) > 2 and query.shape[-3] != key.shape[-3]:
        raise call.refuse("`enable_gqa` is set")
    batch, size = query.shape[:-2], call.sizes(query.shape[-1:])[0]
    q, k, v = (_as_matrices(call, x, batch) for x in (query, key, value))
    scores = sym.batch_dot(q * (1 / math.sqrt(size) if scale is None else scale), k, transpose_b=True)
    offset = _offset(call, query, key, mask, causal)
    if offset is not None:
        shape = (*batch, query.shape[-2], key.shape[-2])
        scores = scores if len(batch) == 1 else _with_batch(call, scores, batch)
        scores = sym.broadcast_add(scores, _ranked(call, offset, len(shape)))
        for _ in range(len(batch) - 1):
            scores = sym.reshape(scores, shape=(-3, -2))
    weights = sym.softmax(scores, axis=-1)
    if dropout:
        weights = sym.Dropout(weights, p=dropout)
    mixed = sym.batch_dot(weights, v)
    return call.value(mixed if len(batch) == 1 else _with_batch(call, mixed, batch))


def _offset(call: Call, query: Value, key: Value, mask: Value | None, causal: bool) -> Value | None:
    """What is added to the scores."""
    if causal:
        rows, columns = call.sizes((query.shape[-2], key.shape[-2]), "`is_causal` is set and the lengths vary")
        return call.constant(torch.full((rows, columns), _FAR, dtype=query.dtype).triu_(1))
    if mask is None:
        return None
    meta = mask.constant.dtype if mask.constant is not None else None
    if meta is torch.bool:
        return call.constant(torch.zeros(mask.constant.shape, dtype=query.dtype).masked_fill_(~mask.constant, _FAR))  # type: ignore[union-attr]
    if mask.truth:
        return Value(mask.shape, query.dtype, (1 - call.cast(mask, query.dtype)) * _FAR)
    return mask


def _ranked(call: Call, offset: Value, rank: int) -> Symbol:
    own = tuple(offset.constant.shape) if offset.constant is not None else offset.shape
    symbol = offset.symbol
    for _ in range(rank - len(own)):
        symbol = sym.expand_dims(symbol, axis=0)
    return symbol
