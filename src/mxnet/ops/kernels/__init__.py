"""Kernels in C++ for what a training step spends time on outside of convolutions, compiled on the machine that runs them.

They need g++ (or what ``CXX`` names) once: compiling takes two seconds, and the result is kept in ``$MXNET_HOME/kernels``. Without a compiler
the same is computed with torch's operators.
"""
import ctypes
import functools
import hashlib
import logging
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

import torch

from ... import memory
from ...base import data_dir

_LETTERS = {"p": ctypes.c_void_p, "l": ctypes.c_int64, "f": ctypes.c_float, "i": ctypes.c_int}
_log = logging.getLogger(__name__)
_HERE = pathlib.Path(__file__).parent
_FLAGS = ("-O3", "-march=native", "-std=c++17", "-fPIC", "-fno-math-errno", "-fno-trapping-math")


@functools.cache
def function(name, entry, signature):
    """A function of a kernel's library, or None where that can't be compiled, or not for this processor.

    `signature` has a letter for each parameter: ``p`` for a pointer (an int, or None), ``l`` for int64, ``f`` for float, ``i`` for int.
    """
    library = load(name)
    found = getattr(library, entry, None)
    if found is None:
        return None
    own_heap()
    found.restype, found.argtypes = None, [_LETTERS[letter] for letter in signature]
    return found


def holds_vectors(size, *tensors):
    """Whether each tensor (None counts as well) has what a kernel reads behind its pointer: `size` numbers in single precision, side by side."""
    return all(t is None or t.shape == (size,) and t.dtype is torch.float32 and t.is_contiguous() and t.device.type == "cpu" for t in tensors)


@functools.cache
def own_heap():
    """Let torch take large tensors from ``heap.cpp``; says whether it does. Done once, where the allocator is ours to tune.

    It comes with the first kernel, always: what an import does must not depend on what earlier processes left. Tensors made before stay
    where they are; of a network's those are its parameters, which no step frees.
    """
    library = load("heap") if memory.kept else None
    if library is None or not library.install():
        return False
    library.trim.restype = ctypes.c_int64
    memory.also_trims(library.trim)
    return True


@functools.cache
def load(name):
    """The library compiled from ``<name>.cpp``, or None where it can't be compiled."""
    compiler = _compiler()
    if compiler is None:
        return None
    try:
        path = _cached(_HERE / f"{name}.cpp", compiler)
        return ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError) as error:
        _log.info("kernel %s: %s", name, error)
        return None


def _compiler():
    return (os.environ.get("CXX") or shutil.which("g++")) if sys.platform == "linux" else None


def _path(source, compiler):
    """Where the compiled library is kept, and whether it is there and our own."""
    text = "".join(path.read_text() for path in (source, *sorted(_HERE.glob("*.h"))))
    key = hashlib.sha256("\n".join((text, *_FLAGS, str(compiler), _processor(), torch.__version__)).encode()).hexdigest()[:16]
    path = pathlib.Path(data_dir()) / "kernels" / f"{source.stem}-{key}.so"
    return path, path.exists() and path.stat().st_uid == os.getuid()


def _cached(source, compiler):
    """The path of the compiled library; it is made if it isn't there."""
    try:
        path, made = _path(source, compiler)
        if made:
            return path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return _compile(source, compiler, path)
    except PermissionError:
        return _compile(source, compiler, pathlib.Path(tempfile.mkdtemp(prefix="remex-")) / f"{source.stem}.so")


def _compile(source, compiler, path):
    # Torch's own OpenMP, so that there is one pool of threads in the process.
    root = pathlib.Path(torch.__file__).parent
    runtime = next(iter(sorted((root / "lib").glob("libgomp*"))), "-lgomp")
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        compiled = pathlib.Path(folder, "kernel.o")
        linked = pathlib.Path(folder, "kernel.so")
        for command in ((compiler, *_FLAGS, "-fopenmp", f"-I{root / 'include'}", "-c", str(source), "-o", str(compiled)),
                        (compiler, "-shared", str(compiled), str(runtime), "-Wl,--as-needed", f"-L{root / 'lib'}", "-lc10", "-o", str(linked))):
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            if done.returncode:
                raise OSError(f"{compiler} fails: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}")
        os.replace(linked, path)
    return path


def _processor():
    """What tells processors apart: a folder may be shared by several machines."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "".join(line for line in lines[:40] if line.startswith(("model name", "flags", "Features", "CPU part")))
