"""Reading and writing whole files: local ones through the system, ``s3://`` and the like through fsspec (extra ``remote``)."""
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

_UNFINISHED = ".unfinished"  # how the names of files end that are being written
_READY = "ready"  # how the name of a file ends that only waits for another to be there
_IN_MEMORY = 64 << 20  # bytes of a remote file that wait in memory to be sent, before they wait on the disk
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
    """What reading or writing the file may raise: nearly anything where fsspec has handed it to a library for one service."""
    return Exception if is_remote(path) else (OSError, ValueError)


@contextlib.contextmanager
def reported(path: str | os.PathLike[str], action: str = "read") -> Iterator[None]:
    """Say which file could not be read or written."""
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
    """A file to read from, and its size in bytes: a local one a piece at a time, a remote one (or a pipe) from memory.

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
    """The content of a file.

    Raises
    ------
    FileError
        If it cannot be read; the text names the file.
    """
    with reported(path), fsspec_for(path).open(path, "rb") if is_remote(path) else open(_local(path), "rb") as f:
        return f.read()


def read_text(path: str | os.PathLike[str]) -> str:
    """The content of a UTF-8 file; errors as in `read_bytes`."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise MXNetError(f"{path} is not a text file: byte {error.start} is not UTF-8") from None


def open_stream(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading; one that this process is writing (see `Unfinished`) as far as it is written.

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
    """Where to read a local file: another place while this process is writing it."""
    if not _writing:
        return path
    unfinished = _writing.get(os.path.realpath(path))
    if unfinished is None or unfinished.pid != os.getpid() or unfinished.temporary is None:
        return path
    unfinished.stream.flush()
    return unfinished.temporary


class Unfinished:
    """A local file that is being written: it takes the place of `path` with `commit`, and leaves no trace with `discard`.

    The new file has the mode and the owner of the one that it replaces; a symbolic link stays, and what it leads to is replaced. What is no
    regular file (a device, a pipe), has an owner whom we can't give to another file, or stands in a folder that takes no new files is written
    where it is. What writers of this name left behind when they were killed is removed.

    Attributes
    ----------
    stream : binary file
    temporary : str or None
        Where the content is for now; None if it is written in place, or finished.

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
                    with deferred():  # a Ctrl-C would leave the file, or a descriptor that nobody knows
                        self._begin(before)
                if self.temporary is None:
                    self.stream: IO[bytes] = open(self.path, "wb", _PIECE)
                _writing[self.target] = self
            except BaseException:
                self.discard()
                raise

    def _begin(self, before: os.stat_result | None) -> None:
        """Open a file beside the target, if there may be one."""
        made = _temporary(self.target, before)
        if made is not None:
            self.stream, self.temporary = os.fdopen(made[0], "wb", _PIECE), made[1]
            self._lock = io.FileIO(os.dup(made[0]))  # until the file has its name

    def finish(self) -> None:
        """Write all of it to the disk."""
        with reported(self.path, "write"):
            self.stream.flush()
            if self.temporary is not None:
                os.fsync(self.stream.fileno())
            self.stream.close()

    def rename(self, name: str | None = None) -> None:
        """Give it its name, or another that it has for a moment."""
        if self.temporary is None:
            return
        with reported(self.path, "write"):
            os.replace(self.temporary, name or self.target)
        self.temporary = name
        if name is None:
            self._release()

    def commit(self) -> None:
        """Let it take its place; see the function `commit`."""
        commit(self)

    def discard(self) -> None:
        """Give it up; what was written in place stays."""
        if self.pid != os.getpid():
            self._forget()
        with contextlib.suppress(OSError, ValueError, AttributeError):  # of one that was never opened
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
        """In a forked process: what waits in the buffer is the parent's to write."""
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as null:
            os.dup2(null.fileno(), self.stream.fileno())


class Sent(Unfinished):
    """A remote file, sent while it is written; object stores show it when it is complete."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = self.target = os.fspath(path)
        self.pid, self.temporary, self._lock = os.getpid(), None, None
        with reported(path, "write"):
            self.stream = fsspec_for(path).open(path, "wb").open()

    def discard(self) -> None:
        """Give it up."""
        if not self.stream.closed:
            with contextlib.suppress(Exception):
                self.stream.discard()  # type: ignore[attr-defined]  # of fsspec's files


def begin(path: str | os.PathLike[str]) -> Unfinished:
    """Begin to write a file, wherever it is."""
    return Sent(path) if is_remote(path) else Unfinished(path)


def at_the_end(action: Callable[[], object]) -> None:
    """Do what a ``__del__`` has to do. Python would lose a Ctrl-C meanwhile: it comes again when that has returned."""
    try:
        action()
    except KeyboardInterrupt:
        with contextlib.suppress(RuntimeError):  # at the end of the interpreter no thread starts
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
    """Let several files take their places as one step: `recover` goes on where a process has died in the middle.

    In a forked process they are the parent's, and forgotten.

    Raises
    ------
    FileError
        If that fails; what was not done is given up.
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
                        os.utime(each.temporary, ns=(written, written))  # by which `recover` knows that the two belong together
                        each.rename(_ready(each.target))
            ready = True
            for each in every:
                each.rename()
    finally:
        if ready and not (first.temporary and os.path.exists(first.temporary)):
            for each in others:  # a Ctrl-C came when the first had its name
                with contextlib.suppress(OSError):
                    each.rename()
        for each in every:
            each.discard()


def recover(first: str | os.PathLike[str], *others: str | os.PathLike[str]) -> None:
    """Complete a `commit` that was cut off when `first` had its name already. Done before such files are read."""
    if is_remote(first):
        return
    for other in others:
        with contextlib.suppress(OSError, ValueError):
            waiting = _ready(os.path.realpath(_local(other)))
            if os.stat(waiting).st_mtime_ns == os.stat(_local(first)).st_mtime_ns:
                os.replace(waiting, os.path.realpath(_local(other)))


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file to write; it takes the place of `path` when the block ends without an error, and leaves no trace otherwise.

    See `Unfinished`. A remote file is sent when the block has ended.

    Raises
    ------
    FileError
        If the file cannot be written; the text names it.
    """
    if is_remote(path):
        fsspec = fsspec_for(path)
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as f:
            yield f  # type: ignore[misc]  # it has what files have
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
    """The file that `path` leads to, and its status; None if there is none yet."""
    try:
        before = os.stat(path)
    except FileNotFoundError:
        return os.path.realpath(path), None  # maybe where a link leads to
    if stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return os.path.realpath(path), before


def _prefix(name: str) -> str:
    """How the names begin of what waits to become the file `name`, which may be as long as names can be."""
    return os.fsdecode(b".%b.%08x." % (os.fsencode(name)[:100], zlib.crc32(os.fsencode(name))))


def _temporary(target: str, before: os.stat_result | None) -> tuple[int, str] | None:
    """A new file beside `target`, locked, as (descriptor, path); None if `target` must be written in place."""
    folder, name = os.path.split(target)
    prefix = _prefix(name)
    if before is not None:
        try:
            if not os.path.samestat(os.stat(target), before):
                return None
        except FileNotFoundError:  # open, and deleted: /dev/stdout may lead to such a file
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


@contextlib.contextmanager
def scratch_folder(path: str | os.PathLike[str]) -> Iterator[str]:
    """A folder beside the local file `path`, for what it takes to make that. It goes at the end; what killed processes left, at the next."""
    folder, name = os.path.split(os.path.realpath(path))
    prefix = _prefix(name)
    _remove_stale(folder, re.escape(prefix))
    made = handle = None
    try:
        with reported(path, "write"), deferred():  # a Ctrl-C would leave the folder
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
    """Remove what killed writers left of files whose names match a regular expression: of those in a row, which nobody writes a second time."""
    _remove_stale(os.fspath(folder), rf"\.(?:{names})\.[0-9a-f]{{8}}\.")


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


def _remove_stale(folder: str, begin: str) -> None:
    """Remove the files of writers that were killed: those whose names begin so (a regular expression), and that nobody has locked."""
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
    """Write a file whole or not at all."""
    with atomic_write(path) as f:
        f.write(content)
