"""Print a report for bug reports: the machine, the versions, the kernels and backends in use, and detected problems.

``python -m mxnet.tools.diagnose`` prints it; ``--pip 0`` and the like leave a part out. Kernels are loaded, and compiled if necessary (once, for
some seconds), to verify that they run. ``--network 1`` also tests the connections to the servers of downloads.
"""
from __future__ import annotations

import difflib
import importlib.metadata
import os
import pathlib
import platform
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from .. import environment, kernels, libinfo, memory, processor, runtime, threads
from ..graph.backends import registry
from ..kernels.runtime import build, libraries
from . import progress_bar
from .command import command, parser

if TYPE_CHECKING:
    import argparse

_INSTRUCTIONS = ("sse4_2", "avx", "fma", "f16c", "amx", "asimd", "sve", "bf16", "i8mm")
_PREFIXES = ("MXNET_", "DMLC_", "OMP_", "KMP_", "MKL_", "GOMP_", "OPENCV_", "PYTORCH_", "TORCH", "CUDA_")
_TRUTH = {"", "0", "1", "true", "false", "yes", "no", "on", "off"}


def python() -> dict[str, str]:
    """Return the facts about the interpreter."""
    return {"version": platform.python_version(), "compiler": platform.python_compiler(), "build": " ".join(platform.python_build()),
            "executable": sys.executable}


def pip() -> dict[str, str]:
    """Return the facts about this interpreter's package manager."""
    version = _version("pip")
    return {"version": version or "not installed", **({"folder": importlib.metadata.distribution("pip").locate_file("pip")} if version else {})}


def mxnet() -> dict[str, str]:
    """Return the versions of this package and of its dependencies."""
    features = runtime.feature_list()
    return {"version": f"{libinfo.__version__} (Remex {libinfo.remex_version})", "folder": pathlib.Path(environment.__file__).parent,
            "torch": torch.__version__, **{name: _version(name) or "not installed" for name in ("numpy", "opencv-python-headless", "simplejpeg")},
            "features": " ".join(f.name for f in features if f.enabled), "without": " ".join(f.name for f in features if not f.enabled)}


def system() -> dict[str, str]:
    """Return the facts about the operating system."""
    return {"platform": platform.platform(), "system": platform.system(), "release": platform.release(), "version": platform.version(),
            "C library": " ".join(platform.libc_ver()) or "unknown", "name": platform.node()}


def hardware() -> dict[str, str]:
    """Return the facts about processor, cores, threads, memory, allocator and GPUs."""
    known = " ".join(sorted(f for f in processor.flags() if f.startswith(_INSTRUCTIONS) or f.startswith("avx")))
    policy = runtime.threads()
    facts = {"machine": platform.machine(), "processor": processor.name() or platform.processor() or "unknown",
             "instruction sets": known or "unknown", "used by torch": torch.backends.cpu.get_cpu_capability(),
             "cores": f"{processor.cores() or 'unknown'}, {os.cpu_count()} with those that share one; {policy.cores:g} for this process",
             "threads": f"{policy.count} in an operator ({policy.reason}), {policy.full} where no other program is busy; {policy.openvino} in "
                        f"OpenVINO, {policy.opencv} in OpenCV; {torch.get_num_interop_threads()} operators beside each other"}
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        facts["memory"] = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2 ** 30:.1f} GiB"
    facts["allocator"] = "keeps its memory" if memory.kept else "as the system has it"
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            facts[f"gpu({i})"] = torch.cuda.get_device_name(i)
    else:
        facts["GPUs"] = "none" if torch.version.cuda else "none: this torch is for CPUs"
    return facts


def compiled_kernels() -> dict[str, str]:
    """Return the origin of each kernel of this package, or the reason why it is off."""
    names = build.sources(libraries.FOLDER)
    left = _compile([name for name in names if libraries.is_missing(name)])
    for name in names:
        if name not in left:
            kernels.load(name)
    heap = ("unknown: not compiled yet" if "runtime/heap" in left else "have a heap of their own" if kernels.own_heap()
            else "have no heap of their own")
    return {"compiler": build.compiler() or "none",
            **{name: "not compiled yet: interrupted" if name in left else libraries.origins[name] for name in names}, "large tensors": heap}


def _compile(names):
    """Compile the given kernels and show the progress; return those that are left if the user interrupts it."""
    if not names:
        return []
    print(f"{len(names)} kernels did not come with the package and are compiled now, once, for about two seconds each; Ctrl-C leaves out the rest",
          file=sys.stderr, flush=True)
    done = 0
    with progress_bar("kernels", len(names), "kernel") as bar:
        try:
            for name in names:
                kernels.load(name)
                done += 1
                bar.update()
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
    return names[done:]


