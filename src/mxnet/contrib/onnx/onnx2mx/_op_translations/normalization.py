"""Normalizations, and dropout."""
import math

import numpy as np

from .....base import MXNetError
from ..reading import UnsupportedFeature
from ..registry import translates
from ..reshaping import reshape
from .elemwise import binary, cast_to, with_number


def channels(g, value, rank):
    """An array with a number for each channel, shaped to be repeated over data of so many axes."""
    g.entry(value)
    return reshape(g, value, [(1, -1, *[1] * (rank - 2))] * len(g.known_shapes(value) or [0]))


@translates("BatchNormalization", "SpatialBN")
def batch_norm(g, data, scale, bias, mean, var, *, epsilon=1e-5, momentum=0.9, spatial=1, training_mode=0):
    """Normalization by the moving averages of each channel; while training by the batch's own."""
    if not spatial:
        raise UnsupportedFeature("BatchNormalization with spatial=0")
    g.entry(data)
    known = all(value.array is not None and value.array.ndim == 1 for value in (scale, bias, mean, var))
    if known and not training_mode:
        made = g.op("BatchNorm", data, scale, bias, mean, var, eps=epsilon, momentum=momentum, fix_gamma=False)
        return made[0] if isinstance(made, tuple) else made
    rank = g.rank(data)
    outputs = []
    if training_mode:
        axes = (0, *range(2, rank))
        current = g.op("mean", data, axis=axes)
        spread = g.op("mean", g.op("square", binary(g, "broadcast_sub", data, channels(g, current, rank))), axis=axes)
        outputs = [binary(g, "broadcast_add", with_number(g, "_mul_scalar", old, momentum), with_number(g, "_mul_scalar", new, 1 - momentum))
                   for old, new in ((mean, current), (var, spread))]
        mean, var = current, spread
    root = g.op("sqrt", with_number(g, "_plus_scalar", channels(g, var, rank), epsilon))
    normalized = binary(g, "broadcast_div", binary(g, "broadcast_sub", data, channels(g, mean, rank)), root)
    return [binary(g, "broadcast_add", binary(g, "broadcast_mul", normalized, channels(g, scale, rank)), channels(g, bias, rank)), *outputs]


@translates("InstanceNormalization")
def instance_norm(g, data, scale, bias, *, epsilon=1e-5):
    """Normalization of each channel of each sample."""
    return g.op("InstanceNorm", data, scale, bias, eps=epsilon)


@translates("LayerNormalization")
def layer_norm(g, data, scale, bias=None, *, axis=-1, epsilon=1e-5, stash_type=1):
    """Normalization over the axes from `axis` on."""
    g.entry(data)
    rank, axis = g.rank(data), g.axis(data, axis)
    shape = g.known_shapes(scale)
    if axis == rank - 1 and bias is not None and shape is not None and len(shape[0]) == 1 and g.node_outputs == 1:
        made = g.op("LayerNorm", data, scale, bias, axis=-1, eps=epsilon)
        return made[0] if isinstance(made, tuple) else made
    axes = tuple(range(axis, rank))
    mean = g.op("mean", data, axis=axes, keepdims=True)
    centred = binary(g, "broadcast_sub", data, mean)
    variance = g.op("mean", g.op("square", centred), axis=axes, keepdims=True)
    deviation = g.op("rsqrt", with_number(g, "_plus_scalar", variance, epsilon))
    normalized = binary(g, "broadcast_mul", binary(g, "broadcast_mul", centred, deviation), scale)
    return normalized if bias is None else binary(g, "broadcast_add", normalized, bias), mean, deviation


@translates("com.microsoft.SkipLayerNormalization")
def skip_layer_norm(g, data, skip, gamma, beta=None, bias=None, *, epsilon=1e-12):
    """`layer_norm` of a sum."""
    total = binary(g, "broadcast_add", data, skip)
    if bias is not None:
        total = binary(g, "broadcast_add", total, bias)
    g.node_outputs = 1
    normalized = layer_norm(g, total, gamma, beta, epsilon=epsilon)
    return [normalized[0] if isinstance(normalized, tuple) else normalized, None, None, total]


