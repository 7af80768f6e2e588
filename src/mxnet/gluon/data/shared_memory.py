"""Transfer of arrays between processes through shared memory, without a copy through a pipe.

The memory belongs to a file without a name, and the message carries its descriptor. So there is nothing to clean up, however a process ends:
the system frees the memory with the last process that has it. A worker reuses memory that the receiver has released, because
fresh memory costs a page fault for every 4 KiB.
"""
from __future__ import annotations

import ctypes
import functools
import io
import itertools
import mmap
import os
import pickle
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ... import interrupts
from ...context import Context, intern_context
from ...ndarray import NDArray
from ...ops import dtypes

SHARED = intern_context(Context("cpu_shared", 0))
INLINE = 1 << 16  # bytes below which a copy in the message costs less than memory of its own
_ALIGN = 64
_KEEP_MESSAGES = 32  # memory that was not used for so many messages is given back


@functools.cache
def _libc():
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library


class Memory:
    """Shared memory, mapped for as long as this object or a tensor on it lives.

    Python's own ``mmap`` would hold a descriptor all that time, and a process has few of them.

    Parameters
    ----------
    fd : int
        The descriptor. It may be closed afterwards.
    """

    def __init__(self, fd: int) -> None:
        self.size = os.fstat(fd).st_size
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        address = _libc().mmap(None, self.size, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, 0)
        if address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), f"cannot map {self.size} bytes of shared memory; use fewer workers, less prefetch or smaller "
                                              "batches")
        self.address = address
        self._ending = interrupts.Ending()
        self._ending.__del__ = functools.partial(_libc().munmap, address, self.size)

    def tensor(self, offset: int = 0, on_release: Callable[[], Any] | None = None) -> Any:
        """Return the memory from `offset` on as a uint8 tensor. `on_release` is called when no tensor made of it is left."""
        buffer: Any = (ctypes.c_ubyte * (self.size - offset)).from_address(self.address + offset)
        buffer.memory = self  # which lives as long as the tensor
        if on_release is not None:
            buffer.ending = interrupts.at_end(_released, on_release, os.getpid())
        return torch.frombuffer(buffer, dtype=torch.uint8)


def _released(callback: Callable[[], Any], pid: int) -> None:
    if os.getpid() == pid:  # a fork has the tensor, too, but it isn't the fork's to give back
        callback()


def _anonymous_file(size: Any):
    """Return the descriptor of a new file without a name."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("mxnet")
    else:
        with tempfile.TemporaryFile() as f:
            fd = os.dup(f.fileno())
    os.ftruncate(fd, size)
    return fd


# -- memory that goes back and forth -------------------------------------------------------------------------------------

class _Segment:
    """A piece of a worker's memory. It begins with two counters: of the times it was sent, and of the times the receiver released it.

    Each is written by one process only, so they need no lock.
    """

    def __init__(self, number, capacity) -> None:
        self.number, self.capacity = number, capacity
        self.fd = _anonymous_file(_ALIGN + capacity)
        self.memory = Memory(self.fd)
        self.counters = _counters(self.memory)
        self.held, self.known, self.last_use = 0, False, 0

    @property
    def free(self) -> Any:
        return not self.held and self.counters[0] == self.counters[1]

    def tensor(self) -> Any:
        """Return the content as a tensor; the segment is in use until the tensor is freed."""
        self.held += 1
        return self.memory.tensor(_ALIGN, self._let_go)

    def _let_go(self) -> None:
        self.held -= 1


def _counters(memory: Any):
    return memory.tensor()[:16].view(torch.int64).numpy()


class Supply:
    """The pool of shared memory segments from which a worker builds its messages."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._segments: dict[int, _Segment] = {}  # by the address of their content
        self._messages = 0

    def tensor(self, size: Any) -> Any:
        """Return a uint8 tensor of `size` bytes."""
        for segment in self._segments.values():
            if size <= segment.capacity <= 2 * size and segment.free:
                break
        else:
            segment = _Segment(next(self._numbers), size)
            self._segments[segment.memory.address + _ALIGN] = segment
        segment.last_use = self._messages
        return segment.tensor()[:size]

    def segment(self, tensor: torch.Tensor) -> Any:
        """Return the segment that a tensor is in, or None."""
        return self._segments.get(tensor.untyped_storage().data_ptr())

    def send(self, segments: Any) -> Any:
        """Count segments as sent. Returns the list of (number, True if new), the numbers of segments that are
        gone, and the descriptors of the new ones, for the receiver."""
        self._messages += 1
        used, descriptors = [], []
        for segment in segments:
            segment.counters[0] += 1
            segment.last_use = self._messages
            used.append((segment.number, not segment.known))
            if not segment.known:
                segment.known = True
                descriptors.append(segment.fd)
        old = [address for address, s in self._segments.items() if s.last_use + _KEEP_MESSAGES < self._messages and s.free]
        gone = [self._segments.pop(address) for address in old]
        for segment in gone:
            os.close(segment.fd)
        return used, [segment.number for segment in gone if segment.known], descriptors


