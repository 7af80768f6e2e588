"""Random operators; each runtime draws from its own generator."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..builder import Unsupported
from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value


def _sizes(on):
    if None in on.shape:
        raise Unsupported("it draws as many numbers as an input has elements, whose number may vary")
    return list(on.shape)


@exports("_random_uniform", ignores=("shape", "dtype", "device"))
def uniform(on: Builder, *, low: float, high: float) -> Value:
    return on.RandomUniform(dtype=on.dtype, shape=_sizes(on), low=float(low), high=float(high))


@exports("_random_normal", ignores=("shape", "dtype", "device"))
def normal(on: Builder, *, loc: float, scale: float) -> Value:
    return on.RandomNormal(dtype=on.dtype, shape=_sizes(on), mean=float(loc), scale=float(scale))


@exports("_random_uniform_like")
def uniform_like(on: Builder, x: Value, *, low: float, high: float) -> Value:
    return on.RandomUniformLike(x, low=float(low), high=float(high))


@exports("_random_normal_like")
def normal_like(on: Builder, x: Value, *, loc: float, scale: float) -> Value:
    return on.RandomNormalLike(x, mean=float(loc), scale=float(scale))


@exports("_sample_multinomial", ignores=("dtype", "get_prob"))
def multinomial(on: Builder, x: Value, *, shape: Any) -> Value:
    """Draw indices by probabilities, of which ONNX takes the logarithms."""
    rows = x if x.ndim == 2 else on.reshape(x, [-1, on.dim(x, x.ndim - 1)])
    drawn = on.Multinomial(on.Log(rows), sample_size=int(np.prod(shape or (1,))), dtype=np.dtype(np.int64))
    return on.reshape(drawn, on.dims(on.out[0]))
