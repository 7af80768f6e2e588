"""The ``.params`` format: all versions of MXNet's array files read, that of 1.9.1 written.

A file is a header, a list of arrays and a list of names. Numbers are little-endian. An array is::

    uint32  magic: 0xf993fac9 (since 1.0), 0xf993faca (saved under np_shape; no axes), 0xf993fac8 (0.11), else the number of axes (before)
    int32   storage type, and for sparse arrays the shape of the values       (not before 1.0)
    shape   number of axes and their sizes
    int32 2 device type and number
    int32   element type
    ...     for sparse arrays the types and shapes of the index arrays        (not before 1.0)
    bytes   the values, then the index arrays

Files are untrusted: every length is checked against the bytes that are left before anything is allocated.
"""
from __future__ import annotations

import io
import math
import os
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import torch

from .. import files, util
from ..base import MXNetError
from ..context import cpu
from ..ops import dtypes
from ..suggestions import type_names
from . import sparse
from .ndarray import NDArray

_LIST_MAGIC = 0x112
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
_DEFAULT, _ROW_SPARSE, _CSR = 0, 1, 2
_NUM_AUX = {_DEFAULT: 0, _ROW_SPARSE: 1, _CSR: 2}
_MAX_AXES = 32


class _Reader:
    """A reader of numbers and arrays from a file of `size` bytes, whose errors give the position."""

    def __init__(self, file: Any, size: int, source: str) -> None:
        self.file, self.size, self.source, self.offset = file, size, source, 0

    def fail(self, what: str) -> NoReturn:
        raise MXNetError(f"{self.source}: not a valid NDArray file: {what} at byte {self.offset}")

    def require(self, count: int, what: str) -> None:
        left = self.size - self.offset
        if count > left:
            self.fail(f"{what} needs {count} bytes and {left} are left (is the file truncated?)")

    def take(self, count: int, what: str) -> bytes:
        self.require(count, what)
        piece = self.file.read(count)
        if len(piece) < count:
            self.fail(f"{what} ends early")
        self.offset += count
        return piece

    def number(self, form: str, what: str) -> Any:
        return struct.unpack("<" + form, self.take(struct.calcsize(form), what))[0]

    def shape(self, what: str, ndim: int | None = None, form: str = "q") -> tuple[int, ...] | None:
        ndim = self.number("i", f"the number of axes of {what}") if ndim is None else ndim
        if not -1 <= ndim <= _MAX_AXES:
            self.fail(f"{what} has {ndim} axes")
        sizes = struct.unpack(f"<{max(ndim, 0)}{form}", self.take(max(ndim, 0) * struct.calcsize(form), f"the shape of {what}"))
        if any(s < 0 for s in sizes):
            self.fail(f"{what} has the shape {sizes}")
        return sizes if ndim >= 0 else None

    def dtype(self, what: str) -> torch.dtype:
        flag = self.number("i", f"the type of {what}")
        if flag not in dtypes.FLAG_TO_NAME:
            self.fail(f"{what} has the unknown element type {flag}")
        return dtypes.NAME_TO_TORCH[dtypes.FLAG_TO_NAME[flag]]

    def values(self, shape: tuple[int, ...] | None, dtype: torch.dtype, what: str) -> torch.Tensor:
        if shape is None:
            self.fail(f"{what} have no shape")
        count = math.prod(shape)
        self.require(count * dtype.itemsize, what)
        # Beside a size of 0 others are not bounded by the file; torch counts with 64 bits.
        if not count and math.prod(s for s in shape if s) * dtype.itemsize >= 1 << 63:
            self.fail(f"{what} have the shape {shape}")
        tensor = torch.empty(shape, dtype=dtype)
        if count:
            if self.file.readinto(tensor.view(-1).view(torch.uint8).numpy()) < count * dtype.itemsize:
                self.fail(f"{what} ends early")
            self.offset += count * dtype.itemsize
        return tensor


