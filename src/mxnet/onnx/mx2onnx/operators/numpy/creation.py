"""Operators without inputs, whose results are constants of the file."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...builder import Unsupported
from ...registry import exports
from ..creation import fill, fixed_shape

if TYPE_CHECKING:
    from ...builder import Builder, Value


@exports("_npi_zeros", "_npi_ones", ignores=("shape", "dtype", "device"))
def filled(on: Builder, *, operator: str) -> Value:
    return fill(on, on.sizes(fixed_shape(on)), int(operator == "_npi_ones"))


@exports("_npi_full_like", ignores=("dtype", "device"))
def full_like(on: Builder, x: Value, *, fill_value: float) -> Value:
    return fill(on, on.sizes(on.dims(x)), fill_value)


@exports("_npi_identity", ignores=("dtype", "device"))
def identity(on: Builder, *, shape: Any) -> Value:
    return on.const(np.eye(*shape), on.dtype)


@exports("_npi_eye", ignores=("dtype", "device"))
def eye(on: Builder, *, N: int | None, M: int | None, k: int) -> Value:
    return on.const(np.eye(N, M or N, k), on.dtype)


@exports("_npi_arange", ignores=("dtype", "device", "infer_range"))
def arange(on: Builder, *, start: float, stop: Any, step: float, repeat: int) -> Value:
    values = np.arange(fixed_shape(on)[0]) // repeat * step + (0 if stop is None else start)
    return on.const(values, on.dtype)


@exports("_npi_logspace", ignores=("dtype", "device"))
def logspace(on: Builder, *, start: float, stop: Any, num: int, endpoint: bool, base: float) -> Value:
    return on.const(np.logspace(start, stop, num, endpoint, base), on.dtype)


@exports("_npi_hanning", "_npi_hamming", "_npi_blackman", ignores=("dtype", "device"))
def window(on: Builder, *, M: int | None, operator: str) -> Value:
    return on.const({"_npi_hanning": np.hanning, "_npi_hamming": np.hamming, "_npi_blackman": np.blackman}[operator](M), on.dtype)


@exports("_npi_indices", ignores=("dtype", "device"))
def indices(on: Builder, *, dimensions: Any) -> Value:
    return on.const(np.indices(dimensions), on.dtype)


@exports("_npi_uniform", "_npi_normal", ignores=("dtype", "device"))
def drawn(on: Builder, *inputs: Value, low: float | None = None, high: float | None = None, loc: float | None = None, scale: float | None = None,
          size: Any, operator: str) -> Value:
    if inputs:
        raise Unsupported("random numbers with bounds or moments that are arrays")
    if operator == "_npi_uniform":
        return on.RandomUniform(dtype=on.dtype, shape=list(fixed_shape(on)), low=float(low), high=float(high))
    return on.RandomNormal(dtype=on.dtype, shape=list(fixed_shape(on)), mean=float(loc), scale=float(scale))
