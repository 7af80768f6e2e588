"""Normalization over batches, layers, instances, channels."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..builder import Unsupported
from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value

_OF_BATCHES = ("momentum", "use_global_stats", "cudnn_off", "min_calib_range", "max_calib_range", "ndev", "key")


@exports("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU", ignores=(*_OF_BATCHES, "output_mean_var"))
def batch_norm(on: Builder, x: Value, gamma: Value, beta: Value, mean: Value, variance: Value, *, eps: float, fix_gamma: bool, axis: int | None = 1,
               operator: str) -> Any:
    """Normalize by the moving averages. Only the first output is written, since inference does not use the batch's moments."""
    axis %= x.ndim
    if fix_gamma:
        gamma = on.const(np.ones(_channels(gamma), gamma.dtype), gamma.dtype)
    order = list(range(x.ndim))
    order[1:1] = [order.pop(axis)] if x.ndim > 1 else []
    out = on.BatchNormalization(on.transpose(x, order), *(on.cast(v, x.dtype) for v in (gamma, beta, mean, variance)), epsilon=float(eps))
    out = on.transpose(out, np.argsort(order).tolist())
    return on.Relu(out) if operator == "_contrib_BatchNormWithReLU" else out


def _channels(gamma):
    if not gamma.fixed:
        raise Unsupported("with fix_gamma the number of channels must be known")
    return gamma.shape


def _moments(on, x, axes):
    """Return the deviation from the mean, and the variance."""
    apart = on.Sub(x, on.ReduceMean(x, axes=axes, keepdims=1))
    return apart, on.ReduceMean(on.Mul(apart, apart), axes=axes, keepdims=1)


@exports("LayerNorm")
def layer_norm(on: Builder, x: Value, gamma: Value, beta: Value, *, axis: int | None, eps: float) -> Value:
    axis %= x.ndim
    if on.opset >= 17 and axis == x.ndim - 1:
        return on.LayerNormalization(x, gamma, beta, axis=-1, epsilon=float(eps))
    apart, variance = _moments(on, x, [axis])
    out = on.Div(apart, on.Sqrt(on.Add(variance, float(eps))))
    return on.Add(on.Mul(out, on.per_channel(gamma, x.ndim - axis, 0)), on.per_channel(beta, x.ndim - axis, 0))


@exports("InstanceNorm")
def instance_norm(on: Builder, x: Value, gamma: Value, beta: Value, *, eps: float) -> Value:
    return on.InstanceNormalization(x, gamma, beta, epsilon=float(eps))


@exports("GroupNorm")
def group_norm(on: Builder, x: Value, gamma: Value, beta: Value, *, num_groups: int, eps: float) -> Value:
    """Each group has one scale and one shift."""
    grouped = on.reshape(x, [on.dim(x, 0), num_groups, -1])
    apart, variance = _moments(on, grouped, [2])
    out = on.Div(apart, on.Sqrt(on.Add(variance, float(eps))))
    return on.reshape(on.Add(on.Mul(out, on.per_channel(gamma, 2, 0)), on.per_channel(beta, 2, 0)), on.dims(x))


@exports("L2Normalization")
def l2_normalization(on: Builder, x: Value, *, eps: float, mode: str) -> Value:
    axes = {"channel": [1], "instance": list(range(1, x.ndim)), "spatial": list(range(2, x.ndim))}[mode]
    return on.Div(x, on.Sqrt(on.Add(on.sum(on.Mul(x, x), axes, True), float(eps))))


@exports("LRN")
def lrn(on: Builder, x: Value, *, alpha: float, beta: float, knorm: float, nsize: int) -> Value:
    return on.LRN(x, alpha=float(alpha), beta=float(beta), bias=float(knorm), size=nsize)