def _read_array(r: _Reader, name: int | str) -> Any:
    label = f"array {name}"
    magic = r.number("I", f"the magic number of {label}")
    if magic not in (_V2, _V3):
        return _read_legacy(r, magic, label)
    stype = r.number("i", f"the storage type of {label}")
    if stype not in _NUM_AUX:
        r.fail(f"{label} has the unknown storage type {stype}")
    aux_count = _NUM_AUX[stype]
    storage_shape = r.shape(f"the values of {label}") if aux_count else None
    shape = r.shape(label)
    if stype == _DEFAULT and shape and 0 in shape and (magic == _V3) is not util.is_np_shape():
        # A size of 0 stands for an unknown one without NumPy's semantics, and for no elements with them.
        r.fail(f"{label} of shape {tuple(shape)} was saved {'with' if magic == _V3 else 'without'} NumPy's shape semantics; "
               f"load it inside mx.np_shape({magic == _V3})")
    if shape is None or (not shape and magic == _V2):
        return None
    _skip_context(r, label)
    dtype = r.dtype(label)
    aux = [(r.dtype(f"the indices of {label}"), r.shape(f"the indices of {label}")) for _ in range(aux_count)]
    if math.prod(shape) >= 1 << 63:
        r.fail(f"{label} has the shape {shape}")
    for number, _ in aux:
        if number.is_floating_point or not number.is_signed:
            r.fail(f"{label} has indices of type {str(number).removeprefix('torch.')}; they must be signed integers")
    values = r.values(storage_shape if aux_count else shape, dtype, f"the values of {label}")
    indices = [r.values(s, t, f"the indices of {label}") for t, s in aux]
    if stype == _DEFAULT:
        return NDArray._new(values, cpu())
    cls = sparse.CSRNDArray if stype == _CSR else sparse.RowSparseNDArray
    try:
        array = cls._make(values, indices, shape, cpu())
        array.check_format()
    except MXNetError as error:
        r.fail(f"{label}: {error}")
    return array


def _read_legacy(r: _Reader, magic: int, what: str) -> NDArray | None:
    if magic != _V1 and magic > _MAX_AXES:
        r.fail(f"{what} has no known magic number ({magic:#x})")
    shape = r.shape(what) if magic == _V1 else r.shape(what, magic, "I")
    if not shape:
        return None
    _skip_context(r, what)
    return NDArray._new(r.values(shape, r.dtype(what), f"the values of {what}"), cpu())


def _skip_context(r: _Reader, what: str) -> None:
    r.take(8, f"the device of {what}")


def _shape_bytes(shape: Sequence[int]) -> bytes:
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def _tensor_bytes(tensor: torch.Tensor) -> Any:
    t = tensor.detach().cpu().contiguous().reshape(-1)
    if t.stride(0) != 1:  # torch calls one element contiguous whatever its stride, but does not view it as bytes
        t = t.new_empty(t.numel()).copy_(t)
    return t.view(torch.uint8).numpy()


def _array_chunks(array: Any) -> Iterator[bytes | memoryview]:
    """Iterate over the bytes of one array in a file, in pieces that need no copy."""
    aux = []
    if array._is_sparse:
        aux, stype = array._aux_tensors(), (_CSR if array.stype == "csr" else _ROW_SPARSE)
        yield struct.pack("<Ii", _V2, stype) + _shape_bytes(array._values.shape)
        values = array._values
    else:
        # No axes mean an unknown shape, without values, before _V3.
        yield struct.pack("<Ii", _V3 if util.is_np_shape() or not array.shape else _V2, _DEFAULT)
        values = array._raw()
    yield _shape_bytes(array.shape)
    yield struct.pack("<iii", 1, array._ctx.device_id if array._ctx.device_typeid == 1 else 0,
                      dtypes.NAME_TO_FLAG[dtypes.name_of(values.dtype)])
    for a in aux:
        yield struct.pack("<i", dtypes.NAME_TO_FLAG[dtypes.name_of(a.dtype)]) + _shape_bytes(a.shape)
    yield memoryview(_tensor_bytes(values))
    for a in aux:
        yield memoryview(_tensor_bytes(a))


