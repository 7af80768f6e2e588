"""Reading and writing whole files: local ones through the system, ``s3://`` and the like through fsspec (extra ``remote``)."""
import contextlib
import errno
import io
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

from .base import MXNetError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_UNFINISHED = ".unfinished"  # how the names of files end that are being written


def is_remote(path: str | os.PathLike[str]) -> bool:
    """True if the path names a file system other than the local one."""
    return "://" in str(path) and not str(path).startswith("file://")


def _local(path: str | os.PathLike[str]) -> str:
    path = os.fspath(path)
    return path[len("file://"):] if path.startswith("file://") else path


def _fsspec(path: str | os.PathLike[str]) -> Any:
    try:
        import fsspec
    except ImportError:
        raise MXNetError(f"{path}: reading and writing remote paths needs fsspec; install it with: pip install 'remex[remote]'") from None
    return fsspec


@contextlib.contextmanager
def _reported(path: str | os.PathLike[str], action: str = "read") -> Iterator[None]:
    """Say which file could not be read or written."""
    try:
        yield
    except OSError as error:
        raise MXNetError(f"cannot {action} {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[tuple[IO[bytes], int]]:
    """A file to read from, and its size in bytes: a local one a piece at a time, a remote one (or a pipe) from memory.

    Raises
    ------
    MXNetError
        If it cannot be read; the text names the file.
    """
    if is_remote(path) or not os.path.isfile(_local(path)):
        content = read_bytes(path)
        yield io.BytesIO(content), len(content)
        return
    with _reported(path):
        f = open(_local(path), "rb")
    with f:
        yield f, os.fstat(f.fileno()).st_size


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file.

    Raises
    ------
    MXNetError
        If it cannot be read; the text names the file.
    """
    with _reported(path), _fsspec(path).open(path, "rb") if is_remote(path) else open(_local(path), "rb") as f:
        return f.read()


def read_text(path: str | os.PathLike[str]) -> str:
    """The content of a UTF-8 file; errors as in `read_bytes`."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise MXNetError(f"{path} is not a text file: byte {error.start} is not UTF-8") from None


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file to write; it takes the place of `path` when the block ends without an error, and leaves no trace otherwise.

    The new file has the mode and the owner of the one that it replaces; a symbolic link stays, and what it leads to is replaced. What is no
    regular file (a device, a pipe), has an owner whom we can't give to another file, or stands in a folder that takes no new files is written
    where it is. What writers of this name left behind when they were killed is removed.

    Raises
    ------
    MXNetError
        If the file cannot be written; the text names it.
    """
    if is_remote(path):
        # Object stores show an object when its upload is complete; fsspec's transaction discards it on an error.
        with _fsspec(path).open(path, "wb") as f:
            yield f
        return
    path = _local(path)
    try:
        target, before = _target(path)
        made = None if before is not None and not stat.S_ISREG(before.st_mode) else _temporary(target, before)
        f = open(path, "wb") if made is None else os.fdopen(made[0], "wb")
    except OSError as error:
        raise MXNetError(f"cannot write {path}: {error.strerror or error}") from error
    if made is None:
        with _reported(path, "write"), f:
            yield f
        return
    handle, temporary = made
    lock = os.dup(handle)  # holds the lock until the file has its name
    try:
        with f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise MXNetError(f"cannot write {path}: {error.strerror or error}") from error
        raise
    finally:
        os.close(lock)


def _target(path: str) -> tuple[str, os.stat_result | None]:
    """The file that `path` leads to, and its status; None if there is none yet."""
    try:
        before = os.stat(path)
    except FileNotFoundError:
        return os.path.realpath(path), None  # maybe where a link leads to
    if stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return os.path.realpath(path), before


def _temporary(target: str, before: os.stat_result | None) -> tuple[int, str] | None:
    """A new file beside `target`, locked, as (descriptor, path); None if `target` must be written in place."""
    folder, name = os.path.split(target)
    # The name may be as long as names can be.
    prefix = os.fsdecode(b".%b.%08x." % (os.fsencode(name)[:100], zlib.crc32(os.fsencode(name))))
    if before is not None:
        try:
            if not os.path.samestat(os.stat(target), before):
                return None
        except FileNotFoundError:  # open, and deleted: /dev/stdout may lead to such a file
            return None
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    _remove_stale(folder, prefix)
    while True:
        try:
            handle, temporary = tempfile.mkstemp(prefix=prefix, suffix=_UNFINISHED, dir=folder)
        except PermissionError:
            if before is None:
                raise
            return None
        try:
            if not (_lock(handle) and os.path.exists(temporary)):  # another writer took it for a stale one
                os.close(handle)
                continue
            if _adopt(handle, before):
                return handle, temporary
        except BaseException:
            os.close(handle)
            os.unlink(temporary)
            raise
        os.close(handle)
        os.unlink(temporary)
        return None


def _adopt(handle: int, before: os.stat_result | None) -> bool:
    """Give a new file the owner and mode of the one that it will replace, or else what open() would have given; False if we may not."""
    if before is None:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    else:
        mode, now = stat.S_IMODE(before.st_mode), os.fstat(handle)
        if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
            try:
                os.fchown(handle, before.st_uid, before.st_gid)
            except OSError:
                return False
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)
    return True


def _lock(handle: int) -> bool:
    """Lock a file; False if another has the lock. Where files can't be locked it succeeds."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _remove_stale(folder: str, prefix: str) -> None:
    """Remove the files of writers that were killed: those that nobody has locked."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for name in os.listdir(folder or "."):
            if not (name.startswith(prefix) and name.endswith(_UNFINISHED)):
                continue
            with contextlib.suppress(OSError):
                left = os.path.join(folder, name)
                handle = os.open(left, os.O_RDWR | os.O_NOFOLLOW)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(left)
                finally:
                    os.close(handle)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all."""
    with atomic_write(path) as f:
        f.write(content)
