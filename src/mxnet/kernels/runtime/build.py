"""Compilation of a C++ source into a library: for this machine (`libraries`), or for a wheel (setup.py, at the root).

setup.py loads this file alone, where neither torch nor mxnet can be imported.
"""
import hashlib
import os
import pathlib
import runpy
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from typing import NamedTuple, Optional

FLAGS = ("-O3", "-std=c++17", "-fPIC", "-fno-math-errno", "-fno-trapping-math")
NATIVE = "-march=native"
DIGEST = hashlib.sha256().digest_size
_LIMIT = 600  # seconds for a compiler on a busy machine
# Headers that define the layout of the objects which a library shares with torch's allocator. They are alike in torch 2.11, 2.12 and 2.13.
INTERFACE = ("core/Allocator.h", "core/CPUAllocator.h", "core/Device.h", "core/DeviceType.h", "util/UniqueVoidPtr.h")
# The digest of headers whose layout is that of others: those of torch 2.14 and 2.15 have more [[nodiscard]] and a std::move than those of 2.13.
SAME_LAYOUT = {"8812ce25": "3e91e36f"}


class Level(NamedTuple):
    """An instruction set level that a wheel contains libraries for: processors whose flags in /proc/cpuinfo include `needs`."""

    name: str
    machine: str
    flags: tuple[str, ...]
    needs: frozenset[str]
    sources: tuple[str, ...] = ()  # the kernels that gain from it; empty for all


_V3 = frozenset("avx2 fma f16c bmi1 bmi2 abm movbe".split())
_V4 = _V3 | frozenset("avx512f avx512bw avx512cd avx512dq avx512vl".split())
LEVELS = (  # the best first
    Level("x86-64-v4-amx", "x86_64", ("-march=x86-64-v4", "-mavx512bf16", "-mamx-tile", "-mamx-bf16"), _V4 | {"avx512_bf16", "amx_tile", "amx_bf16"},
          ("gemm/amx",)),
    Level("x86-64-v4-bf16", "x86_64", ("-march=x86-64-v4", "-mavx512bf16"), _V4 | {"avx512_bf16"},
          ("conv/convolution", "conv/winograd", "nn/batch_norm", "nn/recurrent")),
    Level("x86-64-v4", "x86_64", ("-march=x86-64-v4",), _V4,
          ("conv/convolution", "conv/deformable", "conv/depthwise", "conv/prepacked_conv", "conv/winograd", "elementwise/pointwise",
           "gemm/mlp_training", "gemm/prepacked_skinny", "gemm/skinny", "gemm/triangular_solve", "image/color_jitter", "memory/transpose",
           "nn/batch_norm", "nn/lrn",
           "nn/max_pooling", "nn/nms", "nn/optimizer_update", "nn/pooling_nhwc", "nn/recurrent", "nn/roi_pooling", "nn/softmax",
           "random/generators")),
    Level("x86-64-v3", "x86_64", ("-march=x86-64-v3",), _V3),
    Level("armv8-a", "aarch64", ("-march=armv8-a",), frozenset({"asimd"})),
)


def compiler() -> Optional[str]:
    """Return the C++ compiler: the value of ``CXX``, else the path of g++, or None."""
    return os.environ.get("CXX") or shutil.which("g++")


def write_headers(folder: pathlib.Path) -> None:
    """Write the generated headers below a folder, which the compiler then searches: the parameters of the kernels, in ``runtime/parameters.h``."""
    (folder / "runtime").mkdir(parents=True, exist_ok=True)
    (folder / "runtime" / "parameters.h").write_text(parameters_header(), "utf-8")


def parameters_header() -> str:
    """Return the header that parameters.py generates."""
    return str(runpy.run_path(str(pathlib.Path(__file__).with_name("parameters.py")))["header"]())


def sources(folder: pathlib.Path) -> list[str]:
    """Return the names of all sources below the kernels' folder, such as ``nn/softmax``."""
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/*.cpp"))


def includes(folder: pathlib.Path, name: str, headers: str) -> bool:
    """Return True if a source includes headers from this folder of torch's: ``ATen`` or ``c10``.

    A library with ``c10`` alone names no library of torch to the linker, so that a wheel with it fits manylinux: whoever loads it makes torch's
    symbols global first.
    """
    return f"<{headers}/" in (folder / f"{name}.cpp").read_text("utf-8")


def packaged(folder: pathlib.Path, name: str, level: Level, torch: pathlib.Path) -> pathlib.Path:
    """Return the path of a source's library for a level in a wheel; `folder` is the kernels', `torch` torch's.

    Raises
    ------
    OSError
        If the source needs headers of torch that are missing, or that differ between versions of torch.
    """
    if includes(folder, name, "ATen"):
        raise OSError("it goes with one version of torch only")
    interface = ""
    if includes(folder, name, "c10"):
        digest = hashlib.sha256(b"".join((torch / "include" / "c10" / header).read_bytes() for header in INTERFACE)).hexdigest()[:8]
        interface = f"-{SAME_LAYOUT.get(digest, digest)}"
    return folder / "packaged" / f"{name.replace('/', '-')}-{level.name}{interface}.so"


def library(folder: pathlib.Path, name: str, flags: Sequence[str], torch: pathlib.Path, link: Sequence[str] = ()) -> bytes:
    """Compile a source and return the library's bytes, its digest at the end. `link` names an OpenMP runtime, unless the process has one at loading.

    Raises
    ------
    OSError
        If it does not compile.
    """
    program, source = compiler(), folder / f"{name}.cpp"
    if program is None:
        raise OSError("there is no C++ compiler; install g++, or name one in CXX")
    with tempfile.TemporaryDirectory(prefix="remex-") as work:
        compiled, linked = pathlib.Path(work, "kernel.o"), pathlib.Path(work, "kernel.so")
        write_headers(pathlib.Path(work))
        for command in ((program, *flags, "-fopenmp", f"-I{work}", f"-I{folder}", f"-I{torch / 'include'}", "-c", str(source), "-o", str(compiled)),
                        (program, "-shared", str(compiled), *link, "-Wl,--as-needed", f"-L{torch / 'lib'}", "-o", str(linked),
                         *(["-ltorch_cpu", "-lc10"] if includes(folder, name, "ATen") else []))):
            try:
                done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_LIMIT)
            except FileNotFoundError:
                raise OSError(f"there is no compiler {program}") from None
            except subprocess.TimeoutExpired:
                raise OSError(f"{program} takes longer than {_LIMIT} s") from None
            if done.returncode:
                raise OSError(f"{program} fails: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}")
        content = linked.read_bytes()
    return content + hashlib.sha256(content).digest()


def portable(folder: pathlib.Path, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the options of the compiler and of the linker with which a source's library fits manylinux_2_28 on a newer system, too."""
    # std::from_chars for doubles is newer than the libstdc++.so of that policy, and comes from libstdc++.a.
    static = "<charconv>" in (folder / f"{name}.cpp").read_text("utf-8")
    return (("-include", str(pathlib.Path(__file__).with_name("portable.h"))),
            ("-static-libstdc++", "-Wl,--gc-sections", "-Wl,--exclude-libs,ALL") if static else ())


def is_complete(content: bytes) -> bool:
    """Return True if `content` is a library with an intact digest, as `library` returns it."""
    return len(content) > DIGEST and hashlib.sha256(content[:-DIGEST]).digest() == content[-DIGEST:]
