"""NumPy's files of arrays, which MXNet 2 writes: ``.npz``, a zip archive with a ``.npy`` file for each array, and ``.npy`` itself.

Files are hostile: a shape is checked against the bytes that are there before anything is allocated, and nothing is unpickled.
"""
from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterable
from typing import IO, Any

import numpy as np
import torch
from numpy.lib import format as npy

from ..base import MXNetError
from ..context import cpu
from ..ops import dtypes, host_arrays
from .ndarray import NDArray

NPY_MAGIC = b"\x93NUMPY"
_MOST_DEFLATED = 1032  # bytes that zlib makes of one, at most
_DAMAGED = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError, OverflowError, OSError, SyntaxError, TypeError)
_TYPES = tuple(np.dtype(name) for name in dtypes.NAME_TO_TORCH if name != "bfloat16")
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


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
                raise ValueError("its members are larger than the file")
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


class _Counted:
    """A file to read headers from, which knows how far it has been read."""

    def __init__(self, file: Any) -> None:
        self.file, self.offset = file, 0

    def read(self, count: int = -1) -> bytes:
        piece = self.file.read(count)
        self.offset += len(piece)
        return piece


def _read_array(file: IO[bytes], size: int, name: str) -> NDArray:
    counted: Any = _Counted(file)
    version = npy.read_magic(counted)
    if version not in _HEADERS:
        raise ValueError(f"{name!r} is of version {version[0]}.{version[1]}; known are 1.0 and 2.0")
    shape, fortran, dtype = _HEADERS[version](counted)
    if dtype.newbyteorder("=") not in _TYPES:
        raise ValueError(f"{name!r} has elements of type {dtype}; known are {', '.join(map(str, _TYPES))}")
    count = math.prod(shape) * dtype.itemsize
    if any(n < 0 for n in shape) or count != size - counted.offset:
        raise ValueError(f"{name!r} of shape {shape} and type {dtype} has {size - counted.offset} bytes")
    values = np.frombuffer(file.read(count), dtype)
    if values.nbytes != count:
        raise ValueError(f"{name!r} ends early")
    values = values.reshape(shape, order="F" if fortran else "C").astype(dtype.newbyteorder("="), copy=False)
    return NDArray._new(host_arrays.as_tensor(values, copy=True), cpu())
