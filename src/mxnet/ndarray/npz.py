"""NumPy's files of arrays, which MXNet 2 writes: ``.npz``, a zip archive with a ``.npy`` file for each array, and ``.npy`` itself.

Files are untrusted: a shape is checked against the number of bytes present before anything is allocated, and nothing is unpickled.
"""
from __future__ import annotations

import ast
import math
import struct
import zipfile
import zlib
from collections.abc import Iterable
from typing import IO

import numpy as np
import torch
from numpy.lib import format as npy

from ..base import MXNetError
from ..context import cpu
from ..ops import dtypes, host_arrays
from .ndarray import NDArray

NPY_MAGIC = b"\x93NUMPY"
_MOST_DEFLATED = 1032  # bytes that zlib makes of one, at most
_DAMAGED = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError, OverflowError, OSError, struct.error)
_LONGEST_HEADER, _MOST_AXES = 10_000, 32
_LENGTHS = {(1, 0): "<H", (2, 0): "<I", (3, 0): "<I"}  # how the length of the header is written
_TYPES = tuple(np.dtype(name) for name in dtypes.NAME_TO_TORCH if name != "bfloat16" and np.dtype(name).kind in "biuf")
_BY_DESCR = {order + dtype.str[1:]: np.dtype(order + dtype.str[1:]) for dtype in _TYPES for order in "<>|="}


def write(file: IO[bytes], arrays: Iterable[tuple[str, NDArray]], compress: bool = False) -> None:
    """Write a ``.npz`` file of named arrays.

    Raises
    ------
    MXNetError
        If NumPy has no such array: one of bfloat16, or a sparse one.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name, array in arrays:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                write_array(member, array, name)


def write_array(file: IO[bytes], array: NDArray, name: str) -> None:
    """Write one array as a ``.npy`` file; errors as in `write`."""
    if array._is_sparse or array._data.dtype is torch.bfloat16:
        kind = f"storage type {array.stype}" if array._is_sparse else "type bfloat16"
        raise MXNetError(f"NumPy's files hold no array of {kind}, received {name!r}; save to a file called .params"
                         f"{'' if array._is_sparse else ' or .safetensors'}")
    npy.write_array(file, array.asnumpy(), allow_pickle=False)


def read(file: IO[bytes], size: int, source: str) -> dict[str, NDArray]:
    """Read the arrays of a ``.npz`` file by name.

    Raises
    ------
    MXNetError
        If the file is damaged.
    """
    arrays = {}
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if sum(member.compress_size for member in members) > size:
                raise ValueError(f"its members have {sum(member.compress_size for member in members)} bytes, the file {size}")
            for member in members:
                name = member.filename.removesuffix(".npy")
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError(f"{name!r} is compressed by method {member.compress_type}")
                if member.file_size > _MOST_DEFLATED * member.compress_size:
                    raise ValueError(f"{name!r} can't have {member.file_size} bytes")
                with archive.open(member) as content:
                    arrays[name] = _read_array(content, member.file_size, name)
    except _DAMAGED as error:
        raise MXNetError(f"{source}: not a valid .npz file: {error}") from None
    return arrays


def read_array(file: IO[bytes], size: int, source: str) -> NDArray:
    """Read the array of a ``.npy`` file; errors as in `read`."""
    try:
        return _read_array(file, size, "the array")
    except _DAMAGED as error:
        raise MXNetError(f"{source}: not a valid .npy file: {error}") from None


def _take(file: IO[bytes], count: int, name: str) -> bytes:
    piece = file.read(count)
    if len(piece) < count:
        raise ValueError(f"{name!r} ends early: {count} bytes expected, received {len(piece)}")
    return piece


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Parse a header; return the shape, True for Fortran order, the type, and the offset of the values in bytes."""
    if _take(file, 6, name) != NPY_MAGIC:
        raise ValueError(f"{name!r} does not begin as a .npy file")
    major, minor = _take(file, 2, name)
    if (major, minor) not in _LENGTHS:
        raise ValueError(f"{name!r} is of version {major}.{minor}; known are {', '.join(f'{m}.{n}' for m, n in _LENGTHS)}")
    form = _LENGTHS[major, minor]
    length, = struct.unpack(form, _take(file, struct.calcsize(form), name))
    if length > _LONGEST_HEADER:
        raise ValueError(f"the header of {name!r} has {length} bytes")
    try:
        header = ast.literal_eval(_take(file, length, name).decode().strip())
        shape, fortran, descr = header["shape"], header["fortran_order"], header["descr"]
        dtype = _BY_DESCR.get(descr)
    except (SyntaxError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(f"the header of {name!r} is damaged: {type(error).__name__}") from None
    if dtype is None:
        raise ValueError(f"{name!r} has elements of type {descr!r:.80}; known are {', '.join(map(str, _TYPES))}")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape) or len(shape) > _MOST_AXES:
        raise ValueError(f"{name!r} has the shape {shape!r:.80}")
    return shape, bool(fortran), dtype, 8 + struct.calcsize(form) + length


def _read_array(file: IO[bytes], size: int, name: str) -> NDArray:
    shape, fortran, dtype, offset = _header(file, name)
    count = math.prod(shape) * dtype.itemsize
    if count != size - offset or math.prod(n or 1 for n in shape) * dtype.itemsize >= 1 << 63:
        raise ValueError(f"{name!r} of shape {shape} and type {dtype} has {size - offset} bytes")
    values = np.frombuffer(_take(file, count, name), dtype).reshape(shape, order="F" if fortran else "C")
    return NDArray._new(host_arrays.as_tensor(values.astype(dtype.newbyteorder("="), copy=False), copy=True), cpu())