class Received:
    """The shared memory segments received from one worker."""

    def __init__(self) -> None:
        self._memories: dict[int, Any] = {}

    def tensors(self, used: Any, gone: Any, descriptors: Any) -> Any:
        """Return the contents of the segments of a message, see `Supply.send`. The descriptors are closed."""
        descriptors = list(descriptors)
        try:
            for number in gone:
                self._memories.pop(number, None)
            for number, new in used:
                if new:
                    self._memories[number] = Memory(descriptors[0])
                    os.close(descriptors.pop(0))
            return [self._content(self._memories[number]) for number, _ in used]
        finally:
            for fd in descriptors:
                os.close(fd)

    @staticmethod
    def _content(memory: Any):
        counters = _counters(memory)

        def let_go():
            counters[1] += 1

        return memory.tensor(_ALIGN, let_go)


_supply = None


def enable() -> None:
    """Put the large arrays of messages into shared memory from now on; for worker processes."""
    global _supply
    _supply = Supply()


def empty(shape: Any, dtype: Any) -> Any:
    """Return a new tensor of a torch dtype; in a worker it is in shared memory, unless it is too small for that to pay."""
    size = torch.Size(shape).numel() * dtype.itemsize
    return _supply.tensor(size).view(dtype).view(*shape) if _supply and size >= INLINE else torch.empty(tuple(shape), dtype=dtype)


# -- messages ------------------------------------------------------------------------------------------------------------

def _flat_bytes(tensor: torch.Tensor):
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)


def _from_bytes(content, dtype: Any, shape: Any):
    return torch.frombuffer(bytearray(content), dtype=dtype).view(shape) if content else torch.empty(shape, dtype=dtype)


def _cut(memory: Any, offset, dtype: Any, shape: Any):
    """Return the tensor at an offset of a uint8 tensor."""
    return memory[offset:offset + torch.Size(shape).numel() * dtype.itemsize].view(dtype).view(shape)


