"""Kernels compiled for AddressSanitizer and UndefinedBehaviorSanitizer: `python -m tests.fuzz --sanitize --only kernels --cases 100000`.

The sanitizers' libraries are loaded before all others, so that malloc, which then gives torch its memory, puts guarded zones around each
tensor. The heap for large tensors is left out (`MXNET_CPU_MEM_POOL_TYPE`): what lies in it has neighbours. Only the kernels are instrumented;
torch and Python run as they are.
"""
import concurrent.futures
import ctypes
import hashlib
import os
import pathlib
import subprocess
import tempfile

_FLAGS = ("-O1", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-march=native", "-std=c++17",
          "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-fopenmp")
_FOLDER = "REMEX_FUZZ_SANITIZED"


def environment():
    """The variables for processes whose kernels are to be sanitized; compiles these, which takes a minute, unless that is done."""
    from mxnet.kernels.runtime import build
    compiler = build.compiler()
    # The runtime of exceptions, too: sanitizers look for it at their start.
    libraries = [subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True, timeout=600).stdout.strip()
                 for name in ("libasan.so", "libubsan.so", "libstdc++.so.6")]
    return {_FOLDER: str(_built(compiler)), "LD_PRELOAD": ":".join(libraries), "MXNET_CPU_MEM_POOL_TYPE": "Unpooled",
            "OMP_WAIT_POLICY": "passive",  # threads that spin take minutes where others want the cores
            "MXNET_SUBGRAPH_BACKEND": "native",  # OpenVINO loads its parts in a way that sanitizers end a process for
            # What Python and torch hold at their end is no leak; sizes that no machine has are for the caller to see.
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:quarantine_size_mb=64:detect_odr_violation=0",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:abort_on_error=1"}


def _built(compiler):
    import torch

    from mxnet.kernels.runtime import build as building
    from mxnet.kernels.runtime import libraries
    root, sources = pathlib.Path(torch.__file__).parent, libraries.FOLDER
    openmp = next(iter(sorted((root / "lib").glob("libgomp*"))), "-lgomp")
    text = "".join(path.read_text() for path in sorted((*sources.glob("*/*.cpp"), *sources.glob("*/*.h")))) + building.parameters_header()
    key = hashlib.sha256("\n".join((text, *_FLAGS, torch.__version__)).encode()).hexdigest()[:16]
    folder = pathlib.Path(tempfile.gettempdir(), f"remex-sanitized-{os.getuid()}-{key}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")

    building.write_headers(folder)

    def build(name):
        path = folder / f"{name.replace('/', '-')}.so"
        if not path.exists():
            part = path.with_suffix(".part")
            places = f"-I{folder}", f"-I{sources}", f"-I{root / 'include'}", f"-L{root / 'lib'}"
            subprocess.run([compiler, *_FLAGS, *places, "-shared", str(sources / f"{name}.cpp"), str(openmp), "-lc10", "-o", str(part)], check=True,
                           timeout=600)
            part.rename(path)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(build, building.sources(sources)))
    return folder


def prepare():
    """Load the sanitized kernels in this process, if it was started with these variables."""
    folder = os.environ.get(_FOLDER)
    if folder:
        from mxnet.kernels.runtime import libraries
        libraries.open_library = lambda name: ctypes.CDLL(os.path.join(folder, f"{name.replace('/', '-')}.so"))
