"""Types, their limits and conversions, and the description of this namespace."""
import builtins
import dataclasses
from typing import Any

import numpy as onp
import torch

from ...context import Context, cpu, current_context, gpu, num_gpus
from ...suggestions import shortened
from ..multiarray import ndarray
from .calls import apply, device_of, is_integer, is_numeric, numpy_type, result_type_of, to_torch

bool = onp.dtype("bool")
int8, int16, int32, int64 = map(onp.dtype, ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = map(onp.dtype, ("uint8", "uint16", "uint32", "uint64"))
float32, float64 = map(onp.dtype, ("float32", "float64"))
complex64, complex128 = map(onp.dtype, ("complex64", "complex128"))

_KINDS = {"bool": ("bool",), "signed integer": ("int8", "int16", "int32", "int64"), "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
          "real floating": ("float32", "float64"), "complex floating": ("complex64", "complex128")}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]
_ALL = ("bool", *_KINDS["numeric"])


@dataclasses.dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating-point type, or of the parts of a complex one."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: "onp.dtype[Any]"


@dataclasses.dataclass(frozen=True)
class IntegerInfo:
    """The limits of a type of integers."""

    bits: int
    max: int
    min: int
    dtype: "onp.dtype[Any]"


def _type_of(value: Any) -> torch.dtype:
    return value._data.dtype if isinstance(value, ndarray) else to_torch(value)


def finfo(type: Any, /) -> FloatInfo:
    """Return the limits of a floating-point type, or of an array's type.

    Raises
    ------
    TypeError
        If the type holds integers or booleans.
    """
    dtype = _type_of(type)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"finfo: a floating-point type expected, received {shortened(type)}; use iinfo for integers")
    info = torch.finfo(dtype)
    return FloatInfo(info.bits, info.eps, info.max, info.min, info.smallest_normal, onp.dtype(f"float{info.bits}"))


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the limits of a type of integers, or of an array's type.

    Raises
    ------
    TypeError
        If the type does not hold integers.
    """
    dtype = _type_of(type)
    if not is_integer(dtype):
        raise TypeError(f"iinfo: a type of integers expected, received {shortened(type)}; use finfo for floating-point types")
    info = torch.iinfo(dtype)
    return IntegerInfo(info.bits, info.max, info.min, numpy_type(dtype))


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Return True if a type is of a kind, or of one of a tuple of kinds.

    A kind is another type or ``'bool'``, ``'signed integer'``, ``'unsigned integer'``, ``'integral'``, ``'real floating'``, ``'complex floating'``,
    ``'numeric'``.

    Raises
    ------
    ValueError
        If there is no such kind.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"isdtype: kind must be a type or one of {', '.join(map(repr, _KINDS))}, received {shortened(kind)}")
        return onp.dtype(dtype).name in _KINDS[kind]
    return onp.dtype(dtype) == onp.dtype(kind)


def result_type(*arrays_and_dtypes: Any) -> "onp.dtype[Any]":
    """Return the common type of arrays, types and Python numbers."""
    return numpy_type(result_type_of("result_type", arrays_and_dtypes))


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Return True if the common type of a type, or an array's type, and `to` is `to`."""
    source, target = _type_of(from_), to_torch(to)
    if source is target or source is torch.bool:
        return True
    if not is_numeric(target) or is_integer(target) and not is_integer(source) or source.is_complex and not target.is_complex:
        return False
    if is_integer(source) and not is_integer(target):
        return True
    return onp.can_cast(numpy_type(source), numpy_type(target))


def astype(x: ndarray, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None) -> ndarray:
    """Return the values converted to `dtype`; the array itself if `copy` is False and it has this type and device.

    Raises
    ------
    TypeError
        If complex numbers are converted to real ones, which would drop a part; use ``real(x)`` before.
    """
    target = to_torch(dtype)
    if isinstance(x, ndarray) and x._data.dtype.is_complex and not target.is_complex and target is not torch.bool:
        raise TypeError(f"astype: complex numbers do not become {shortened(dtype)}; take real(x) or imag(x)")
    if device is not None:
        x = x.as_in_ctx(device_of(device))
    return x if not copy and x._data.dtype is target else apply("astype", lambda t: t.to(target, copy=True), x)


class Info:
    """The capabilities, types and devices of this namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities: masks as indices, shapes that depend on values, and as many axes as torch has."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Context:
        """Return the device of arrays created without one."""
        return current_context()

    def default_dtypes(self, *, device: Any = None) -> "dict[str, onp.dtype[Any]]":
        """Return the types of arrays created without one."""
        return {"real floating": float32, "complex floating": complex64, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> "dict[str, onp.dtype[Any]]":
        """Return the types, by name, of a kind or of all."""
        return {name: onp.dtype(name) for name in _ALL if kind is None or isdtype(onp.dtype(name), kind)}

    def devices(self) -> list[Context]:
        """Return the devices of this machine."""
        return [cpu(), *(gpu(i) for i in range(num_gpus()))]


def __array_namespace_info__() -> Info:
    """Return an object that describes this namespace."""
    return Info()



