"""One rank's file of a checkpoint, in the format of safetensors: the length of a JSON header, the header, the elements.

The package safetensors is not used, since it copies all tensors to write them; it reads these files.
"""
from __future__ import annotations

import errno
import json
import mmap
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
_PAGE = 4096  # direct writes are of whole pages


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
    header_bytes = torch.frombuffer(bytearray(struct.pack("<Q", len(text)) + text), dtype=torch.uint8)
    with files.reported(path, "write"):
        with _Output(path) as output:
            for part in (header_bytes, *parts):
                output.add(part.contiguous().view(torch.uint8))
            return output.finish(sync)


class _Output:
    """A new file, written in blocks that go to the disk directly where the file system can do that.

    Through the system's cache they would be copied by the kernel, which costs several times the processor time, and displace what the cache has.
    """

    def __init__(self, path: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        self._direct = getattr(os, "O_DIRECT", 0)
        try:
            self._file = os.open(path, flags | self._direct, 0o666)
        except OSError as error:
            if not self._direct or error.errno != errno.EINVAL:
                raise
            self._file, self._direct = os.open(path, flags, 0o666), 0
        self._block = mmap.mmap(-1, _SLICE)  # at the beginning of a page, as direct writes need it
        self._view = memoryview(self._block)
        self._bytes = torch.frombuffer(self._block, dtype=torch.uint8)
        self._filled = self._size = 0

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *error: Any) -> None:
        os.close(self._file)
        del self._bytes
        self._view.release()

    def add(self, content: torch.Tensor) -> None:
        """Append bytes; the copy, and the write, let other threads run Python."""
        while len(content):
            part = content[:_SLICE - self._filled]
            self._bytes[self._filled:self._filled + len(part)].copy_(part)
            self._filled += len(part)
            self._size += len(part)
            content = content[len(part):]
            if self._filled == _SLICE:
                self._write(_SLICE)

    def _write(self, count: int) -> None:
        start = 0
        while start < count:
            try:
                start += os.write(self._file, self._view[start:count])
            except OSError as error:
                if not self._direct or error.errno != errno.EINVAL:
                    raise
                self._indirect()  # the file system opens files so, and refuses these blocks
            if start % _PAGE:  # after a short write
                self._indirect()
        self._filled = 0

    def _indirect(self) -> None:
        if self._direct:
            import fcntl
            fcntl.fcntl(self._file, fcntl.F_SETFL, fcntl.fcntl(self._file, fcntl.F_GETFL) & ~self._direct)
            self._direct = 0

    def finish(self, sync: bool) -> int:
        """Write the last block, with `sync` also to the disk itself, and return the size of the file."""
        if self._filled:
            self._write(-(-self._filled // _PAGE) * _PAGE if self._direct else self._filled)
        os.ftruncate(self._file, self._size)
        if sync:
            os.fsync(self._file)
        return self._size


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
