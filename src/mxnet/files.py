"""Reading and atomic writing of files: local ones through the system, ``s3://`` and the like through fsspec (extra ``remote``)."""
import _thread
import contextlib
import errno
import io
import os
import re
import shutil
import signal
import stat
import tempfile
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterator
from typing import IO

from .base import MXNetError
from .interrupts import deferred
from .remote import explained, fsspec_for, is_remote, open_reading

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_UNFINISHED = ".unfinished"  # the suffix of files that are being written
_READY = "ready"  # the suffix of a complete file of a `commit` whose first file has not been renamed yet
_IN_MEMORY = 64 << 20  # bytes of a remote file that are buffered in memory; more go to a temporary file
_PIECE = 1 << 20


class FileError(MXNetError, OSError):
    """A file cannot be read or written: an MXNetError, and the OSError that MXNet raises where it calls Python's own ``open``."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingFileError(FileError, FileNotFoundError):
    """There is no such file."""


def _local(path: str | os.PathLike[str]) -> str:
    path = os.fspath(path)
    return path[len("file://"):] if path.startswith("file://") else path


def failures(path: str | os.PathLike[str]) -> type[Exception] | tuple[type[Exception], ...]:
    """Return the exceptions that reading or writing the file may raise: any for remote files, whose service libraries have errors of their own."""
    return Exception if is_remote(path) else (OSError, ValueError)


@contextlib.contextmanager
def reported(path: str | os.PathLike[str], action: str = "read") -> Iterator[None]:
    """Convert errors of a ``with`` block to a `FileError` with the name of the file."""
    try:
        yield
    except MXNetError:
        raise
    except failures(path) as error:
        raise _failure(path, action, error) from error


def _failure(path: str | os.PathLike[str], action: str, error: Exception) -> FileError:
    kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
    made = kind(f"cannot {action} {os.fspath(path)!s}: {getattr(error, 'strerror', None) or explained(path, error)}")
    made.errno = getattr(error, "errno", None)
    return made


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[tuple[IO[bytes], int]]:
    """Open a file for reading, and yield it with its size in bytes. A remote file or a pipe is read into memory first.

    Raises
    ------
    FileError
        If it cannot be read; the text names the file.
    """
    if is_remote(path) or not os.path.isfile(_local(path)):
        content = read_bytes(path)
        yield io.BytesIO(content), len(content)
        return
    with reported(path):
        f = open(_local(path), "rb")
    with f:
        yield f, os.fstat(f.fileno()).st_size


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file.

    Raises
    ------
    FileError
        If it cannot be read; the text names the file.
    """
    with reported(path), fsspec_for(path).open(path, "rb") if is_remote(path) else open(_local(path), "rb") as f:
        return f.read()


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the content of a UTF-8 file; errors as in `read_bytes`."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise MXNetError(f"{path} is not a text file: byte {error.start} is not UTF-8") from None


