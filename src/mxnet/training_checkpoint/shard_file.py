"""One rank's file of a checkpoint, in the format of safetensors: the length of a JSON header, the header, the elements.

The package safetensors is not used, since it copies all tensors to write them; it reads these files.
"""
from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from .. import files
from ..base import MXNetError

_TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64, "I32": torch.int32,
          "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
_MOST = 100 << 20  # bytes of a header, the limit of safetensors
_SLICE = 8 << 20  # bytes that are written or read at a time


class Place(NamedTuple):
    """A tensor's place in a file."""

    path: str
    offset: int
    dtype: torch.dtype
    size: int


def write(path: str, tensors: Iterable[tuple[str, tuple[int, ...], torch.Tensor]], metadata: dict[str, str], sync: bool = True) -> int:
    """Write flat tensors, given with their names and shapes, and by default sync the file to the disk; return its size."""
    header: dict[str, Any] = {"__metadata__": metadata}
    offset, parts = 0, []
    for name, shape, tensor in tensors:
        if tensor.dtype not in _NAMES:
            raise MXNetError(f"checkpoints hold elements of the types {', '.join(_TYPES)}, received {tensor.dtype} of {name!r}")
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(shape), "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
        parts.append(tensor)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _MOST:
        raise MXNetError(f"the names and shapes of a checkpoint need {len(text)} bytes, the limit is {_MOST}")
    with files.reported(path, "write"), open(path, "xb", buffering=0) as file:
        _write_all(file, memoryview(struct.pack("<Q", len(text)) + text))
        for part in parts:
            _write_all(file, memoryview(part.contiguous().view(torch.uint8).numpy()))
        if sync:
            os.fsync(file.fileno())
        return file.tell()


def _write_all(file: Any, content: memoryview) -> None:
    start = 0
    while start < len(content):
        start += file.write(content[start:start + _SLICE])


def read_header(path: str, size: int) -> tuple[dict[str, str], dict[str, Place]]:
    """Return a file's metadata, and the places of its tensors.

    Raises
    ------
    MXNetError
        If it is missing, has another size, or a damaged header.
    """
    with files.reported(path), open(path, "rb") as file:
        real = os.fstat(file.fileno()).st_size
        length = struct.unpack("<Q", file.read(8).ljust(8, b"\xff"))[0]
        if real != size or length > min(real - 8, _MOST):
            raise MXNetError(f"{path} is damaged: it has {real} bytes of {size}")
        text = file.read(length)
    try:
        header = json.loads(text)
        metadata = header.pop("__metadata__")
        places = {name: _place(path, 8 + length, size, entry) for name, entry in header.items()}
        if not all(isinstance(value, str) for value in metadata.values()):
            raise ValueError("its metadata are no texts")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise MXNetError(f"{path} is damaged: {type(error).__name__}: {error}") from None
    return metadata, places


def _place(path: str, start: int, size: int, entry: dict[str, Any]) -> Place:
    dtype, shape, (begin, end) = _TYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
    count = 1
    for length in shape:
        if type(length) is not int or length < 0:
            raise ValueError(f"{shape!r:.80} is no shape")
        count *= length
    if not (type(begin) is type(end) is int and 0 <= begin <= end <= size - start) or count * dtype.itemsize != end - begin:
        raise ValueError(f"a tensor of shape {shape!r:.80} is not from byte {begin!r:.40} to {end!r:.40}")
    return Place(path, start + begin, dtype, count)


def read_into(file: Any, place: Place, begin: int, target: torch.Tensor) -> None:
    """Read elements from `begin` on into a flat tensor of any device.

    Raises
    ------
    MXNetError
        If the file ends before.
    """
    width, step = place.dtype.itemsize, _SLICE // place.dtype.itemsize
    buffer = torch.empty(min(step, len(target)), dtype=place.dtype)
    view = memoryview(buffer.view(torch.uint8).numpy())
    file.seek(place.offset + begin * width)
    for start in range(0, len(target), step):
        part = target[start:start + step]
        if file.readinto(view[:len(part) * width]) != len(part) * width:
            raise MXNetError(f"{place.path} is damaged: it ends early")
        part.copy_(buffer[:len(part)])
