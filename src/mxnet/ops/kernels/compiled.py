"""Compiled kernels on disk: made on the machine that runs them, kept where nobody else may write, and checked before each load.

A library's name tells what it was made of (sources, flags, processor, torch); its last 32 bytes are the digest of the others, so that a
copy which a full disk or a crash has cut off is made again instead of ending the process.
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
import subprocess
import sys
import tempfile
from typing import Optional

import torch

from ...base import data_dir

FLAGS = ("-O3", "-march=native", "-std=c++17", "-fPIC", "-fno-math-errno", "-fno-trapping-math")
_HERE = pathlib.Path(__file__).parent
_DIGEST = hashlib.sha256().digest_size
_LIMIT = 600  # seconds for a compiler on a busy machine
_log = logging.getLogger(__name__)
_said: set[str] = set()


def load(name: str) -> Optional[ctypes.CDLL]:
    """The library compiled from ``<name>.cpp``, or None; why there is none is said once."""
    if sys.platform != "linux":
        return None
    try:
        return ctypes.CDLL(str(_library(name, folder())))
    except (OSError, subprocess.SubprocessError) as error:
        _say(f"kernels are off, torch's operators compute the same more slowly: {error}")
        return None


def _say(text: str) -> None:
    if text not in _said:
        _said.add(text)
        _log.warning(text)


def folder() -> pathlib.Path:
    """Where libraries are kept: ``$MXNET_HOME/kernels``, if it is ours alone to write to; else a folder of this process."""
    return _folder(data_dir())


@functools.cache
def _folder(home: str) -> pathlib.Path:
    path = pathlib.Path(home) / "kernels"
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        for place in (path.parent, path):
            for info in (place.lstat(), place.stat()):  # who placed a link, and where it leads
                if info.st_uid not in (os.getuid(), 0):
                    raise OSError(f"{place} belongs to another user")
        if not stat.S_ISDIR(info.st_mode) or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OSError(f"others may write to it; say chmod 700 {path}")
        return path
    except OSError as error:
        _say(f"kernels are not kept in {path}, but compiled for this process alone: {error.strerror or error}")
        return _private()


@functools.cache
def _private() -> pathlib.Path:
    path, owner = tempfile.mkdtemp(prefix="remex-kernels-"), os.getpid()
    atexit.register(lambda: shutil.rmtree(path, ignore_errors=True) if os.getpid() == owner else None)  # a forked child leaves it alone
    return pathlib.Path(path)


def _library(name: str, place: pathlib.Path) -> pathlib.Path:
    """The path of the compiled library in a folder; it is made if it isn't there whole."""
    path = place / f"{name}-{_key(name)}.so"
    if _is_whole(path):
        return path
    try:
        _compile(_HERE / f"{name}.cpp", path)
    except OSError as error:
        if error.errno is None or place == _private():
            raise
        # Read-only, or full: what cannot be kept serves this process all the same.
        _say(f"kernels are not kept in {place}, but compiled for this process alone: {error.strerror}")
        return _library(name, _private())
    return path


def _key(name: str) -> str:
    text = "".join(path.read_text() for path in (_HERE / f"{name}.cpp", *sorted(_HERE.glob("*.h"))))
    return hashlib.sha256("\n".join((text, *FLAGS, _processor(), torch.__version__)).encode()).hexdigest()[:16]


def _is_whole(path: pathlib.Path) -> bool:
    try:
        if path.lstat().st_uid != os.getuid():
            return False
        content = path.read_bytes()
    except OSError:
        return False
    return len(content) > _DIGEST and hashlib.sha256(content[:-_DIGEST]).digest() == content[-_DIGEST:]


def _compile(source: pathlib.Path, path: pathlib.Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("g++")
    if compiler is None:
        raise OSError("there is no C++ compiler; install g++, or name one in CXX")
    # Torch's own OpenMP, so that there is one pool of threads in the process.
    root = pathlib.Path(torch.__file__).parent
    runtime = next(iter(sorted((root / "lib").glob("libgomp*"))), "-lgomp")
    with tempfile.TemporaryDirectory(dir=path.parent) as work:
        compiled, linked = pathlib.Path(work, "kernel.o"), pathlib.Path(work, "kernel.so")
        for command in ((compiler, *FLAGS, "-fopenmp", f"-I{root / 'include'}", "-c", str(source), "-o", str(compiled)),
                        (compiler, "-shared", str(compiled), str(runtime), "-Wl,--as-needed", f"-L{root / 'lib'}", "-lc10", "-o", str(linked))):
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT)
            except FileNotFoundError:
                raise OSError(f"there is no compiler {compiler}") from None
            if done.returncode:
                raise OSError(f"{compiler} fails: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}")
        with open(linked, "ab") as file:
            file.write(hashlib.sha256(linked.read_bytes()).digest())
            file.flush()
            os.fsync(file.fileno())
        os.replace(linked, path)


def _processor() -> str:
    """What tells processors apart: a folder may be shared by several machines."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "".join(line for line in lines[:40] if line.startswith(("model name", "flags", "Features", "CPU part")))
