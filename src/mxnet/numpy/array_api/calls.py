"""Calls of torch's functions on ``mx.np`` arrays, recorded by autograd, and the types of their arguments."""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp
import torch

from ...base import MXNetError
from ...context import Context, current_context, intern_context
from ...ndarray import dispatch
from ...ndarray.dispatch import in_graph, mode
from ...ops import dtypes
from ...ops.numpy.promotion import common_type
from ...suggestions import shortened
from ..multiarray import ndarray

_COMPLEX = {"complex64": torch.complex64, "complex128": torch.complex128}
PYTHON_NUMBERS = (bool, int, float, complex)


def to_torch(dtype: Any) -> torch.dtype:
    """Return the torch type for a type of this namespace.

    Raises
    ------
    TypeError
        If `dtype` is no type that arrays have.
    """
    name = getattr(dtype, "name", dtype)
    return _COMPLEX[name] if isinstance(name, str) and name in _COMPLEX else dtypes.to_torch(dtype)


def is_numeric(dtype: torch.dtype) -> bool:
    """Return True for integers, floating-point and complex numbers."""
    return dtype is not torch.bool


def is_integer(dtype: torch.dtype) -> bool:
    """Return True for signed and unsigned integers."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)


def device_of(device: Any) -> Context:
    """Return the device that an argument ``device=`` names, by default the current one."""
    return current_context() if device is None else intern_context(device)


def new(tensor: torch.Tensor, context: Context) -> ndarray:
    """Return an array that holds a tensor."""
    return dispatch.wrap(ndarray, tensor, context)


def require_arrays(name: str, *values: Any) -> None:
    """Raise a TypeError unless all values are ``mx.np`` arrays."""
    for v in values:
        if not isinstance(v, ndarray):
            raise TypeError(f"{name}: mx.np arrays expected, received {shortened(v)} of type {type(v).__name__}; make one with asarray")


def apply(name: str, function: Callable, *arrays: ndarray, **kwargs: Any) -> Any:
    """Return ``function(*tensors, **kwargs)`` of the tensors of `arrays` as an array, or as a tuple of arrays; autograd records it.

    Raises
    ------
    MXNetError
        If the arrays are on several devices, or torch refuses the call.
    """
    require_arrays(name, *arrays)
    context = arrays[0]._ctx
    for a in arrays:
        if a._ctx is not context and "gpu" in (a._ctx.device_type, context.device_type):
            raise MXNetError(f"{name}: all arrays must be on one device, received {context} and {a._ctx}; move them with x.to_device(device)")
    if mode.tracing is not None:
        mode.tracing.fail(f"{name} of mxnet.numpy.array_api can't be part of a graph; call the function of mx.np")
    operator = dispatch.pseudo_operator(name)
    result, recorded = dispatch.run(operator, function, [a._data for a in arrays], kwargs, context)
    several = isinstance(result, (tuple, list))
    out = tuple(new(t, context) for t in result) if several else (new(result, context),)
    if recorded or mode.recording and any(in_graph(a) for a in arrays):
        dispatch.record(operator, {}, arrays, out)
    return out if several else out[0]


def as_number_type(number: Any, dtype: torch.dtype) -> torch.dtype:
    """Return the type that a Python number has beside an array of the type `dtype`: the array's, or the default one of its kind.

    Raises
    ------
    TypeError
        If the kinds do not go together, as a fraction beside integers.
    """
    if isinstance(number, bool):
        if dtype is torch.bool:
            return dtype
    elif isinstance(number, int):
        if dtype is not torch.bool:
            return dtype
    elif isinstance(number, float):
        if dtype.is_floating_point or dtype.is_complex:
            return dtype
    elif dtype.is_complex:
        return dtype
    elif dtype.is_floating_point:
        return torch.complex128 if dtype is torch.float64 else torch.complex64
    raise TypeError(f"the number {number!r} does not go together with an array of the type {dtypes.name_of(dtype)}; convert the array with astype")


def pair(name: str, x1: Any, x2: Any) -> tuple[ndarray, ndarray, torch.dtype]:
    """Return two arrays, one of which may have been a Python number, and their common type."""
    if isinstance(x1, PYTHON_NUMBERS) and isinstance(x2, ndarray):
        x1 = _beside(x1, x2)
    elif isinstance(x2, PYTHON_NUMBERS) and isinstance(x1, ndarray):
        x2 = _beside(x2, x1)
    require_arrays(name, x1, x2)
    return x1, x2, common_type(name, x1._data.dtype, x2._data.dtype)


def _beside(number: Any, array: ndarray) -> ndarray:
    return new(torch.full((), number, dtype=as_number_type(number, array._data.dtype), device=array._data.device), array._ctx)


def result_type_of(name: str, values: Sequence[Any]) -> torch.dtype:
    """Return the common type of arrays, types and Python numbers.

    Raises
    ------
    TypeError
        If there is neither an array nor a type among them.
    """
    known, numbers = [], []
    for v in values:
        if isinstance(v, PYTHON_NUMBERS):
            numbers.append(v)
        else:
            known.append(v._data.dtype if isinstance(v, ndarray) else to_torch(v))
    if not known:
        raise TypeError(f"{name}: at least one array or type expected, received {shortened(list(values))}")
    common = known[0]
    for t in known[1:]:
        common = common_type(name, common, t)
    for n in numbers:
        common = as_number_type(n, common)
    return common


def numpy_type(dtype: torch.dtype) -> "onp.dtype[Any]":
    """Return the type as users of this namespace see it."""
    return onp.dtype(dtypes.to_numpy(dtype))
