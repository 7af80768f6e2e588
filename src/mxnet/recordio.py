"""RecordIO: files with a sequence of byte strings, and the image records in them.

A record is stored as one or several parts. Each part starts on a multiple of 4 bytes with two little-endian 32-bit words: the
magic number, then a word whose upper 3 bits are the kind of the part (0 whole, 1 first, 2 middle, 3 last) and whose other 29 bits
are the length. Parts are padded with zeros to a multiple of 4. The magic number never occurs inside a part at such a multiple: a
record that contains it there is split at that position, and the magic number itself is left out.
"""
import collections
import functools
import numbers
import os
import stat
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from . import opencv
from .base import MXNetError
from .files import FileError, Unfinished, at_the_end, begin, commit, is_remote, open_stream, recover, reported
from .image_header import decode

__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "pack", "pack_img", "unpack", "unpack_img"]

MAGIC = struct.pack("<I", 0xced7230a)
_PART = struct.Struct("<4sI")
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)
_LENGTH_BITS = 29
_LENGTH_MASK = (1 << _LENGTH_BITS) - 1
_ZEROS = b"\0\0\0"
# Bytes that are read at once if the size of the file is not known.
_PIECE = 1 << 20


def _aligned(length: int) -> int:
    return (length + 3) & ~3


def _part(kind: int, payload: bytes) -> bytes:
    return b"".join((MAGIC, struct.pack("<I", kind << _LENGTH_BITS | len(payload)), payload, _ZEROS[:-len(payload) % 4]))


def part_head(head: bytes) -> tuple[int, int]:
    """Return the kind of a part (0 to 7; 0 to 3 are valid) and its length, from its first 8 bytes."""
    word = _PART.unpack(head)[1]
    return word >> _LENGTH_BITS, word & _LENGTH_MASK


def _cuts(payload: bytes) -> Iterator[int]:
    """Yield the offsets of the magic number in `payload` that are multiples of 4."""
    at = payload.find(MAGIC)
    while at >= 0:
        if at % 4 == 0:
            yield at
            at += 3
        at = payload.find(MAGIC, at + 1)


def encode_record(payload: bytes | bytearray | memoryview) -> bytes:
    """Return the encoding of a record in a file.

    Raises
    ------
    MXNetError
        If the record is 512 MiB or longer, which the format cannot hold.
    """
    payload = bytes(payload)
    if len(payload) > _LENGTH_MASK:
        raise MXNetError(f"RecordIO holds records of less than 2**29 bytes, received one of {len(payload)}; split it")
    cuts = list(_cuts(payload))
    if not cuts:
        return _part(_WHOLE, payload)
    starts = [0, *(at + 4 for at in cuts)]
    ends = [*cuts, len(payload)]
    kinds = [_FIRST, *[_MIDDLE] * (len(cuts) - 1), _LAST]
    return b"".join(_part(kind, payload[start:end]) for kind, start, end in zip(kinds, starts, ends, strict=True))


def read_record(read: Callable[[int, int], bytes], offset: int, name: str) -> tuple[bytes | None, int]:
    """Read the record at `offset`.

    Parameters
    ----------
    read : callable
        ``read(offset, length)`` returns the bytes there, fewer at the end of the file.
    offset : int
    name : str
        The name of the file in errors.

    Returns
    -------
    payload : bytes or None
        None at the end of the file.
    offset : int
        The offset of the next record.

    Raises
    ------
    MXNetError
        If there is no complete record; the text names the file and the offset.
    """
    pieces: list[bytes] = []
    start = offset
    while True:
        head = read(offset, _PART.size)
        if not head and not pieces:
            return None, offset
        if len(head) < _PART.size:
            raise MXNetError(f"{name}: truncated RecordIO file: {len(head)} of the 8 bytes of a record's header at offset {offset}")
        kind, length = part_head(head)
        if head[:4] != MAGIC:
            raise MXNetError(f"{name}: invalid RecordIO file: expected the magic number {MAGIC.hex()} at offset {offset}, found {head[:4].hex()}; "
                             "the file is damaged, or its index belongs to another file")
        if kind > _LAST or (kind in (_WHOLE, _FIRST)) == bool(pieces):
            raise MXNetError(f"{name}: invalid RecordIO file: a part of kind {kind} at offset {offset} "
                             + (f"inside the record that starts at offset {start}" if pieces else "where a record should start"))
        payload = read(offset + _PART.size, _aligned(length))
        if len(payload) < _aligned(length):
            raise MXNetError(f"{name}: truncated RecordIO file: the part at offset {offset} should have {_aligned(length)} bytes "
                             f"and the file ends after {len(payload)} of them")
        offset += _PART.size + len(payload)
        if kind == _WHOLE:
            return payload[:length] if len(payload) != length else payload, offset
        pieces += [payload[:length], MAGIC]
        if kind == _LAST:
            return b"".join(pieces[:-1]), offset


