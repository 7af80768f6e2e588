"""Functions that make arrays."""
import builtins
from typing import Any

import numpy as onp
import torch

from ...ops import host_arrays
from ...ops.dtypes import name_of
from ...suggestions import shortened
from ..multiarray import ndarray
from .calls import apply, device_of, is_integer, new, numpy_type, require_arrays, to_torch
from .elementwise import triangle
from .manipulation import broadcast_arrays


def _sizes(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, (int, onp.integer)) else tuple(int(n) for n in shape)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: builtins.bool | None = None) -> ndarray:
    """Return an array with the values of an array, a Python number, nested sequences of these, or an object with ``__dlpack__`` or a buffer.

    Parameters
    ----------
    dtype : dtype, optional
        By default that of an array; of Python numbers bool, int64, float32 or complex64.
    copy : bool, optional
        True copies in any case, False never; by default only where it must be.

    Raises
    ------
    ValueError
        If `copy` is False and the values must be copied.
    TypeError
        If `obj` holds no numbers.
    """
    context = device_of(device) if device is not None or not isinstance(obj, ndarray) else obj._ctx
    target = None if dtype is None else to_torch(dtype)
    if isinstance(obj, ndarray):
        unchanged = (target is None or target is obj._data.dtype) and context == obj._ctx
        if unchanged and not copy:
            return obj
        if copy is False:
            raise ValueError(f"asarray: {name_of(target or obj._data.dtype)} on {context} needs a copy of an array of {obj.dtype} on {obj.ctx}, "
                             "and copy=False forbids it")
        return apply("asarray", lambda t: t.to(target or t.dtype, copy=True), obj.as_in_ctx(context))
    source = _from_host(obj, target)
    tensor = source if target is None else source.to(target)
    tensor = tensor.to(context.torch_device)
    shared = isinstance(obj, (onp.ndarray, torch.Tensor)) or hasattr(obj, "__dlpack__")
    if copy is False and not (shared and tensor is source):
        raise ValueError(f"asarray: {shortened(obj)} needs a copy, and copy=False forbids it")
    return new(tensor.clone() if copy and shared and tensor is source else tensor, context)


def _from_host(obj: Any, target: torch.dtype | None) -> torch.Tensor:
    """Return the values as a tensor; Python numbers in the default type of their kind, or, if a type is wanted, as exact as it needs them."""
    if isinstance(obj, torch.Tensor):
        return obj.detach()
    if isinstance(obj, onp.ndarray):
        return _tensor(obj)
    if hasattr(obj, "__dlpack__"):
        return torch.from_dlpack(obj)
    try:
        values = onp.asarray(_plain(obj), None if target is None or not is_integer(target) else numpy_type(target))
    except OverflowError as error:
        raise OverflowError(f"asarray: {shortened(obj)}: {error}") from None
    if values.dtype.kind not in "biufc":
        raise TypeError(f"asarray: numbers expected, received {shortened(obj)}")
    if target is None and not _has_type(obj):
        values = values.astype({"f": "float32", "c": "complex64", "i": "int64"}.get(values.dtype.kind, values.dtype))
    return _tensor(values)


def _tensor(values: onp.ndarray) -> torch.Tensor:
    if values.dtype.kind == "c":
        return torch.from_numpy(onp.ascontiguousarray(values).reshape(values.shape))
    return host_arrays.as_tensor(values.astype(values.dtype.name, copy=False))  # C has several 64-bit types, torch has one


def _has_type(obj: Any) -> builtins.bool:
    """Return True if an object, or the first in its sequences, has a type of its own, as NumPy's numbers and buffers have."""
    while isinstance(obj, (list, tuple)):
        if not obj:
            return False
        obj = obj[0]
    return isinstance(obj, onp.generic) or not isinstance(obj, (builtins.bool, int, float, complex, range))


def _plain(source: Any) -> Any:
    if isinstance(source, ndarray):
        return source.asnumpy()
    return [_plain(s) for s in source] if isinstance(source, (list, tuple)) else source


def from_dlpack(x: Any, /, *, device: Any = None, copy: builtins.bool | None = None) -> ndarray:
    """Return an array of the memory of any object with ``__dlpack__``; a copy if `copy` is True, or `device` is another one.

    Raises
    ------
    ValueError
        If `copy` is False and `device` needs a copy.
    """
    tensor = x._raw() if isinstance(x, ndarray) else torch.from_dlpack(x)
    source = device_of("cpu" if tensor.device.type == "cpu" else f"gpu({tensor.device.index})")
    context = source if device is None else device_of(device)
    if copy is False and context.torch_device != tensor.device:
        raise ValueError(f"from_dlpack: {context} needs a copy, and copy=False forbids it")
    return new(tensor.to(context.torch_device, copy=builtins.bool(copy)), context)