@translates("RMSNormalization", "SimplifiedLayerNormalization")
def rms_norm(g, data, scale, *, axis=-1, epsilon=1e-5, stash_type=1):
    """Division by the root of the mean of the squares, over the axes from `axis` on."""
    axes = tuple(range(g.axis(data, axis), g.rank(data)))
    power = g.op("mean", g.op("square", data), axis=axes, keepdims=True)
    normalized = binary(g, "broadcast_mul", data, g.op("rsqrt", with_number(g, "_plus_scalar", power, epsilon)))
    return binary(g, "broadcast_mul", normalized, scale)


@translates("GroupNormalization")
def group_norm(g, data, scale, bias, *, num_groups, epsilon=1e-5, stash_type=1):
    """Normalization of groups of channels; before version 21 with a scale for each group."""
    rank, count = g.rank(data), g.size(data, 1, "GroupNormalization")
    if num_groups < 1 or count % num_groups:
        raise MXNetError(f"{num_groups} groups do not divide {count} channels")
    per_group = g.opset < 21
    first = (scale, bias) if per_group else (g.array(np.full(num_groups, n, g.dtype(data) or "float32")) for n in (1, 0))
    made = g.op("GroupNorm", data, *first, num_groups=num_groups, eps=epsilon)
    normalized = made[0] if isinstance(made, tuple) else made
    if per_group:
        return normalized
    return binary(g, "broadcast_add", binary(g, "broadcast_mul", normalized, channels(g, scale, rank)), channels(g, bias, rank))


@translates("LRN")
def local_response_norm(g, data, *, size, alpha=1e-4, beta=0.75, bias=1.0):
    """Normalization over neighbouring channels."""
    return g.op("LRN", data, nsize=size, alpha=alpha, beta=beta, knorm=bias)


@translates("LpNormalization")
def lpnormalization(g, data, *, axis=-1, p=2):
    """Division by the norm along an axis; 0 where that is 0."""
    axis = g.axis(data, axis)
    if p == 1:
        norm = g.op("sum", g.op("abs", data), axis=axis, keepdims=True)
    elif p == 2:
        norm = g.op("sqrt", g.op("sum", g.op("square", data), axis=axis, keepdims=True))
    else:
        raise MXNetError(f"`p` must be 1 or 2, received {p}")
    return binary(g, "broadcast_div", data, binary(g, "broadcast_add", norm, with_number(g, "_equal_scalar", norm, 0.0)))


@translates("MeanVarianceNormalization")
def mean_variance_norm(g, data, *, axes=(0, 2, 3)):
    """The value less its mean, divided by its standard deviation."""
    axes = tuple(g.axis(data, axis) for axis in axes)
    centred = binary(g, "broadcast_sub", data, g.op("mean", data, axis=axes, keepdims=True))
    deviation = g.op("sqrt", g.op("mean", g.op("square", centred), axis=axes, keepdims=True))
    return binary(g, "broadcast_div", centred, with_number(g, "_plus_scalar", deviation, 1e-9))


@translates("Dropout")
def dropout(g, data, ratio=None, training_mode=None, *, seed=None):
    """The value; while training with some elements 0 and the others larger."""
    g.entry(data)
    share = 0.5 if ratio is None else float(ratio.number("ratio"))
    always = training_mode is not None and bool(training_mode.number("training_mode"))
    if always and share and g.node_outputs > 1:
        raise UnsupportedFeature("the mask of Dropout while training")
    if not 0 <= share <= 1 or math.isnan(share):
        raise MXNetError(f"`ratio` must be between 0 and 1, received {share}")
    made = g.op("Dropout", data, p=share, mode="always" if always else "training", is_scalar=data.scalar)
    made = made[0] if isinstance(made, tuple) else made
    if g.node_outputs < 2:
        return made
    mask = cast_to(g, g.op("ones_like", data, is_scalar=data.scalar), "bool")
    mask.boolean = True
    return made, mask