def dump_array(array: NDArray) -> bytes:
    """Return one array as bytes, without the list around it, for pickling."""
    return b"".join(_array_chunks(array))


def restore_array(array: NDArray, raw: bytes | bytearray | None) -> None:
    """Fill an array that pickle has made out of the bytes of `dump_array`."""
    if raw is None:
        raise MXNetError("the pickle holds an NDArray without values")
    loaded = _read_array(_in_memory(raw, "pickled NDArray"), "0")
    if loaded is None:
        raise MXNetError("the pickle holds an NDArray of unknown shape, without values")
    if loaded._is_sparse != array._is_sparse or loaded._is_sparse and not isinstance(array, type(loaded)):
        raise MXNetError(f"the pickle holds the values of a {type(loaded).__name__} for a {type(array).__name__}")
    if not loaded._is_sparse:
        array._rebind(loaded._data)
        array._ctx, array._autograd = loaded._ctx, None
        return
    for slot in loaded._slots():
        setattr(array, slot, getattr(loaded, slot))


def save(fname: str, data: NDArray | Sequence[NDArray] | dict[str, NDArray]) -> None:
    """Write arrays to a file, whole or not at all.

    Parameters
    ----------
    fname : str
        A path, or a remote address with the extra ``remote`` installed. The format is that of ``.params``, and for ``.safetensors`` that of
        the package safetensors, where all arrays need names. After ``mx.util.set_version('2.0')`` files called ``.npz``, where arrays of a list are
        called ``arr_0``, ``arr_1``, ..., and ``.npy``, for a single array, have NumPy's formats.
    data : NDArray, list of NDArray or dict of str to NDArray

    Raises
    ------
    TypeError
        If `data` holds anything else.
    MXNetError
        If the file cannot be written. An existing file is then unchanged.

    Example
    -------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'arrays.params')
    >>> mx.nd.save(path, {'weight': mx.nd.ones((2, 2)), 'bias': mx.nd.zeros(2)})
    >>> sorted(mx.nd.load(path))
    ['bias', 'weight']
    """
    if isinstance(data, NDArray):
        data = [data]
    if isinstance(data, dict):
        names, arrays = list(data.keys()), list(data.values())
        if not all(isinstance(n, str) for n in names) or not all(isinstance(a, NDArray) for a in arrays):
            raise TypeError(f"save: a dict must have names as keys and NDArrays as values, received {type_names(names)} and {type_names(arrays)}")
    elif isinstance(data, (list, tuple)):
        names, arrays = [], list(data)
        if not all(isinstance(a, NDArray) for a in arrays):
            raise TypeError(f"save: a list must hold NDArrays only, received {type_names(arrays)}")
    else:
        raise ValueError(f"save: an NDArray, a list of them or a dict of them by name expected, received {type(data).__name__}")
    if (ending := _ending(fname)) in _OTHERS and (ending == ".safetensors" or util.version() == "2.0"):
        _OTHERS[ending](fname, names, arrays)
        return
    with files.atomic_write(fname) as f:
        f.write(struct.pack("<QQQ", _LIST_MAGIC, 0, len(arrays)))
        for a in arrays:
            for chunk in _array_chunks(a):
                f.write(chunk)
        f.write(struct.pack("<Q", len(names)))
        for name in names:
            encoded = name.encode()
            f.write(struct.pack("<Q", len(encoded)) + encoded)


def _ending(fname: Any) -> str:
    return os.path.splitext(os.fspath(fname))[1] if isinstance(fname, (str, os.PathLike)) else ""


def _save_npz(fname: str, names: list[str], arrays: list[NDArray]) -> None:
    from . import npz
    with files.atomic_write(fname) as f:
        npz.write(f, zip(names or [f"arr_{i}" for i in range(len(arrays))], arrays))