def open_stream(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading; if this process is writing it (see `Unfinished`), the content written so far.

    Raises
    ------
    FileError
        If it cannot be opened; the text names the file.
    """
    with reported(path, "open"):
        if is_remote(path):
            return open_reading(path)
        return open(current(_local(path)), "rb")


# -- writing ---------------------------------------------------------------------------------------------------------

_writing: "weakref.WeakValueDictionary[str, Unfinished]" = weakref.WeakValueDictionary()  # by target


def current(path: str) -> str:
    """Return the path to read a local file from: its temporary file while this process is writing it, else `path`."""
    if not _writing:
        return path
    unfinished = _writing.get(os.path.realpath(path))
    if unfinished is None or unfinished.pid != os.getpid() or unfinished.temporary is None:
        return path
    unfinished.stream.flush()
    return unfinished.temporary


class Unfinished:
    """A local file that is being written to a temporary file; `commit` moves it to `path`, `discard` deletes it.

    The new file has the mode and the owner of the replaced one; a symbolic link is kept, and its target is replaced. These are written in place:
    devices and pipes, files whose owner can't be given to a new file, and files in folders without write permission. Temporary files of killed
    writers of the same name are removed.

    Attributes
    ----------
    stream : binary file
    temporary : str or None
        The path of the temporary file; None if the file is written in place, or finished.

    Raises
    ------
    FileError
        If the file cannot be written; the text names it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self.pid = _local(path), os.getpid()
        self.temporary: str | None = None
        self._lock: IO[bytes] | None = None
        with reported(self.path, "write"):
            self.target, before = _target(self.path)
            try:
                if before is None or stat.S_ISREG(before.st_mode):
                    with deferred():  # a Ctrl-C would leak the file or a descriptor
                        self._begin(before)
                if self.temporary is None:
                    self.stream: IO[bytes] = open(self.path, "wb", _PIECE)
                _writing[self.target] = self
            except BaseException:
                self.discard()
                raise

    def _begin(self, before: os.stat_result | None) -> None:
        """Open a temporary file beside the target if that is possible, else the target."""
        made = _temporary(self.target, before)
        if made is not None:
            self.stream, self.temporary = os.fdopen(made[0], "wb", _PIECE), made[1]
            self._lock = io.FileIO(os.dup(made[0]))  # held until the file is renamed

    def finish(self) -> None:
        """Flush the content and sync it to the disk."""
        with reported(self.path, "write"):
            self.stream.flush()
            if self.temporary is not None:
                os.fsync(self.stream.fileno())
            self.stream.close()

    def rename(self, name: str | None = None) -> None:
        """Rename the temporary file to the target, or to an intermediate name."""
        if self.temporary is None:
            return
        with reported(self.path, "write"):
            os.replace(self.temporary, name or self.target)
        self.temporary = name
        if name is None:
            self._release()

    def commit(self) -> None:
        """Move the file to its target; see the function `commit`."""
        commit(self)

    def discard(self) -> None:
        """Close the file and delete its temporary file; content that was written in place stays."""
        if self.pid != os.getpid():
            self._forget()
        with contextlib.suppress(OSError, ValueError, AttributeError):  # if it was never opened
            self.stream.close()
        if self.temporary is not None and self.pid == os.getpid():
            with contextlib.suppress(OSError):
                os.unlink(self.temporary)
        self.temporary = None
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
        if _writing.get(self.target) is self:
            del _writing[self.target]

    def _forget(self) -> None:
        """Drop the buffered content in a forked process: the parent writes it."""
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as null:
            os.dup2(null.fileno(), self.stream.fileno())


class Sent(Unfinished):
    """A remote file that is uploaded while it is written; object stores show it when it is complete."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = self.target = os.fspath(path)
        self.pid, self.temporary, self._lock = os.getpid(), None, None
        with reported(path, "write"):
            self.stream = fsspec_for(path).open(path, "wb").open()

    def discard(self) -> None:
        """Cancel the upload."""
        if not self.stream.closed:
            with contextlib.suppress(Exception):
                self.stream.discard()  # type: ignore[attr-defined]  # of fsspec's files


def begin(path: str | os.PathLike[str]) -> Unfinished:
    """Begin to write a file, local or remote."""
    return Sent(path) if is_remote(path) else Unfinished(path)


def at_the_end(action: Callable[[], object]) -> None:
    """Run the action of a ``__del__``. Python would lose a Ctrl-C in it; the signal is raised again when the action has returned."""
    try:
        action()
    except KeyboardInterrupt:
        with contextlib.suppress(RuntimeError):  # the interpreter starts no thread at its exit
            _thread.start_new_thread(_interrupt, ())


def _interrupt() -> None:
    time.sleep(0.02)
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]  # the main thread has started
    else:
        _thread.interrupt_main()


def _ready(target: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, _prefix(name) + _READY)


def commit(first: Unfinished, *others: Unfinished) -> None:
    """Move several files to their targets as one transaction; `recover` completes it if the process died in between.

    In a forked process the files belong to the parent, and nothing is written.

    Raises
    ------
    FileError
        If that fails; files that were not moved yet are discarded.
    """
    every, ready = (first, *others), False
    try:
        if first.pid == os.getpid():
            for each in every:
                each.finish()
            if first.temporary is not None:
                written = os.stat(first.temporary).st_mtime_ns
                for each in others:
                    if each.temporary is not None:
                        os.utime(each.temporary, ns=(written, written))  # `recover` identifies the files of one commit by this time
                        each.rename(_ready(each.target))
            ready = True
            for each in every:
                each.rename()
    finally:
        if ready and not (first.temporary and os.path.exists(first.temporary)):
            for each in others:  # a Ctrl-C came after the first was renamed
                with contextlib.suppress(OSError):
                    each.rename()
        for each in every:
            each.discard()


def recover(first: str | os.PathLike[str], *others: str | os.PathLike[str]) -> None:
    """Complete a `commit` that was interrupted after `first` was renamed. Readers of such files call this first."""
    if is_remote(first):
        return
    for other in others:
        with contextlib.suppress(OSError, ValueError):
            waiting = _ready(os.path.realpath(_local(other)))
            if os.stat(waiting).st_mtime_ns == os.stat(_local(first)).st_mtime_ns:
                os.replace(waiting, os.path.realpath(_local(other)))


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a binary file to write. It replaces `path` when the block ends without an error, and is deleted otherwise.

    See `Unfinished`. A remote file is uploaded at the end of the block.

    Raises
    ------
    FileError
        If the file cannot be written; the text names it.
    """
    if is_remote(path):
        fsspec = fsspec_for(path)
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as f:
            yield f  # type: ignore[misc]  # it has the methods of files
            f.seek(0)
            with reported(path, "write"), fsspec.open(path, "wb") as remote:
                shutil.copyfileobj(f, remote, _PIECE)
        return
    unfinished = Unfinished(path)
    try:
        yield unfinished.stream
        unfinished.commit()
    except OSError as error:
        if isinstance(error, MXNetError):
            raise
        raise _failure(path, "write", error) from error
    finally:
        unfinished.discard()


def _target(path: str) -> tuple[str, os.stat_result | None]:
    """Return the file that `path` resolves to, and its status; the status is None if there is no file yet."""
    try:
        before = os.stat(path)
    except FileNotFoundError:
        return os.path.realpath(path), None  # possibly the target of a dangling link
    if stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return os.path.realpath(path), before


def _prefix(name: str) -> str:
    """Return the prefix of temporary files for the file `name`, shortened since `name` may have the maximal length."""
    return os.fsdecode(b".%b.%08x." % (os.fsencode(name)[:100], zlib.crc32(os.fsencode(name))))


def _temporary(target: str, before: os.stat_result | None) -> tuple[int, str] | None:
    """Create a locked temporary file beside `target`; return (descriptor, path), or None if `target` must be written in place."""
    folder, name = os.path.split(target)
    prefix = _prefix(name)
    if before is not None:
        try:
            if not os.path.samestat(os.stat(target), before):
                return None
        except FileNotFoundError:  # an open, deleted file: /dev/stdout may link to one
            return None
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    _remove_stale(folder, re.escape(prefix))
    while True:
        try:
            handle, temporary = tempfile.mkstemp(prefix=prefix, suffix=_UNFINISHED, dir=folder)
        except PermissionError:
            if before is None:
                raise
            return None
        try:
            if not (_lock(handle) and os.path.exists(temporary)):  # another writer removed it as a stale one
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


@contextlib.contextmanager
def scratch_folder(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield a scratch folder beside the local file `path`. It is removed at the end; the next call removes those of killed processes."""
    folder, name = os.path.split(os.path.realpath(path))
    prefix = _prefix(name)
    _remove_stale(folder, re.escape(prefix))
    made = handle = None
    try:
        with reported(path, "write"), deferred():  # a Ctrl-C would leak the folder
            made = tempfile.mkdtemp(prefix=prefix, suffix=_UNFINISHED, dir=folder)
            if fcntl is not None:
                handle = os.open(made, os.O_RDONLY)
                _lock(handle)
        yield made
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def remove_left(folder: str | os.PathLike[str], names: str) -> None:
    """Remove temporary files of killed writers whose names match a regular expression, for numbered files that are not written again."""
    _remove_stale(os.fspath(folder), rf"\.(?:{names})\.[0-9a-f]{{8}}\.")


def _adopt(handle: int, before: os.stat_result | None) -> bool:
    """Set the owner and mode of a new file to those of the replaced one, or to open()'s defaults; return False if that is not permitted."""
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
    """Lock a file; return False if another process has the lock. File systems without locks count as locked."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _remove_stale(folder: str, begin: str) -> None:
    """Remove temporary files of killed writers: those whose names match the prefix (a regular expression) and that are not locked."""
    if fcntl is None:
        return
    begins = re.compile(begin).match
    with contextlib.suppress(OSError):
        for name in os.listdir(folder or "."):
            if not (name.endswith(_UNFINISHED) and begins(name)):
                continue
            with contextlib.suppress(OSError):
                left = os.path.join(folder, name)
                handle = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if stat.S_ISDIR(os.fstat(handle).st_mode):
                        shutil.rmtree(left, ignore_errors=True)
                    else:
                        os.unlink(left)
                finally:
                    os.close(handle)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file atomically."""
    with atomic_write(path) as f:
        f.write(content)
