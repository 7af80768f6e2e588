"""Arrays that pass between processes without being copied through a pipe.

The memory is that of a file without a name; what passes is its descriptor. So there is nothing to clean up, however a process ends:
the system frees the memory with the last process that has it.
"""
import ctypes
import io
import mmap
import os
import pickle
import tempfile
import weakref

import numpy as np
import torch

from ...context import Context, intern_context
from ...ndarray import NDArray
from ...ops import dtypes

SHARED = intern_context(Context("cpu_shared", 0))
INLINE = 1 << 16  # bytes below which a copy in the message costs less than mapping memory
_ALIGN = 64
_POPULATE = getattr(mmap, "MAP_POPULATE", 0)  # one call instead of a page fault for every 4 KiB
_owned = {}  # address to descriptor, of the memory that this process made
_enabled = False


def enable():
    """Let `empty` make shared memory from now on; for processes that send what they make."""
    global _enabled
    _enabled = True


def _libc():
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library


def _map(fd, size):
    """The memory of a file as a uint8 tensor, and its address. It is unmapped with the last tensor on it.

    Python's own ``mmap`` would hold a descriptor for as long as the memory is used, and a process has few of them.
    """
    libc = _libc()
    address = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _POPULATE, fd, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), f"cannot map {size} bytes of shared memory; use fewer workers, less prefetch or smaller batches")
    buffer = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(buffer, _release, libc, address, size).atexit = False
    return torch.frombuffer(buffer, dtype=torch.uint8), address


def _release(libc, address, size):
    libc.munmap(address, size)
    fd = _owned.pop(address, None)
    if fd is not None:
        os.close(fd)


def create(size):
    """New shared memory of `size` bytes, as a uint8 tensor."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("mxnet")
    else:
        with tempfile.TemporaryFile() as f:
            fd = os.dup(f.fileno())
    try:
        os.ftruncate(fd, size)
        memory, address = _map(fd, size)
    except BaseException:
        os.close(fd)
        raise
    _owned[address] = fd
    return memory


def attach(fd):
    """The memory behind a descriptor that another process made, as a uint8 tensor. The descriptor is closed."""
    try:
        return _map(fd, os.fstat(fd).st_size)[0]
    finally:
        os.close(fd)


def descriptor(tensor):
    """The descriptor of the shared memory that a tensor is in, or None. It belongs to the memory: don't close it."""
    return _owned.get(tensor.untyped_storage().data_ptr()) if _owned else None


def empty(shape, dtype):
    """A new tensor of a torch dtype, in shared memory where `enable` was called, unless it is too small for that to pay."""
    size = torch.Size(shape).numel() * dtype.itemsize
    return create(size).view(dtype).view(*shape) if _enabled and size >= INLINE else torch.empty(tuple(shape), dtype=dtype)


def _flat_bytes(tensor):
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)


def _from_bytes(content, dtype, shape):
    return torch.frombuffer(bytearray(content), dtype=dtype).view(shape) if content else torch.empty(shape, dtype=dtype)


def _cut(memory, offset, dtype, shape):
    """The tensor at a place in a memory."""
    return memory[offset:offset + torch.Size(shape).numel() * dtype.itemsize].view(dtype).view(shape)


# -- messages ------------------------------------------------------------------------------------------------------------