class RecordReader:
    """Reads a RecordIO stream; it never requests more bytes than the size of the file."""

    def __init__(self, uri: str | os.PathLike[str]) -> None:
        self.uri = str(uri)
        self.stream = open_stream(uri)
        self.offset = 0
        self._following, self._number = 0, 0  # offset and number of the next record; -1 if `offset` was changed from outside
        self._position = 0
        self._regular = not is_remote(uri) and stat.S_ISREG(os.fstat(self.stream.fileno()).st_mode)
        self._size = os.fstat(self.stream.fileno()).st_size if self._regular else None  # not known for pipes and remote files

    def read_at(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on, fewer at the end of the file."""
        if self._size is not None and offset + length > self._size:
            # Another process may still append to the file.
            self._size = os.fstat(self.stream.fileno()).st_size
            length = max(0, min(length, self._size - offset))
        with reported(self.uri, f"read at offset {offset} of"):
            if offset != self._position:
                self.stream.seek(offset)
                self._position = offset
            data = self.stream.read(length) if self._regular else self._read_pieces(length)
        self._position += len(data)
        return data

    def _read_pieces(self, length: int) -> bytes:
        pieces = []
        while length:
            piece = self.stream.read(min(length, _PIECE))
            if not piece:
                break
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)

    def next(self) -> bytes | None:
        """Return the record at `offset`, or None at the end, and advance `offset`."""
        if self.offset != self._following:
            self._number = -1 if self.offset else 0
        try:
            payload, self.offset = read_record(self.read_at, self.offset, self.uri)
        except FileError:
            raise
        except MXNetError as error:
            raise error if self._number < 0 else MXNetError(f"{error}; it is record {self._number} of the file, counted from 0") from None
        self._following = self.offset
        self._number += self._number >= 0
        return payload

    def close(self) -> None:
        """Close the file."""
        self.stream.close()


def _died() -> bool:
    """Return True if the program is exiting because of an uncaught exception."""
    return getattr(sys, "last_value", None) is not None and not hasattr(sys, "ps1")


def _end(*unfinished: Unfinished) -> None:
    """Finish a writer that was not closed: commit it, or discard it if it has no record or an uncaught exception ends the program."""
    if _died() or not unfinished[0].stream.tell():
        for each in unfinished:
            each.discard()
    else:
        commit(*unfinished)


class MXRecordIO:
    """A RecordIO file, read or written from its beginning to its end.

    `close` replaces an existing file of that name by the written one; the end of the object or of the program closes it as well. Until then the
    old file is unchanged, and it is kept if the program is killed or ends with an exception. Before `close` only this process can read the
    records.

    Parameters
    ----------
    uri : str
        Path of the file; ``s3://`` and the like with fsspec.
    flag : str
        ``'w'`` to write a new file, ``'r'`` to read.

    Raises
    ------
    MXNetError
        If the file cannot be opened.

    Example
    -------
    >>> import mxnet as mx, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'some.rec')
    >>> record = mx.recordio.MXRecordIO(path, 'w')
    >>> for i in range(3):
    ...     record.write(b'record_%d' % i)
    >>> record.close()
    >>> mx.recordio.MXRecordIO(path, 'r').read()
    b'record_0'
    """

    def __init__(self, uri: str | os.PathLike[str], flag: str) -> None:
        self.uri = os.fspath(uri)
        self.flag = flag
        self.pid: int | None = None
        self.is_open = False
        self._lock = threading.RLock()
        self.open()

    def open(self) -> None:
        """Open the file; done by the constructor."""
        if self.flag == "w":
            self._end = 0
            self._unfinished: tuple[Unfinished, ...] = (begin(self.uri),)
            self._writer = self._unfinished[0].stream
            self._guard(functools.partial(_end, *self._unfinished))
        elif self.flag == "r":
            self._reader = RecordReader(self.uri)
            self._guard(self._reader.close)
        else:
            raise ValueError(f"Invalid flag {self.flag}: expected 'r' to read or 'w' to write")
        self.writable = self.flag == "w"
        self.pid = os.getpid()
        self.is_open = True

    def _guard(self, action: Callable[[], object]) -> None:
        """Ensure that the files are finished at the end of the object or of the program. A ``__del__`` would also run for closed ones, and
        Python loses a Ctrl-C at its start."""
        self._finalizer = weakref.finalize(self, at_the_end, action)

    def __enter__(self) -> "MXRecordIO":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None and self.is_open and self.writable:
            self._finalizer.detach()
            for each in self._unfinished:
                each.discard()
            self.is_open, self.pid = False, None
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.is_open and self.writable:
            raise MXNetError(f"a MXRecordIO that writes cannot be pickled ({self.uri}): its copy would empty the file; close it first")
        state = self.__dict__.copy()
        for name in ("_lock", "_reader", "_writer", "_unfinished", "_finalizer"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        self._lock = threading.RLock()
        was_open, self.is_open = self.is_open, False
        if was_open:
            self.open()

    def _check_pid(self, allow_reset: bool = False) -> None:
        """Reopen the file in a forked process, which shares the position with its parent, or raise an error."""
        if self.pid == os.getpid():
            return
        if not allow_reset:
            raise RuntimeError(f"Forbidden operation in multiple processes: {self.uri} was opened in process {self.pid}; open it in this one")
        self.reset()

    def _require(self, writable: bool) -> None:
        if not self.is_open:
            raise MXNetError(f"{self.uri} is closed; call reset() to open it again")
        if self.writable != writable:
            raise MXNetError(f"{self.uri} is open for {'writing' if self.writable else 'reading'}; "
                             f"open it with flag '{'w' if writable else 'r'}' for this")

    def close(self) -> None:
        """Close the file. A written file is completed and replaces the existing one."""
        if not self.is_open:
            return
        self.is_open = False
        self.pid = None
        self._finalizer.detach()
        if self.writable:
            commit(*self._unfinished)
        else:
            self._reader.close()

    def reset(self) -> None:
        """Return to the first record; a file that is being written is closed, and a new one is begun."""
        self.close()
        self.open()

    def write(self, buf: bytes | bytearray | memoryview) -> None:
        """Append a record.

        Parameters
        ----------
        buf : bytes
            Any object that exposes bytes.
        """
        self._require(writable=True)
        self._check_pid()
        if isinstance(buf, str):
            raise TypeError("a record is a bytes object, received str; encode it, for instance with .encode('utf-8')")
        encoded = encode_record(buf)
        with self._lock:
            with reported(self.uri, "write"):
                self._writer.write(encoded)
            self._end += len(encoded)

    def read(self) -> bytes | None:
        """Return the next record as bytes, or None after the last one.

        Raises
        ------
        MXNetError
            If the file is damaged; the text names the offset.
        """
        self._require(writable=False)
        self._check_pid()
        with self._lock:
            return self._reader.next()


class MXIndexedRecordIO(MXRecordIO):
    """A RecordIO file with an index, so that records can be read in any order.

    The index is a text file: a line ``key<TAB>offset`` for each record. Several threads may call `read_idx` on one object.

    Parameters
    ----------
    idx_path : str
        Path of the index.
    uri : str
        Path of the records.
    flag : str
        ``'w'`` or ``'r'``.
    key_type : type
        Converts the text of a key to the key.

    Raises
    ------
    MXNetError
        If a file cannot be opened, or a line of the index is invalid.

    Example
    -------
    >>> import mxnet as mx, os, tempfile
    >>> base = os.path.join(tempfile.mkdtemp(), 'some')
    >>> record = mx.recordio.MXIndexedRecordIO(base + '.idx', base + '.rec', 'w')
    >>> for i in range(5):
    ...     record.write_idx(i, b'record_%d' % i)
    >>> record.close()
    >>> mx.recordio.MXIndexedRecordIO(base + '.idx', base + '.rec', 'r').read_idx(3)
    b'record_3'
    """

    def __init__(self, idx_path: str | os.PathLike[str], uri: str | os.PathLike[str], flag: str, key_type: Callable[[Any], Any] = int) -> None:
        self.idx_path = os.fspath(idx_path)
        self.idx: dict[Any, int] = {}
        self.keys: list[Any] = []
        self.key_type = key_type
        self.fidx: IO[bytes] | None = None  # the index file in write mode
        super().__init__(uri, flag)

    def open(self) -> None:
        """Open both files; in read mode the index is loaded."""
        if self.flag == "r":
            recover(self.uri, self.idx_path)
        super().open()
        self.idx = {}
        self.keys = []
        try:
            if self.writable:
                index = begin(self.idx_path)
                self._finalizer.detach()
                self._unfinished, self.fidx = (*self._unfinished, index), index.stream
                self._guard(functools.partial(_end, *self._unfinished))
            else:
                for key, offset in read_index(self.idx_path, self.key_type):
                    self.idx[key] = offset
                    self.keys.append(key)
        except BaseException as error:
            self.__exit__(type(error))
            raise

    def close(self) -> None:
        """Close both files."""
        self.fidx = None
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "fidx": None}

    def seek(self, idx: Any) -> None:
        """Set the position to the record with key `idx`, for `read`."""
        self._require(writable=False)
        self._check_pid(allow_reset=True)
        if idx not in self.idx:
            raise KeyError(f"{self.idx_path} has no record with key {idx!r}")
        self._reader.offset = self.idx[idx]

    def tell(self) -> int:
        """Return the offset at which the next record will be written, in bytes."""
        self._require(writable=True)
        return self._end

    def read_idx(self, idx: Any) -> bytes:
        """Return the record with key `idx`, as bytes."""
        with self._lock:
            self.seek(idx)
            try:
                payload = self.read()
            except FileError:
                raise
            except MXNetError as error:
                raise MXNetError(f"{error}; {self.idx_path} places the record with key {idx!r} at offset {self.idx[idx]}") from None
        if payload is None:
            raise MXNetError(f"{self.uri} ends before offset {self.idx[idx]}, where {self.idx_path} places the record with key {idx!r}")
        return payload

    def write_idx(self, idx: Any, buf: bytes | bytearray | memoryview) -> None:
        """Append a record under the key `idx`."""
        self._require(writable=True)
        if self.fidx is None:
            raise MXNetError(f"{self.idx_path} is closed; call reset() to open it again")
        key = self.key_type(idx)
        with self._lock:
            offset = self.tell()
            self.write(buf)
            self.fidx.write(f"{key}\t{offset}\n".encode())
            self.idx[key] = offset
            self.keys.append(key)


def read_index(path: str | os.PathLike[str], key_type: Callable[[Any], Any] = int) -> list[tuple[Any, int]]:
    """Return the (key, offset) pairs of an index file, in its order.

    Raises
    ------
    MXNetError
        If the file cannot be read or a line has another form; the text names the file and the line.
    """
    with open_stream(path) as stream, reported(path):
        try:
            lines = stream.read().decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise MXNetError(f"{path} is not an index: byte {error.start} is not UTF-8 text") from None
    pairs = []
    for number, line in enumerate(lines, 1):
        fields = line.strip().split("\t")
        if fields == [""]:
            continue
        try:
            key, offset = key_type(fields[0]), int(fields[1])
            if not 0 <= offset < 1 << 63:
                raise ValueError(offset)
        except (ValueError, IndexError):
            raise MXNetError(f"{path}, line {number}: expected a key, a tab and an offset in bytes, found {line[:80]!r}") from None
        pairs.append((key, offset))
    return pairs


# Also defined under its own name, which pickle looks up.
HEADER = collections.namedtuple("HEADER", ["flag", "label", "id", "id2"])
HEADER.__doc__ = """The header of an image record, which precedes the image.

