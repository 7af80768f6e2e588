"""Element types: MXNet's names and file numbers, and the torch types that hold them."""
from typing import Any

import numpy as np
import torch

from ..base import MXNetError
from ..suggestions import did_you_mean

# (name, number in files and in MXNet's C interface, torch type). numpy has no bfloat16.
_TABLE = [
    ("float32", 0, torch.float32), ("float64", 1, torch.float64), ("float16", 2, torch.float16), ("uint8", 3, torch.uint8),
    ("int32", 4, torch.int32), ("int8", 5, torch.int8), ("int64", 6, torch.int64), ("bool", 7, torch.bool),
    ("int16", 8, torch.int16), ("uint16", 9, torch.uint16), ("uint32", 10, torch.uint32), ("uint64", 11, torch.uint64),
    ("bfloat16", 12, torch.bfloat16),
]
NAME_TO_TORCH = {name: t for name, _, t in _TABLE}
TORCH_TO_NAME = {t: name for name, _, t in _TABLE}
FLAG_TO_NAME = {flag: name for name, flag, _ in _TABLE}
NAME_TO_FLAG = {name: flag for name, flag, _ in _TABLE}
# numpy has no bfloat16: MXNet gives its bits under this structured type.
BFLOAT16_BITS = np.dtype([("bfloat16", np.uint16)])
_TORCH_TO_NUMPY = {t: (np.dtype(name).type if name != "bfloat16" else BFLOAT16_BITS) for name, _, t in _TABLE}
# Types of the array API standard's arrays; MXNet's functions and files do not support them.
_COMPLEX = {torch.complex64: "complex64", torch.complex128: "complex128"}
_TORCH_TO_NUMPY.update({t: np.dtype(name).type for t, name in _COMPLEX.items()})
# The numbers of numpy's types, -1 where none is given.
FLAG_TO_NUMPY = {-1: None, **{flag: _TORCH_TO_NUMPY[t] for _, flag, t in _TABLE}}
NUMPY_TO_FLAG = {t: flag for flag, t in FLAG_TO_NUMPY.items()}
_CACHE: dict = {}


def to_torch(dtype: Any) -> torch.dtype:
    """Return the torch type for a user's dtype: a name, a numpy type, a torch type, a Python type, or an array (for its type).

    Raises
    ------
    TypeError
        If `dtype` names no type that an array can hold.
    """
    try:
        return _CACHE[dtype]
    except (KeyError, TypeError, NotImplementedError):  # arrays of mx.np have no hash and raise errors of their own
        pass
    torch_type: torch.dtype | None
    if hasattr(dtype, "dtype") and not isinstance(dtype, (type, np.ndarray, np.generic)):
        return to_torch(dtype.dtype)  # an array means its type, as in `numpy.dtype` (which does not accept a NumPy array itself)
    if isinstance(dtype, torch.dtype):
        torch_type = dtype
    elif isinstance(dtype, str) and dtype in NAME_TO_TORCH:
        torch_type = NAME_TO_TORCH[dtype]
    elif dtype is None:
        torch_type = torch.float32
    else:
        try:
            name = "bfloat16" if np.dtype(dtype) == BFLOAT16_BITS else np.dtype(dtype).name
        except (TypeError, ValueError, SyntaxError):  # numpy reads a text as a description of fields
            name = str(dtype)
        torch_type = NAME_TO_TORCH.get(name)
    if torch_type not in TORCH_TO_NAME:
        raise TypeError(f"data type {dtype!r} not understood; expected one of {sorted(NAME_TO_TORCH)}{did_you_mean(dtype, NAME_TO_TORCH)}")
    try:
        _CACHE[dtype] = torch_type
    except TypeError:
        pass
    return torch_type


def to_numpy(dtype: torch.dtype) -> Any:
    """The numpy scalar type of a torch type; for bfloat16 a structured type around its 16 bits, as in MXNet."""
    return _TORCH_TO_NUMPY[dtype]




def name_of(dtype: torch.dtype) -> str:
    """MXNet's name of a torch type, such as ``'float32'``."""
    try:
        return TORCH_TO_NAME[dtype]
    except KeyError:
        if dtype in _COMPLEX:
            return _COMPLEX[dtype]
        raise MXNetError(f"{dtype} has no counterpart in MXNet; convert to one of {sorted(NAME_TO_TORCH)}") from None


def same_type(in_types: Any, out_types: Any, **_: Any) -> Any:
    """Infer one type for all inputs and outputs."""
    dtype = next((t for t in (*in_types, *out_types) if t is not None), None)
    return [t or dtype for t in in_types], [t or dtype for t in out_types]
