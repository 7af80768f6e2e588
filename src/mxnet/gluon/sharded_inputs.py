"""Checks of what split layers and their loss receive: arrays, types, and numbers of rows or classes."""
from __future__ import annotations

import math
import numbers
import struct
from collections.abc import Iterable
from typing import Any

import torch

from .. import ndarray
from ..ops.dtypes import name_of, to_torch
from ..suggestions import shortened
from .utils import UsageError

__all__: list[str] = []

_INT64 = range(-2 ** 63, 2 ** 63)
_ALLOWED, _INTEGER, _FLOAT = range(3)  # kinds of numbers in messages
_TYPES = torch.float16, torch.bfloat16, torch.float32, torch.float64


def require_count(layer: str, name: str, value: Any, least: int = 1) -> int:
    """Return an argument that counts something as an int.

    Raises
    ------
    UsageError
        If it is no whole number, or below `least`.
    """
    if not isinstance(value, numbers.Integral) or value < least:
        raise UsageError(f"{layer}: {name} is a whole number from {least} on, received {shortened(value)}")
    return int(value)


def is_number(value: Any) -> bool:
    """Return True for real numbers of Python and NumPy."""
    return isinstance(value, numbers.Real)


def require_dtype(layer: str, dtype: Any, computes: bool = True) -> None:
    """Raise an error if `dtype` names no type of arrays or, for a layer that computes, no floating point type."""
    try:
        valid = to_torch(dtype) in _TYPES or not computes
    except TypeError:
        valid = False
    if not valid:
        expected = "float16, bfloat16, float32 or float64" if computes else "a type of arrays"
        raise UsageError(f"{layer}: dtype is {expected}, received {shortened(dtype)}")


def parts_of(label: str, value: Any) -> list[Any]:
    """Return the arrays of a batch, one for each of its parts.

    Raises
    ------
    UsageError
        If there are none, or other things.
    """
    parts = [value] if isinstance(value, ndarray.NDArray) else list(value) if isinstance(value, Iterable) else []
    if not parts or not all(isinstance(part, ndarray.NDArray) for part in parts):
        raise UsageError(f"{label}: an NDArray expected, or a list of them for parts of the batch on several contexts, received {shortened(value)}")
    return parts


def require_features(label: str, part: Any, dtype: Any) -> None:
    """Raise an error if features are sparse, or of another type than the layer."""
    if part.stype != "default" or to_torch(part.dtype) != to_torch(dtype):
        received = f"{'' if part.stype == 'default' else f'{part.stype} ones of type '}{name_of(to_torch(part.dtype))}"
        advice = "astype, or the layer with cast" if part.stype == "default" else "tostype('default')"
        raise UsageError(f"{label}: dense features of the layer's type {name_of(to_torch(dtype))} expected, received {received}; convert them with "
                         f"{advice}")


def as_integers(raw: torch.Tensor) -> torch.Tensor:
    """Return numbers of any type as int64, along one axis; NaN, for which processors have different numbers, as -1."""
    flat = raw.reshape(-1)
    return flat.long().masked_fill_(flat.isnan(), -1) if flat.is_floating_point() else flat.long()


def first_outside(raws: Iterable[torch.Tensor], limit: int) -> tuple[int, int]:
    """Return the first number that is not from 0 to ``limit - 1``, as two integers for `require_inside`; zeros if there is none.

    Without rounding, so that an error shows what the program passed: also NaN, and numbers that are none of int64.
    """
    for raw in raws:
        converted = as_integers(raw)
        wrong = raw.reshape(-1)[(converted < 0) | (converted >= limit)]
        if len(wrong):
            value = wrong[0].item()
            if math.isfinite(value) and value == int(value) and int(value) in _INT64:
                return _INTEGER, int(value)
            return _FLOAT, struct.unpack("<q", struct.pack("<d", value))[0]
    return _ALLOWED, 0


def require_inside(text: str, answers: Iterable[list[int]]) -> None:
    """Raise an error for the first number outside, which all ranks have received, so that they fail together.

    `answers` begin with the results of `first_outside` of all ranks.
    """
    for kind, value, *_ in answers:
        if kind != _ALLOWED:
            raise UsageError(f"{text}, received {value if kind == _INTEGER else struct.unpack('<d', struct.pack('<q', value))[0]}")


def sample_factors(label: str, sample_weight: Any, features: list[Any]) -> list[Any]:
    """Return the weights of samples, an array of one axis or None for each part of the batch.

    Raises
    ------
    UsageError
        If there are not as many, or an array has another type or a shape that does not fit the samples.
    """
    if sample_weight is None:
        return [None] * len(features)
    alone = isinstance(sample_weight, ndarray.NDArray)
    if not alone and not isinstance(sample_weight, (list, tuple)):
        raise UsageError(f"{label}: sample_weight is an NDArray, or a list of them, received {shortened(sample_weight)}")
    # One factor is for all samples, wherever they are.
    factors = [sample_weight] * (len(features) if sample_weight.size == 1 else 1) if alone else list(sample_weight)
    if len(factors) != len(features):
        raise UsageError(f"{label}: a sample_weight for each of {len(features)} parts of the batch expected, received {len(factors)}")
    return [None if factor is None else _factor(label, factor, part) for factor, part in zip(factors, features)]


def _factor(label: str, factor: Any, part: Any) -> Any:
    count = len(part)
    if not isinstance(factor, ndarray.NDArray):
        raise UsageError(f"{label}: sample_weight is an NDArray, or a list of them, received {shortened(factor)}")
    if factor.shape not in ((count,), (count, 1), (1,), (1, 1), ()):
        raise UsageError(f"{label}: sample_weight of shape ({count},) or ({count}, 1) expected, received {factor.shape}")
    if to_torch(factor.dtype) != to_torch(part.dtype):
        raise UsageError(f"{label}: sample_weight of the features' type {name_of(to_torch(part.dtype))} expected, received "
                         f"{name_of(to_torch(factor.dtype))}; convert it with astype")
    return factor.reshape(factor.shape[:1]) if factor.ndim == 2 else factor