Parameters
----------
flag : int
    The number of labels that follow the header, 0 if the only one is in it; `pack` sets it.
label : float or array of float
id : int
    The number of the image.
id2 : int
    Usually 0.

Example
-------
>>> mx.recordio.IRHeader(flag=0, label=7.0, id=1, id2=0).label
7.0
"""
IRHeader = HEADER
_IR_FORMAT = "IfQQ"
_HEADER = struct.Struct("<" + _IR_FORMAT)


def pack(header: HEADER, s: bytes) -> bytes:
    """Prepend a header to a byte string.

    Parameters
    ----------
    header : IRHeader
        Or a tuple of its four fields; its `flag` is replaced.
    s : bytes

    Example
    -------
    >>> import mxnet as mx
    >>> packed = mx.recordio.pack(mx.recordio.IRHeader(0, [1, 2], 2574, 0), b'image')
    >>> mx.recordio.unpack(packed)
    (HEADER(flag=2, label=array([1., 2.], dtype=float32), id=2574, id2=0), b'image')
    """
    header = IRHeader(*header)
    if isinstance(header.label, numbers.Number):
        return _HEADER.pack(0, *header[1:]) + s
    label = np.asarray(header.label, dtype="<f4")
    return b"".join((_HEADER.pack(label.size, 0, header.id, header.id2), label.tobytes(), s))


def unpack(s: Any) -> tuple[HEADER, Any]:
    """Split a packed record into header and content.

    Returns
    -------
    header : IRHeader
    s : bytes
        The content after the header.

    Raises
    ------
    MXNetError
        If the record is shorter than declared in its header.

    Example
    -------
    >>> packed = mx.recordio.pack(mx.recordio.IRHeader(0, [1, 2], 5, 0), b'content')
    >>> header, content = mx.recordio.unpack(packed)
    >>> header.label, header.id, content
    (array([1., 2.], dtype=float32), 5, b'content')
    """
    if len(s) < _HEADER.size:
        raise MXNetError(f"an image record starts with a header of {_HEADER.size} bytes, received {len(s)} bytes")
    header = IRHeader(*_HEADER.unpack_from(s))
    end = _HEADER.size + 4 * header.flag
    if not header.flag:
        return header, s[end:]
    if len(s) < end:
        raise MXNetError(f"the header of the image record announces {header.flag} labels, which need {end} bytes; it has {len(s)}")
    return header._replace(label=np.frombuffer(s, "<f4", header.flag, _HEADER.size).copy()), s[end:]


def unpack_img(s: bytes, iscolor: int = -1) -> tuple[HEADER, np.ndarray | None]:
    """Split off the header of a packed record, and decode the image after it.

    Parameters
    ----------
    s : bytes
        From ``MXRecordIO.read``.
    iscolor : int
        As in ``cv2.imdecode``: 1 for colour, 0 for gray, -1 as stored.

    Returns
    -------
    header : IRHeader
    img : numpy.ndarray or None
        uint8, (height, width, 3) in BGR order or (height, width); None if what follows is no image.

    Raises
    ------
    MXNetError
        If the record is shorter than declared in its header, or the image has more pixels than ``MXNET_IMAGE_MAX_PIXELS``.

    Example
    -------
    >>> import numpy as np
    >>> packed = mx.recordio.pack_img(mx.recordio.IRHeader(0, 7.0, 1, 0), np.zeros((4, 6, 3), np.uint8), img_fmt='.png')
    >>> header, image = mx.recordio.unpack_img(packed, iscolor=0)
    >>> image.shape
    (4, 6)
    """
    header, s = unpack(s)
    return header, decode(np.frombuffer(s, np.uint8), iscolor, "the image of a record")


def pack_img(header: HEADER, img: np.ndarray, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """Encode an image and prepend a header.

    Parameters
    ----------
    header : IRHeader
    img : numpy.ndarray
        uint8, (height, width, 3) in BGR order or (height, width).
    quality : int
        1 to 100 for JPEG, 1 to 9 (compression) for PNG.
    img_fmt : str
        ``'.jpg'``, ``'.png'`` or another ending that OpenCV can write.

    Raises
    ------
    MXNetError
        If the image cannot be encoded.

    Example
    -------
    >>> import numpy as np
    >>> packed = mx.recordio.pack_img(mx.recordio.IRHeader(0, 7.0, 1, 0), np.zeros((4, 6, 3), np.uint8), img_fmt='.png')
    >>> header, image = mx.recordio.unpack_img(packed)
    >>> header.label, image.shape
    (7.0, (4, 6, 3))
    """
    cv2 = opencv.load()
    options = {".jpg": [cv2.IMWRITE_JPEG_QUALITY, quality], ".jpeg": [cv2.IMWRITE_JPEG_QUALITY, quality],
               ".png": [cv2.IMWRITE_PNG_COMPRESSION, min(quality, 9)]}
    try:
        encoded, buf = cv2.imencode(img_fmt, img, options.get(img_fmt.lower(), []))
    except cv2.error as error:
        raise MXNetError(f"cannot encode the image as {img_fmt}: {error.err or error}") from error
    if not encoded:
        raise MXNetError(f"cannot encode an image of shape {getattr(img, 'shape', None)} as {img_fmt}")
    return pack(header, buf.tobytes())