class _Packer(pickle.Pickler):
    """A pickler that puts large arrays into shared memory and replaces each of the `inherited` objects by its number."""

    def __init__(self, stream, inherited: Any) -> None:
        super().__init__(stream, pickle.HIGHEST_PROTOCOL)
        self._inherited = {id(obj): i for i, obj in enumerate(inherited) if obj is not None}
        self.segments: list[Any] = []  # that arrays are in already
        self.loose_size = 0
        self.loose: list[tuple[int, Any]] = []  # other large contents, which get a segment in common

    def persistent_id(self, obj: Any) -> Any:
        if id(obj) in self._inherited:
            return ("inherited", self._inherited[id(obj)])
        if isinstance(obj, NDArray) and not obj._is_sparse:
            tensor = obj._data.detach()
        elif type(obj) is np.ndarray and obj.nbytes >= INLINE and obj.dtype.name in dtypes.NAME_TO_TORCH and obj.dtype.isnative:
            tensor = torch.from_numpy(np.require(obj, requirements=["C", "W"]))
        else:
            return None
        return ("array", type(obj), dtypes.name_of(tensor.dtype), tuple(tensor.shape), self._place(tensor))

    def _place(self, tensor: torch.Tensor):
        """Return the content of an array, or its place: (number of the segment, offset)."""
        segment = _supply.segment(tensor) if _supply and tensor.is_contiguous() else None
        if segment is not None:
            if segment not in self.segments:
                self.segments.append(segment)
            return self.segments.index(segment), tensor.storage_offset() * tensor.element_size()
        content = _flat_bytes(tensor)
        return self.put(content) if _supply and content.numel() >= INLINE else content.numpy().tobytes()

    def put(self, content) -> Any:
        """Reserve a place in the common segment, which comes last."""
        offset = self.loose_size
        self.loose.append((offset, content))
        self.loose_size += -(-content.numel() // _ALIGN) * _ALIGN
        return -1, offset

    def finish(self) -> Any:
        """Fill the common segment; return all segments of the message."""
        if self.loose and _supply is not None:
            memory = _supply.tensor(self.loose_size)
            for offset, content in self.loose:
                memory[offset:offset + content.numel()] = content
            self.segments.append(_supply.segment(memory))
        return self.segments


class _Unpacker(pickle.Unpickler):
    def __init__(self, stream, memories, inherited: Any) -> None:
        super().__init__(stream)
        self._memories, self._inherited = memories, inherited

    def persistent_load(self, pid) -> Any:
        kind, *rest = pid
        if kind == "inherited":
            return self._inherited[rest[0]]
        cls, dtype, shape, place = rest
        dtype = dtypes.to_torch(dtype)
        tensor = _from_bytes(place, dtype, shape) if isinstance(place, bytes) else _cut(self._memories[place[0]], place[1], dtype, shape)
        return tensor.numpy() if cls is np.ndarray else cls._new(tensor, SHARED)


def pack(obj: Any, inherited: Any = ()) -> Any:
    """Serialize an object; return the bytes of the message and the descriptors that go with them."""
    stream = io.BytesIO()
    packer = _Packer(stream, inherited)
    packer.dump(obj)
    content: Any = stream.getvalue()
    if not _supply:
        return pickle.dumps((content, [], [])), []
    if len(content) >= INLINE:
        # So that a worker's messages stay small and it never waits for the receiver to make room.
        content = packer.put(torch.frombuffer(bytearray(content), dtype=torch.uint8))[1], len(content)
    used, gone, descriptors = _supply.send(packer.finish())
    return pickle.dumps((content, used, gone)), descriptors


def unpack(message: Any, descriptors: Any = (), received: Any = None, inherited: Any = ()) -> Any:
    """Return the object of a message; `received` is the sender's `Received`, if it is a worker."""
    content, used, gone = pickle.loads(message)
    memories = received.tensors(used, gone, descriptors) if received else []
    if isinstance(content, tuple):
        start, length = content
        content = memories[-1][start:start + length].numpy()
    return _Unpacker(io.BytesIO(content), memories, inherited).load()


# -- arrays in messages of multiprocessing's own pools and queues --------------------------------------------------------

def rebuild_ndarray(cls: Any, handle: Any, dtype: Any, shape: Any) -> Any:
    """Return the array that `reduce_ndarray` took apart."""
    dtype = dtypes.to_torch(dtype)
    if isinstance(handle, bytes):
        return cls._new(_from_bytes(handle, dtype, shape), SHARED)
    fd = handle.detach()
    try:
        return cls._new(_cut(Memory(fd).tensor(), 0, dtype, shape), SHARED)
    finally:
        os.close(fd)


def reduce_ndarray(array: Any) -> Any:
    """Take an array apart for multiprocessing's pickler: its memory as a descriptor, or its content if it is small."""
    from multiprocessing.reduction import DupFd

    if array._is_sparse:
        return array.__reduce__()
    content = _flat_bytes(array._data)
    if content.numel() < INLINE:
        handle = content.numpy().tobytes()
    else:
        fd = _anonymous_file(content.numel())
        try:
            Memory(fd).tensor().copy_(content)
            handle = DupFd(fd)
        finally:
            os.close(fd)
    return rebuild_ndarray, (type(array), handle, dtypes.name_of(array._data.dtype), tuple(array.shape))
