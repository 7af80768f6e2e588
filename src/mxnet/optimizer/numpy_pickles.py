"""NumPy arrays in pickles, rebuilt without NumPy's own code from the name of a type, a shape, and bytes of exactly the matching length."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

if TYPE_CHECKING:
    from .pickles import Machine

SCALARS = ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
MODULES = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric")
_TYPES = {name: np.dtype(name) for name in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")}
_MAX_AXES = 32


def _rebuilt(machine: Machine, dtype: Any, shape: Any, raw: Any, order: Literal["C", "F"] = "C") -> np.ndarray:
    """Return the array."""
    if not isinstance(dtype, np.dtype) or dtype not in _TYPES.values() and dtype.newbyteorder() not in _TYPES.values():
        raise ValueError(f"an array has a type of numbers, received {dtype if isinstance(dtype, np.dtype) else 'another value'}")
    if not isinstance(shape, tuple) or len(shape) > _MAX_AXES or not all(type(s) is int and s >= 0 for s in shape):
        raise ValueError(f"an array's shape is a tuple of at most {_MAX_AXES} sizes, received a {type(shape).__name__} with other content")
    if isinstance(raw, str):  # early protocols store bytes as text
        raw = raw.encode("latin1")
    if not isinstance(raw, (bytes, bytearray)) or len(raw) != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"an array of shape {shape} and type {dtype} does not have the bytes that it needs")
    machine.charge(len(raw))
    if dtype.kind == "b":  # bytes other than 0 and 1 are not valid bools
        return (np.frombuffer(raw, np.uint8) != 0).reshape(shape, order=order)
    return np.frombuffer(raw, dtype).reshape(shape, order=order).copy(order)


class _Type:
    """A type before its state is set; the state has the byte order."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype
        self.result: np.dtype | None = None

    def finish(self, machine: Machine, state: Any) -> np.dtype:
        if not isinstance(state, tuple) or len(state) < 5 or state[1] not in ("<", ">", "|", "=") or any(s is not None for s in state[2:5]):
            raise ValueError(f"the state of {self.dtype} is not that of a type of numbers, received a {type(state).__name__}")
        self.result = self.dtype.newbyteorder(">") if state[1] == ">" else self.dtype
        return self.result


class _Empty:
    """An array before its state is set; the state has shape, type and values."""

    result: np.ndarray | None = None

    def finish(self, machine: Machine, state: Any) -> np.ndarray:
        if not isinstance(state, tuple) or len(state) not in (4, 5):
            raise ValueError(f"the state of an array is a tuple of 4 or 5 entries, received a {type(state).__name__}")
        shape, dtype, columns_first, raw = state[-4:]
        self.result = _rebuilt(machine, dtype, shape, raw, "F" if columns_first is True or columns_first == 1 else "C")
        return self.result


PENDING = (_Type, _Empty)


def _dtype(machine: Machine, name: Any, *_: Any) -> _Type:
    dtype = _TYPES.get(name.decode("latin1") if isinstance(name, bytes) else name) if isinstance(name, (str, bytes)) else None
    if dtype is None:
        raise ValueError(f"{name!r:.40} is no type of numbers")
    return _Type(dtype)


def _reconstruct(machine: Machine, cls: Any, *_: Any) -> _Empty:
    if getattr(cls, "name", None) != "ndarray":
        raise ValueError(f"an array of NumPy's is an ndarray, received {getattr(cls, 'name', type(cls).__name__)!r:.80}")
    return _Empty()


def _frombuffer(machine: Machine, raw: Any, dtype: Any, shape: Any, order: Any = "C", *_: Any) -> np.ndarray:
    return _rebuilt(machine, dtype, shape, raw, "F" if order == "F" else "C")


def _scalar(machine: Machine, dtype: Any, raw: Any) -> Any:
    return _rebuilt(machine, dtype, (), raw)[()]


def _ndarray(machine: Machine, *_: Any) -> NoReturn:
    raise ValueError("numpy.ndarray is not called on behalf of a file")


FUNCTIONS = {"dtype": _dtype, "_reconstruct": _reconstruct, "_frombuffer": _frombuffer, "scalar": _scalar, "ndarray": _ndarray}
