"""Compiled kernels on disk: libraries of the wheel, and libraries compiled on this machine, in a folder that only its user may write to.

The wheel's best library for this processor is loaded, within the instruction sets that ``ONEDNN_MAX_CPU_ISA`` allows; ``-march=native`` was measured
and is no faster. Without one the source is compiled. The name of a library compiled here contains a hash of sources, flags, processor and torch's
version. The last 32 bytes of each library are the digest of the others: a copy that a full disk or a crash truncated is compiled again instead of
ending the process.
"""
import atexit
import ctypes
import functools
import hashlib
import logging
import os
import pathlib
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, Optional

import torch

from ... import processor
from ...base import MXNetError, data_dir
from ...files import atomic_write
from . import build

FLAGS = (f"-march={processor.max_isa()}" if processor.max_isa() else build.NATIVE, *build.FLAGS)
FOLDER = pathlib.Path(__file__).parent.parent  # of the sources
origins: dict[str, str] = {}  # by requested kernel: the source of its library, or the reason why it is off
_TORCH = pathlib.Path(torch.__file__).parent
_OFF = "kernels are off, torch's operators compute the same more slowly"
_WITHOUT = {"runtime/heap": "large tensors have no heap of their own", "runtime/autograd_hooks": "profiled backward passes take longer"}
_log = logging.getLogger(__name__)
_warned: set[str] = set()


@functools.cache
def load(name: str) -> Optional[ctypes.CDLL]:
    """Return the library of ``<name>.cpp``, such as ``nn/softmax``, or None where there is none. The result is cached."""
    return open_library(name)


def open_library(name: str) -> Optional[ctypes.CDLL]:
    """Return the library of ``<name>.cpp``, or None; the reason for None is logged once and stored in `origins`."""
    try:
        if sys.platform != "linux":
            raise OSError(f"they are for Linux, and this is {sys.platform}")
        if build.includes(FOLDER, name, "c10"):
            ctypes.CDLL(str(_TORCH / "lib" / "libc10.so"), ctypes.RTLD_GLOBAL)  # loaded already; the library asks for its symbols
        for path, level in _packaged(name):
            try:
                library = ctypes.CDLL(str(path))
            except OSError as error:
                _warn_once(f"a kernel of the installed package does not load, and is compiled here: {error}")
                continue
            origins[name] = f"installed with the package, for {level}"
            return library
        path = _library(name)
        library = ctypes.CDLL(str(path))
    except OSError as error:
        origins[name] = f"off: {error}"
        _warn_once(f"{_WITHOUT.get(name, _OFF)}: {error}")
        return None
    origins[name] = f"compiled for this processor, in {path.parent}"
    return library


def is_missing(name: str) -> bool:
    """Return True if `load` would have to compile ``<name>.cpp`` first."""
    if sys.platform != "linux" or build.compiler() is None:
        return False
    return not any(True for _ in _packaged(name)) and not _is_complete(folder() / _file(name))


def available() -> bool:
    """Return True if kernels can presumably run here; nothing is compiled to find out."""
    if sys.platform != "linux":
        return False
    return any(True for _ in _packaged("nn/nms")) or build.compiler() is not None or _is_complete(folder() / _file("nn/nms"))


def symbol(library: Optional[ctypes.CDLL], entry: str, needed: bool) -> Any:
    """Return a function of a library, or None. A missing one is logged once if `needed`: not every type has one on every processor."""
    found = getattr(library, entry, None)
    if found is None and library is not None and needed:
        _warn_once(f"{library._name} has no function {entry}: torch computes the same more slowly. Delete it, or install remexnet again")
    return found


def _packaged(name: str) -> Iterator[tuple[pathlib.Path, str]]:
    """Yield the paths of the wheel's libraries that this processor can run, the best first, each with the name of its `Level`."""
    isa_limit = processor.max_isa()
    for level in build.LEVELS:
        if level.machine == platform.machine() and level.needs <= processor.flags() and isa_limit in ("", level.name):
            try:
                path = build.packaged(FOLDER, name, level, _TORCH)
                complete = build.is_complete(path.read_bytes())
            except OSError:  # the wheel has none, or torch came without its headers
                continue
            if complete:
                yield path, level.name
            else:
                _warn_once(f"{path} is damaged, and is compiled here: install remexnet again")


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        _log.warning(text)


def folder() -> pathlib.Path:
    """Return the folder of libraries: ``$MXNET_HOME/kernels`` if only this user may write to it, else a folder of this process."""
    return _folder(data_dir())


@functools.cache
def _folder(home: str) -> pathlib.Path:
    path = pathlib.Path(home) / "kernels"
    try:
        if not processor.identity():
            raise OSError("/proc/cpuinfo does not say which processor this is")
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        for place in (path.parent, path):
            for info in (place.lstat(), place.stat()):  # a link itself, and its target
                if info.st_uid not in (os.getuid(), 0):
                    raise OSError(f"{place} belongs to another user")
        if not stat.S_ISDIR(info.st_mode) or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OSError(f"others may write to it; say chmod 700 {path}")
        return path
    except OSError as error:
        _warn_once(f"kernels are not kept in {path}, but compiled for this process alone: {error.strerror or error}")
        return _private()


@functools.cache
def _private() -> pathlib.Path:
    path, owner = tempfile.mkdtemp(prefix="remex-kernels-"), os.getpid()
    atexit.register(lambda: shutil.rmtree(path, ignore_errors=True) if os.getpid() == owner else None)  # a forked child leaves it alone
    return pathlib.Path(path)


def _library(name: str) -> pathlib.Path:
    """Return the path of the library compiled here; compile it if it is missing or damaged."""
    place, file = folder(), _file(name)
    if _is_complete(place / file):
        return place / file
    # Torch's own OpenMP, so that there is one pool of threads in the process.
    openmp = next(map(str, sorted((_TORCH / "lib").glob("libgomp*"))), "-lgomp")
    content = build.library(FOLDER, name, FLAGS, _TORCH, [openmp])
    try:
        return _store(place / file, content)
    except OSError as error:
        if place == _private():
            raise
        # A read-only or full disk: this process compiles into a folder of its own.
        _warn_once(f"kernels are not kept in {place}, but compiled for this process alone: {error.strerror or error}")
        return _store(_private() / file, content)


def _store(path: pathlib.Path, content: bytes) -> pathlib.Path:
    path.unlink(missing_ok=True)  # a new inode: processes that have loaded the old file keep it
    try:
        with atomic_write(path) as f:
            f.write(content)
    except MXNetError as error:
        raise error.__cause__ or OSError(str(error)) from None
    return path


def _file(name: str) -> str:
    return f"{name.replace('/', '-')}-{fingerprint(name)}.so"


def fingerprint(*names: str) -> str:
    """Return a hash of the sources and parameters of these kernels, the flags, the processor and torch's version."""
    text = "".join(path.read_text("utf-8") for path in (*[FOLDER / f"{name}.cpp" for name in names], *sorted(FOLDER.glob("*/*.h"))))
    return hashlib.sha256("\n".join((text, _parameters(), *FLAGS, processor.identity(), torch.__version__)).encode()).hexdigest()[:16]


@functools.cache
def _parameters() -> str:
    return build.parameters_header()


def _is_complete(path: pathlib.Path) -> bool:
    try:
        return path.lstat().st_uid == os.getuid() and build.is_complete(path.read_bytes())
    except OSError:
        return False