class _Packer(pickle.Pickler):
    """Pickles an object; its large arrays go to shared memory, and `inherited` objects are known to the receiver by their number."""

    def __init__(self, stream, inherited):
        super().__init__(stream, pickle.HIGHEST_PROTOCOL)
        self._inherited = {id(obj): i for i, obj in enumerate(inherited) if obj is not None}
        self.descriptors, self.packed, self.size = [], [], 0

    def persistent_id(self, obj):
        if id(obj) in self._inherited:
            return ("inherited", self._inherited[id(obj)])
        if isinstance(obj, NDArray) and not obj._is_sparse:
            tensor = obj._data.detach()
        elif type(obj) is np.ndarray and obj.nbytes >= INLINE and obj.dtype.name in dtypes.NAME_TO_TORCH and obj.dtype.isnative:
            tensor = torch.from_numpy(np.require(obj, requirements=["C", "W"]))
        else:
            return None
        return ("array", type(obj), dtypes.name_of(tensor.dtype), tuple(tensor.shape), self._place(tensor))

    def _place(self, tensor):
        """The content of an array, if it is small, or where it is: (number of the memory, offset)."""
        fd = descriptor(tensor) if tensor.is_contiguous() else None
        if fd is not None:
            self.descriptors.append(fd)
            return len(self.descriptors) - 1, tensor.storage_offset() * tensor.element_size()
        content = _flat_bytes(tensor)
        return self._pack(content) if content.numel() >= INLINE else content.numpy().tobytes()

    def _pack(self, content):
        offset = self.size
        self.packed.append((offset, content))
        self.size += -(-content.numel() // _ALIGN) * _ALIGN
        return -1, offset


class _Unpacker(pickle.Unpickler):
    def __init__(self, stream, memories, inherited):
        super().__init__(stream)
        self._memories, self._inherited = memories, inherited

    def persistent_load(self, pid):
        kind, *rest = pid
        if kind == "inherited":
            return self._inherited[rest[0]]
        cls, dtype, shape, place = rest
        dtype = dtypes.to_torch(dtype)
        tensor = _from_bytes(place, dtype, shape) if isinstance(place, bytes) else _cut(self._memories[place[0]], place[1], dtype, shape)
        return tensor.numpy() if cls is np.ndarray else cls._new(tensor, SHARED)


def pack(obj, inherited=()):
    """An object as a message.

    Returns
    -------
    tuple
        The bytes; the descriptors that go with them; and what must live until they are sent.
    """
    stream = io.BytesIO()
    packer = _Packer(stream, inherited)
    packer.dump(obj)
    content = stream.getbuffer()
    head = None
    if len(content) >= INLINE:
        # So that messages stay small and a sender never waits for the receiver to make room.
        head, length = packer._pack(torch.frombuffer(content, dtype=torch.uint8))[1], len(content)
    memory = None
    if packer.size:
        memory = create(packer.size)
        for offset, part in packer.packed:
            memory[offset:offset + part.numel()] = part
        packer.descriptors.append(descriptor(memory))
    message = pickle.dumps((head, length)) if head is not None else b"." + bytes(content)
    return message, packer.descriptors, (obj, memory)


def unpack(message, descriptors, inherited=()):
    """The object of a message. The descriptors are closed."""
    memories = []
    try:
        while descriptors:
            memories.append(attach(descriptors.pop(0)))
    finally:
        for fd in descriptors:
            os.close(fd)
    if message[:1] == b".":
        content = io.BytesIO(message[1:])
    else:
        head, length = pickle.loads(message)
        content = io.BytesIO(memories[-1][head:head + length].numpy())
    return _Unpacker(content, memories, inherited).load()


# -- arrays in messages of multiprocessing's own pools and queues --------------------------------------------------------

def rebuild_ndarray(cls, handle, dtype, shape):
    """The array that `reduce_ndarray` took apart."""
    dtype = dtypes.to_torch(dtype)
    return cls._new(_from_bytes(handle, dtype, shape) if isinstance(handle, bytes) else _cut(attach(handle.detach()), 0, dtype, shape), SHARED)


def reduce_ndarray(array):
    """Take an array apart for multiprocessing's pickler: its memory as a descriptor, or its content if it is small."""
    from multiprocessing.reduction import DupFd

    if array._is_sparse:
        return array.__reduce__()
    content = _flat_bytes(array._data)
    if content.numel() < INLINE:
        handle = content.numpy().tobytes()
    else:
        memory = create(content.numel())
        memory.copy_(content)
        handle = DupFd(descriptor(memory))
    return rebuild_ndarray, (type(array), handle, dtypes.name_of(array._data.dtype), tuple(array.shape))
