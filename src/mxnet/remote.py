"""Remote files, by fsspec: ``s3://``, ``gs://``, ``hdfs://``, ``http(s)://`` with the extra ``remote``, and its other protocols."""
import collections
import concurrent.futures
import io
import os
import tempfile
from collections.abc import Callable
from typing import IO, Any

from .base import MXNetError

# The packages that protocols need besides fsspec.
PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hdfs": "pyarrow", "http": "aiohttp", "https": "aiohttp"}
_INSTALL = "install it with: pip install 'remexnet[remote]'"
BLOCK_SIZE = 1 << 20  # bytes of a request
BLOCKS_AHEAD = 16  # the most blocks that are prefetched
_THREADS = 8
BLOCKS_BEHIND = 4  # blocks before the one read last that stay in the cache


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Return True if the path is on a file system other than the local one."""
    return "://" in str(path) and not str(path).startswith("file://")


def fsspec_for(path: str | os.PathLike[str]) -> Any:
    """Return the module fsspec.

    Raises
    ------
    MXNetError
        If it is not installed; the text has the command to install it.
    """
    try:
        import fsspec
    except ImportError:
        raise MXNetError(f"{path}: reading and writing remote paths needs fsspec; {_INSTALL}") from None
    return fsspec


def explained(path: str | os.PathLike[str], error: Exception) -> str:
    """Return the text for an error of fsspec; for an ImportError it names the missing package."""
    protocol = str(path).partition("://")[0]
    if isinstance(error, ImportError) and is_remote(path):
        known = protocol in PACKAGES
        return (f"{protocol}:// needs {'the package ' + PACKAGES[protocol] if known else 'a package'}, and it cannot be imported ({error}); "
                f"{_INSTALL if known else 'install it with pip'}")
    return str(error) or type(error).__name__


def open_reading(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a remote file for reading with random access. Sequential reads prefetch several blocks at a time.

    If the size is unknown or the server does not support range requests, the file is copied to a local temporary one. Errors of fsspec and its
    libraries are not converted.
    """
    files, name = fsspec_for(path).url_to_fs(os.fspath(path))
    size = files.info(name).get("size")
    if size is None or not _gives_parts(files, name, size):
        return _copied(files, name)
    return io.BufferedReader(ReadAhead(lambda begin, end: files.cat_file(name, begin, end), size, str(path)), 1 << 16)


def _gives_parts(files: Any, name: str, size: int) -> bool:
    """Return True if the server supports range requests. Only HTTP servers may not."""
    if "http" not in files.protocol or size < 2:
        return True
    try:
        with files.open(name, size=size, cache_type="none") as f:
            f.seek(1)
            return len(f.read(1)) == 1
    except ValueError:
        return False


def _copied(files: Any, name: str) -> IO[bytes]:
    handle, path = tempfile.mkstemp(prefix="remex-")
    try:
        os.close(handle)
        files.get_file(name, path)
        return open(path, "rb")
    finally:
        os.unlink(path)


class ReadAhead(io.RawIOBase):
    """A file whose blocks are prefetched by several threads: as many as were read sequentially just before.

    Parameters
    ----------
    fetch : callable
        ``fetch(begin, end)`` returns these bytes; called from several threads.
    size : int
        The size of the file in bytes.
    name : str
        The name of the file in errors.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int, name: str) -> None:
        self._fetch, self._size, self._name = fetch, size, name
        self._at = 0
        self._pid = os.getpid()
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self.blocks: collections.OrderedDict[int, concurrent.futures.Future[bytes]] = collections.OrderedDict()
        self._last, self._run = -2, 0  # the block read last, and the length of the sequential run before it

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the offset, and return it from the beginning of the file."""
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence])
        return self._at

    def tell(self) -> int:
        """Return the offset."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes, up to the end of a block; return their number."""
        if self._at >= self._size:
            return 0
        number, start = divmod(self._at, BLOCK_SIZE)
        content = self._block(number)[start:start + len(buffer)]
        buffer[:len(content)] = content
        self._at += len(content)
        return len(content)

    def _block(self, number: int) -> memoryview:
        if number != self._last:
            self._run = self._run + 1 if number == self._last + 1 else 0
            self._last = number
            for ahead in range(number, number + 1 + min((1 << min(self._run, 10)) - 1, BLOCKS_AHEAD)):
                self._ask(ahead)
        self._ask(number)
        for old in [n for n in self.blocks if n < number - BLOCKS_BEHIND or n > number + BLOCKS_AHEAD]:
            self.blocks.pop(old).cancel()
        return memoryview(self.blocks[number].result())

    def _ask(self, number: int) -> None:
        """Request a block unless it is requested already; a failed request is repeated."""
        begin = number * BLOCK_SIZE
        waiting = self.blocks.get(number)
        if begin >= self._size or waiting is not None and not (waiting.done() and (waiting.cancelled() or waiting.exception())):
            return
        if self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(_THREADS, "mxnet-remote")
        self.blocks[number] = self._pool.submit(self._fetched, begin, min(begin + BLOCK_SIZE, self._size))

    def _fetched(self, begin: int, end: int) -> bytes:
        content = self._fetch(begin, end)
        if len(content) != end - begin:
            raise MXNetError(f"{self._name} changed while it was read: bytes {begin} to {end} were asked for, of {self._size}, "
                             f"and {len(content)} came")
        return content

    def close(self) -> None:
        """Stop fetching."""
        if not self.closed and self._pool is not None and self._pid == os.getpid():  # a forked process does not have the threads
            self._pool.shutdown(wait=False, cancel_futures=True)
        self.blocks.clear()
        super().close()