def _filled(shape: Any, value: Any, dtype: torch.dtype, device: Any) -> ndarray:
    context = device_of(device)
    return new(torch.full(_sizes(shape), value, dtype=dtype, device=context.torch_device), context)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> ndarray:
    """Return an array filled with one number; its type is by default that of `asarray` of the number."""
    if dtype is None:
        kinds = ((builtins.bool, torch.bool), (int, torch.int64), (float, torch.float32), (complex, torch.complex64))
        kind_found = next((t for kind, t in kinds if isinstance(fill_value, kind)), None)
        if kind_found is None:
            raise TypeError(f"full: a Python number expected, received {shortened(fill_value)}")
    else:
        kind_found = to_torch(dtype)
    return _filled(shape, fill_value, kind_found, device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> ndarray:
    """Return an array of zeros, float32 by default."""
    return _filled(shape, 0, torch.float32 if dtype is None else to_torch(dtype), device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> ndarray:
    """Return an array of ones, float32 by default."""
    return _filled(shape, 1, torch.float32 if dtype is None else to_torch(dtype), device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> ndarray:
    """Return an array whose values mean nothing, float32 by default."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: ndarray, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> ndarray:
    """Return an array of the shape, and by default the type and device, of `x`, filled with one number."""
    require_arrays("full_like", x)
    return _filled(x.shape, fill_value, x._data.dtype if dtype is None else to_torch(dtype), x._ctx if device is None else device)


def zeros_like(x: ndarray, /, *, dtype: Any = None, device: Any = None) -> ndarray:
    """Return zeros in the shape, and by default the type and device, of `x`."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: ndarray, /, *, dtype: Any = None, device: Any = None) -> ndarray:
    """Return ones in the shape, and by default the type and device, of `x`."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: ndarray, /, *, dtype: Any = None, device: Any = None) -> ndarray:
    """Return an array in the shape, and by default the type and device, of `x`, whose values mean nothing."""
    return full_like(x, 0, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> ndarray:
    """Return a matrix with ones on the `k`-th diagonal, zeros elsewhere."""
    out = zeros((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype, device=device)
    if -out.shape[0] < k < out.shape[1]:
        out._data.diagonal(k).copy_(torch.ones((), dtype=out._data.dtype))
    return out


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> ndarray:
    """Return ``start``, ``start + step``, ... up to, not including, `stop`; int64 for integers, else float32 by default.

    Raises
    ------
    ValueError
        If `step` is 0.
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError(f"arange: step must not be 0, received {step}")
    are_integers = all(isinstance(n, (int, onp.integer)) for n in (start, stop, step))
    target = to_torch(dtype) if dtype is not None else torch.int64 if are_integers else torch.float32
    context = device_of(device)
    count = max(-((start - stop) // step), 0) if are_integers else max(int(onp.ceil((stop - start) / step)), 0)
    places = torch.arange(count, device=context.torch_device)
    if are_integers and is_integer(target):
        low = start - 2**64 if start >= 2**63 else start  # uint64: modulo 2**64
        return new((places * step + low).to(target), context)
    return new((places.double() * step + start).to(target), context)


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: builtins.bool = True) -> ndarray:
    """Return `num` numbers from `start` to `stop` with constant differences; without `stop` itself if `endpoint` is False.

    Raises
    ------
    ValueError
        If `num` is negative.
    """
    if num < 0:
        raise ValueError(f"linspace: num must be at least 0, received {num}")
    context = device_of(device)
    compound = isinstance(start, complex) or isinstance(stop, complex)
    target = to_torch(dtype) if dtype is not None else torch.complex64 if compound else torch.float32
    values = onp.linspace(start, stop, num, endpoint=endpoint, dtype="complex128" if compound or target.is_complex else "float64")
    return new(_tensor(values).to(target).to(context.torch_device), context)


def meshgrid(*arrays: ndarray, indexing: str = "xy") -> list[ndarray]:
    """Return the coordinates of the grid that vectors span, in a list; with ``indexing='xy'`` the first runs along columns.

    Raises
    ------
    ValueError
        If `indexing` is neither ``'xy'`` nor ``'ij'``.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', received {shortened(indexing)}")
    require_arrays("meshgrid", *arrays)
    n = len(arrays)
    places = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    spread = [x.reshape([-1 if j == place else 1 for j in range(n)]) for x, place in zip(arrays, places)]
    return [apply("meshgrid", torch.clone, x) for x in broadcast_arrays(*spread)]


def tril(x: ndarray, /, *, k: int = 0) -> ndarray:
    """Return matrices with zeros above the `k`-th diagonal."""
    return triangle("tril", x, k)


def triu(x: ndarray, /, *, k: int = 0) -> ndarray:
    """Return matrices with zeros below the `k`-th diagonal."""
    return triangle("triu", x, k)


def array(obj: Any, /, *, dtype: Any = None, device: Any = None) -> ndarray:
    """Return a new array with the values of `obj`: MXNet 2.0's and NumPy's name of ``asarray(obj, copy=True)``.

    Example
    -------
    >>> xp = mx.np.array_api
    >>> xp.array([1, 2])
    array([1, 2], dtype=int64)
    """
    return asarray(obj, dtype=dtype, device=device, copy=True)