def graph_backends() -> dict[str, str]:
    """Return the backends of graphs with their versions and availability on this machine."""
    versions = {"native": torch.__version__, "openvino": _version("openvino"), "inductor": torch.__version__, "tensorrt": _version("torch_tensorrt")}
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return {name: f"{version or 'not installed'}, {'available' if registry.can_run(registry.get(name), device) else 'not available'} on {device}"
            for name, version in versions.items()}


def variables() -> dict[str, str]:
    """Return the environment variables that affect the execution, with a note for those without effect here."""
    values = {}
    for name in sorted(os.environ):
        if name.startswith(_PREFIXES) or name in ("CC", "CXX", "LD_PRELOAD"):
            known = environment.VARIABLES.get(name)
            values[name] = repr(os.environ[name]) + ("" if known is None or known.acts else f": no effect here, {known.note}")
    return values or {"variables": "none that matter here"}


def network(timeout: float) -> dict[str, str]:
    """Return the response times of the servers for data and packages."""
    facts = {}
    for url in (environment.get_str("MXNET_GLUON_REPO"), "https://pypi.org/simple/pip/"):
        start = time.perf_counter()
        try:
            urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=timeout).close()
            facts[url] = f"answers in {time.perf_counter() - start:.2f} s"
        except urllib.error.HTTPError as error:  # the server responds and has no such page
            facts[url] = f"answers {error.code} in {time.perf_counter() - start:.2f} s"
        except (OSError, ValueError) as error:
            facts[url] = f"out of reach: {error}"
    return facts


def problems() -> dict[str, str]:
    """Return the detected problems, wrong settings and missing parts, as sentences that name them."""
    lines = []
    for name in sorted(os.environ):
        known = environment.VARIABLES.get(name)
        if known is None and name.startswith("MXNET_"):
            near = difflib.get_close_matches(name, environment.VARIABLES, 1, 0.8)
            lines.append(f"{name} is no variable of MXNet 1.9.1" + (f"; {near[0]} is" if near else ""))
        elif known is not None and known.acts and _is_number(known.default) and not _is_number(os.environ[name]) \
                and os.environ[name].strip().lower() not in _TRUTH:
            lines.append(f"{name} is {os.environ[name]!r}: expected is a number, such as its default, {known.default}")
    if torch.get_num_threads() > threads.usable():
        lines.append(f"torch uses {torch.get_num_threads()} threads, but this process may use {threads.usable():g} cores: set OMP_NUM_THREADS to so "
                     "many")
    preloaded = [lib for lib in ("jemalloc", "tcmalloc", "mimalloc") if lib in os.environ.get("LD_PRELOAD", "")]
    if preloaded and memory.kept:
        lines.append(f"LD_PRELOAD brings {preloaded[0]}: what is tuned here is glibc's allocator; say MXNET_CPU_MEM_POOL_TYPE=Unpooled")
    lines += [f"kernel {name} is {origin}" for name, origin in libraries.origins.items() if origin.startswith("off")]
    if platform.machine().lower() in ("x86_64", "amd64", "aarch64", "arm64") and not registry.can_run(registry.get("openvino"), torch.device("cpu")):
        lines.append("openvino cannot be imported, graphs run on torch alone: pip install openvino")
    return lines


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _is_number(text):
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


PARTS = {"python": python, "pip": pip, "mxnet": mxnet, "os": system, "hardware": hardware, "kernels": compiled_kernels, "backends": graph_backends,
         "network": network, "environment": variables}


def report(parts: Iterable[str] = tuple(name for name in PARTS if name != "network"), timeout: float = 10) -> Iterator[str]:
    """Yield the lines of the report.

    Parameters
    ----------
    parts : tuple of str
        The parts to report, of python, pip, mxnet, os, hardware, kernels, backends, network and environment; detected problems always come last.
    timeout : float
        Seconds to wait for each server of the network.

    Example
    -------
    >>> from mxnet.tools import diagnose
    >>> next(diagnose.report(parts=("python",)))
    '---------- python ----------'
    """
    for name in parts:
        yield f"---------- {name} ----------"
        facts = network(timeout) if name == "network" else PARTS[name]()
        width = max(map(len, facts))
        for label, fact in facts.items():
            yield f"{label:{width}} : {fact}"
    yield "---------- what looks wrong ----------"
    yield from problems() or ["nothing"]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line: MXNet's options, and `kernels` and `backends`."""
    p = parser("diagnose")
    for name in PARTS:
        p.add_argument(f"--{name}", type=int, choices=(0, 1), default=int(name != "network"), help=f"1: report about {name}; 0: leave it out")
    p.add_argument("--timeout", type=float, default=10, help="seconds to wait for each server")
    return p


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return the exit status."""
    args = vars(build_parser().parse_args(argv))
    for line in report([name for name in PARTS if args[name]], args["timeout"]):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
