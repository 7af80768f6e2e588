"""Scaled dot product attention."""
from __future__ import annotations

import math

import torch

from ... import symbol as sym
from .layers import as_matrices, with_batch
from .registry import converts
from .values import Call, Value


@converts("scaled_dot_product_attention")
def attention(call: Call, query: Value, key: Value, value: Value, mask: Value | None = None, dropout: float = 0.0, causal: bool = False,
              scale: float | None = None, grouped: bool = False) -> Value:
    if grouped and len(query.shape) > 2 and query.shape[-3] != key.shape[-3]:
        raise call.refuse("`enable_gqa` is set")
    batch, size = query.shape[:-2], call.sizes(query.shape[-1:])[0]
    q, k, v = (as_matrices(call, x, batch) for x in (query, key, value))
    scores = sym.batch_dot(q * (1 / math.sqrt(size) if scale is None else scale), k, transpose_b=True)
    offset, attends = _mask(call, query, key, mask, causal)
    if offset is not None:
        shape = (*batch, query.shape[-2], key.shape[-2])
        scores = scores if len(batch) == 1 else with_batch(call, scores, batch)
        scores = sym.broadcast_add(scores, call.ranked(offset, query.dtype, len(shape)))
        for _ in range(len(batch) - 1):
            scores = sym.reshape(scores, shape=(-3, -2))
    weights = sym.softmax(scores, axis=-1)
    if dropout:
        weights = sym.Dropout(weights, p=dropout)
    mixed = sym.batch_dot(weights, v)
    mixed = mixed if len(batch) == 1 else with_batch(call, mixed, batch)
    return call.value(mixed if attends is None else sym.broadcast_mul(mixed, call.ranked(attends, query.dtype, len(call.shape))))


def _mask(call: Call, query: Value, key: Value, mask: Value | None, causal: bool) -> tuple[Value | None, Value | None]:
    """Return what is added to the scores, and a factor that is 0 in rows that attend to nothing, where torch's result is 0."""
    dtype = query.dtype
    lowest = torch.finfo(dtype).min
    far = 0.9 * lowest  # softmax makes 0 of it, and its sum with a score is a number
    if causal:
        rows, columns = call.sizes((query.shape[-2], key.shape[-2]), "`is_causal` is set and the lengths vary")
        return call.constant(torch.full((rows, columns), far, dtype=dtype).triu_(1)), None
    if mask is None:
        return None, None
    if mask.constant is not None:
        constant = mask.constant
        visible = constant if constant.dtype is torch.bool else constant >= lowest
        offset = torch.zeros(constant.shape, dtype=dtype) if constant.dtype is torch.bool else constant.to(dtype)
        attends = visible.any(-1, keepdim=True)
        return call.constant(offset.masked_fill(~visible, far)), None if attends.all() else call.constant(attends.to(dtype))
    symbol = call.cast(mask, dtype)
    seen = symbol if mask.truth else symbol >= lowest
    added = (1 - symbol) * far if mask.truth else sym.maximum(symbol, far)
    return Value(mask.shape, dtype, added), Value((*mask.shape[:-1], 1), dtype, sym.max(seen, axis=-1, keepdims=True))
