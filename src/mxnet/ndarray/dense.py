"""Making dense arrays, for the functions of ``mx.nd`` and for sparse arrays, which are made of dense ones."""
from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .. import util
from ..base import MXNetError
from ..context import current_context, intern_context
from ..ops import creation as ops
from ..ops import dtypes, failures, host_arrays
from . import dispatch
from .dispatch import in_graph, invoke, mode
from .ndarray import NDArray

if TYPE_CHECKING:
    from ..context import Context
    from .ndarray import DType, Sizes

# Bytes up to which one thread writes zeros: it takes 14 microseconds, torch's threads 8, but some milliseconds where OpenVINO has run just before and
# its own have a processor yet.
_ALONE = 1 << 20


def place(ctx: Context | None) -> tuple[Context, torch.device]:
    ctx = intern_context(ctx) if ctx is not None else current_context()
    return ctx, ctx.torch_device


def sizes(shape: Sizes) -> tuple[int, ...]:
    shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(s) for s in shape)
    least = 0 if util.is_np_shape() else 1
    if any(s > sys.maxsize for s in shape):
        raise MXNetError(f"shape {shape} is too large: sizes are at most {sys.maxsize}")
    if any(s < least for s in shape) or not shape and least:
        raise MXNetError(f"shape {shape} is not complete: every size must be at least {least}"
                         + ("" if util.is_np_shape() else "; sizes of 0 and arrays without axes need mx.np_shape()"))
    return shape


def dense_array(source_array: Any, ctx: Context | None = None, dtype: DType | None = None) -> NDArray:
    """Return a new dense array with the values of anything array-like but sparse arrays; see `mx.nd.array`."""
    context, device = place(ctx)
    if isinstance(source_array, NDArray):
        target = dtypes.to_torch(dtype) if dtype is not None else source_array._data.dtype
        if mode.recording and in_graph(source_array):
            made = NDArray._new(torch.empty(source_array.shape, dtype=target, device=device), context)
            made._record_copy(source_array)
            return made
        return NDArray._new(source_array._raw().to(device, target, copy=True).contiguous(), context)
    from_numpy = isinstance(source_array, np.ndarray)
    try:
        target = dtypes.to_torch("float32" if dtype is None else dtype)
        if isinstance(source_array, torch.Tensor):
            return NDArray._new(source_array.detach().to(device, target, copy=True).contiguous(), context)
        if not from_numpy:
            source_array = _plain_sequence(source_array)
        t = host_arrays.as_tensor(source_array, target, copy=True)
    except (TypeError, ValueError, OverflowError) as error:
        kind = ValueError if from_numpy and isinstance(error, ValueError) else TypeError
        raise kind(f"array: numbers, and a type that arrays hold, expected: {error}") from None
    return NDArray._new(host_arrays.sent(t, device), context)


def _plain_sequence(source: Any) -> Any:
    """Return a sequence with NumPy arrays in place of the NDArrays in it."""
    if isinstance(source, (list, tuple)) and source and isinstance(source[0], NDArray):
        return [s.asnumpy() if isinstance(s, NDArray) else s for s in source]
    return source


def not_made(shape: Sizes, dtype: DType | None, error: Exception) -> MXNetError:
    """Return the error for an array for which there is not enough memory."""
    return MXNetError(f"an array of shape {shape} and type {dtype or 'float32'} can't be made: {failures.in_words(error)}")


def _full(shape: Any, value: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if type(value) is not int or value or device.type != "cpu":
        return torch.full(shape, value, dtype=dtype, device=device)
    tensor = torch.empty(shape, dtype=dtype, device=device)
    if tensor.nbytes > _ALONE:
        return tensor.zero_()
    ctypes.memset(tensor.data_ptr(), 0, tensor.nbytes)
    return tensor


def filled(shape: Sizes, value: Any, ctx: Context | None, dtype: DType | None, kwargs: dict[str, Any]) -> NDArray:
    """Return a new array of one value; `kwargs` may hold ``out``, ``name`` and annotations."""
    out = kwargs.pop("out", None)
    kwargs.pop("name", None)
    unknown = [k for k in kwargs if not (k.startswith("__") and k.endswith("__"))]  # annotations, which Symbols keep, mean nothing here
    if unknown:
        raise TypeError(f"got unexpected arguments {sorted(unknown)}")
    context, device = place(ctx)
    if dispatch.observer is not None:  # the profiler shows the operator that a graph would call
        op = {0: ops.zeros, 1: ops.ones}.get(value, ops.full)
        attrs = {"shape": sizes(shape), "dtype": dtypes.to_torch(dtype), "ctx": str(context)}
        return invoke(op, (), {**attrs, "value": value} if "value" in op.attributes else attrs, out=out)
    try:
        tensor = _full(sizes(shape), value, dtypes.to_torch(dtype), device)
    except RuntimeError as error:
        raise not_made(shape, dtype, error) from error
    result = NDArray._new(tensor, context)
    if out is None:
        return result
    out[:] = result
    return out
