"""Reading and writing whole files: local ones through the system, ``s3://`` and the like through fsspec (extra ``remote``)."""
import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from .base import MXNetError


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
def _reported(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say which file could not be read."""
    try:
        yield
    except OSError as error:
        raise MXNetError(f"cannot read {path}: {error.strerror or error}") from error


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
    folder = os.path.dirname(os.path.abspath(path))
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
    except OSError as error:
        raise MXNetError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        with os.fdopen(handle, "wb") as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        # mkstemp makes files only the owner can read; give it what open() would have.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise MXNetError(f"cannot write {path}: {error.strerror or error}") from error
        raise


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all."""
    with atomic_write(path) as f:
        f.write(content)