def _save_npy(fname: str, names: list[str], arrays: list[NDArray]) -> None:
    from . import npz
    if len(arrays) != 1 or names:
        raise ValueError(f"save: a file called .npy holds one array without a name, received {len(arrays)}; save several to a .npz file")
    with files.atomic_write(fname) as f:
        npz.write_array(f, arrays[0], fname)


def _save_safetensors(fname: str, names: list[str], arrays: list[NDArray]) -> None:
    from . import safetensors_file
    if arrays and not names:
        raise ValueError(f"save: arrays in {fname} need names, received {len(arrays)} without; save a dict")
    files.write_bytes(fname, safetensors_file.dump(dict(zip(names, arrays))))


_OTHERS = {".npz": _save_npz, ".npy": _save_npy, ".safetensors": _save_safetensors}  # formats besides MXNet's own


def load(fname: str) -> Any:
    """Read the arrays of a file: a list, or a dict where they have names.

    The format is detected from the content: MXNet's own, ``.npz``, or ``.npy``, which gives one array. The name of a file in the format
    of safetensors must end in ``.safetensors``.

    Raises
    ------
    MXNetError
        If the file cannot be read or is damaged; the text names the file and the place.

    Example
    -------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'arrays.params')
    >>> mx.nd.save(path, {'weight': mx.nd.ones((2, 2))})
    >>> mx.nd.load(path)['weight'].shape
    (2, 2)
    """
    if not isinstance(fname, str):
        raise TypeError(f"fname required to be a string, received {type(fname).__name__}")
    with files.reading(fname) as (file, size):
        begin = file.read(6)
        file.seek(0)
        if _ending(fname) == ".safetensors":
            from . import safetensors_file
            return safetensors_file.read(file, fname)
        if begin.startswith((b"PK\x03\x04", b"PK\x05\x06", b"\x93NUMPY")):
            from . import npz
            return npz.read_array(file, size, fname) if begin == npz.NPY_MAGIC else npz.read(file, size, fname)
        return _load(_Reader(file, size, fname))


def load_frombuffer(buf: bytes | bytearray | memoryview | str) -> Any:
    """Read arrays from the bytes of a file, as `load` does.

    Example
    -------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'arrays.params')
    >>> mx.nd.save(path, [mx.nd.ones((2, 2))])
    >>> with open(path, 'rb') as file:
    ...     arrays = mx.nd.load_frombuffer(file.read())
    >>> arrays[0].shape
    (2, 2)
    """
    if not isinstance(buf, (bytes, bytearray, memoryview, str)):
        raise TypeError(f"buf required to be a string or bytes, received {type(buf).__name__}")
    return _load(_in_memory(buf.encode("latin-1") if isinstance(buf, str) else buf, "buffer"))


def _in_memory(buffer: bytes | bytearray | memoryview, source: str) -> _Reader:
    return _Reader(io.BytesIO(buffer), len(memoryview(buffer).cast("B")), source)


def _load(r: _Reader) -> list[NDArray | None] | dict[str, NDArray | None]:
    if r.number("Q", "the header") != _LIST_MAGIC:
        r.offset = 0
        r.fail(f"the file does not start with {_LIST_MAGIC:#x}")
    r.number("Q", "the header")
    count = r.number("Q", "the number of arrays")
    if count > r.size:
        r.fail(f"the number of arrays, {count}, is more than the file can hold")
    arrays = [_read_array(r, i) for i in range(count)]
    num_names = r.number("Q", "the number of names")
    if num_names not in (0, count):
        r.fail(f"{num_names} names for {count} arrays")
    names = []
    for i in range(num_names):
        length = r.number("Q", f"the length of name {i}")
        try:
            names.append(r.take(length, f"name {i}").decode())
        except UnicodeDecodeError:
            r.fail(f"name {i} is not UTF-8")
    return dict(zip(names, arrays)) if names else arrays


__all__ = ["dump_array", "load", "load_frombuffer", "restore_array", "save"]
