"""Tensors of requests and responses: JSON numbers or bytes on one side, NumPy arrays on the other.

Every size is compared with what came before an array is made of it.
"""
from __future__ import annotations

import itertools
import json
import math
import reprlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .errors import RequestError, malformed

# The Open Inference Protocol's names of the types that arrays here have.
DATATYPES = {"BOOL": np.dtype(np.bool_), "UINT8": np.dtype(np.uint8), "INT8": np.dtype(np.int8), "INT32": np.dtype(np.int32),
             "INT64": np.dtype(np.int64), "FP16": np.dtype(np.float16), "FP32": np.dtype(np.float32), "FP64": np.dtype(np.float64)}
NAMES = {dtype: name for name, dtype in DATATYPES.items()}
_MOST_AXES = 32


class TensorSpec(NamedTuple):
    """An input or output of a model: a size of -1 is free."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]

    def check(self, shape: Sequence[int]) -> None:
        """Refuse a shape that the model does not take.

        Raises
        ------
        RequestError
            If the number of axes or a size is wrong, or an axis that is free has no elements.
        """
        if len(shape) != len(self.shape) or any(own not in (-1, size) or size == 0 for own, size in zip(self.shape, shape)):
            raise malformed(f"the input {self.name!r} has shape {_shown(self.shape)}, received {_shown(shape)}")


def _shown(shape: Sequence[int]) -> str:
    return str(list(shape)) if len(shape) <= _MOST_AXES else f"{len(shape)} axes"


def checked_shape(shape: Any, name: str) -> tuple[int, ...]:
    """Return a shape out of JSON as a tuple, or raise a `RequestError` if it is none."""
    if type(shape) is not list or len(shape) > _MOST_AXES or any(type(size) is not int or size < 0 for size in shape):
        raise malformed(f"the tensor {name!r}: 'shape' must be a list of at most {_MOST_AXES} integers from 0, received {reprlib.repr(shape)}")
    return tuple(shape)


def parsed_json(content: bytes, limit: int) -> Any:
    """Return what JSON says.

    Raises
    ------
    RequestError
        If it is longer than `limit` bytes (413), or is no JSON: NaN and Infinity are none, and neither is what is nested too deeply (400).
    """
    if len(content) > limit:
        raise RequestError(413, f"JSON of at most {limit} bytes is taken, received {len(content)}; send tensors as binary data")
    try:
        return json.loads(content, parse_constant=_refused_constant)
    except RequestError:
        raise
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise malformed(f"the body is no JSON: {str(error)[:200]}") from None


def _refused_constant(name: str) -> None:
    raise malformed(f"the body is no JSON: {name} is no number there; send it in binary data")


def from_nested(data: Any, shape: Sequence[int] | None, dtype: np.dtype, name: str) -> np.ndarray:
    """Return the array of JSON numbers, nested as its shape says or flat.

    Parameters
    ----------
    data : list
    shape : tuple of int or None
        None takes the shape from the nesting.
    dtype : numpy.dtype
    name : str
        The tensor's, for errors.

    Raises
    ------
    RequestError
        If there are more or fewer elements, the nesting is uneven or another one, or an element is no number of this type.

    Example
    -------
    >>> import numpy as np
    >>> from mxnet.serve.tensors import from_nested
    >>> from_nested([[1, 2], [3, 4]], None, np.dtype(np.float32), "x")
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if type(data) is not list:
        raise malformed(f"the tensor {name!r}: 'data' must be a list of numbers, received {reprlib.repr(data)}")
    sizes = [len(data)]
    while data and type(data[0]) is list:
        if len(sizes) == _MOST_AXES or set(map(type, data)) != {list} or len(set(map(len, data))) != 1:
            raise malformed(f"the tensor {name!r}: its lists are nested unevenly, or more than {_MOST_AXES} deep; received {reprlib.repr(data)}")
        sizes.append(len(data[0]))
        data = list(itertools.chain.from_iterable(data))
    if shape is None:
        shape = sizes
    elif sizes != list(shape) and (len(sizes) > 1 or len(data) != math.prod(shape)):
        raise malformed(f"the tensor {name!r}: shape {_shown(shape)} has {math.prod(shape)} elements, 'data' is of shape {_shown(sizes)}")
    return _numbers(data, dtype, name).reshape(shape)


def _numbers(data: list, dtype: np.dtype, name: str) -> np.ndarray:
    """Return a flat list as an array; the types are looked at first, since NumPy makes an array of texts out of one text among numbers."""
    kinds = set(map(type, data))
    if dtype.kind == "b":
        expected: set[type] = {bool} if bool in kinds else {int}
    else:
        expected = {int, float} if dtype.kind == "f" else {int}
    if not kinds <= expected:
        wrong = next(value for value in data if type(value) not in expected)
        raise malformed(f"the tensor {name!r}: elements of {NAMES[dtype]} expected, received {reprlib.repr(wrong)}")
    try:
        wide = np.array(data, np.float64 if dtype.kind == "f" else np.int64)
        with np.errstate(over="ignore"):
            values = wide.astype(dtype)
        fits = np.isfinite(values).all() if dtype.kind == "f" else (values == wide).all()
    except OverflowError:
        fits = False
    if not fits:
        raise malformed(f"the tensor {name!r}: a number does not fit {NAMES[dtype]}")
    return values


def from_bytes(content: memoryview, shape: Sequence[int], dtype: np.dtype, name: str) -> np.ndarray:
    """Return the array of little-endian bytes in row-major order, a view of them.

    Raises
    ------
    RequestError
        If their number is not that of the shape, or a BOOL is neither 0 nor 1.
    """
    count = math.prod(shape)
    if count * dtype.itemsize != len(content):
        raise malformed(f"the tensor {name!r}: shape {_shown(shape)} of {NAMES[dtype]} has {count * dtype.itemsize} bytes, received {len(content)}")
    if dtype.kind == "b" and len(content) and np.frombuffer(content, np.uint8).max() > 1:
        raise malformed(f"the tensor {name!r}: each BOOL must be a byte 0 or 1, received {np.frombuffer(content, np.uint8).max()}")
    return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)


def to_nested(array: np.ndarray, flat: bool = False) -> list:
    """Return an array as lists of what JSON has; what is no number, or infinite, becomes None (JSON's null).

    Example
    -------
    >>> import numpy as np
    >>> from mxnet.serve.tensors import to_nested
    >>> to_nested(np.array([[1.5, np.nan]]))
    [[1.5, None]]
    """
    if flat:
        array = array.reshape(-1)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        finite, array = np.isfinite(array), array.astype(object)
        array[~finite] = None
    return array.tolist()
