"""A wheel carries compiled kernels, which run where there is no compiler. It is built from a copy of the sources with three of the kernels."""
import ctypes
import hashlib
import json
import math
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from mxnet import processor
from mxnet.kernels.runtime import build, libraries

ROOT = pathlib.Path(__file__).parents[3]
KERNELS = pathlib.Path("mxnet", "kernels")
SOURCES = ("heap.cpp", "nchw_to_nhwc.cpp", "nms.cpp")
NO_COMPILER = {"PATH": "/nonexistent"}
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
OFFLINE = ["--no-index", "--no-deps"]
pytestmark = pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64" or shutil.which("g++") is None,
                                reason="needs Linux on x86-64 and a C++ compiler")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    root = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, root)
    shutil.copytree(ROOT / "src" / "mxnet", root / "src" / "mxnet", ignore=lambda _, names: [
        n for n in names if n in ("__pycache__", "packaged") or n.endswith((".pyi", ".cpp")) and n not in SOURCES])
    (root / "src" / KERNELS / "nn" / "broken.cpp").write_text("#error on purpose\n")
    return root


def wheel_of(sources, out, **env):
    """The wheel and what its build printed; without network, in this environment."""
    env = {**{k: v for k, v in os.environ.items() if k not in ("CXX", "PYTHONPATH")}, **env}
    done = subprocess.run([*PIP, "wheel", "-v", *OFFLINE, "--no-build-isolation", "-w", str(out), str(sources)], capture_output=True, text=True,
                          env=env, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    path, = out.glob("*.whl")
    return path, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(sources, tmp_path_factory):
    return wheel_of(sources, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel(built):
    return built[0]


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([*PIP, "install", "-q", *OFFLINE, "--no-compile", "--target", str(folder), str(wheel)], check=True, timeout=120)
    return folder


@pytest.fixture
def installed(site, tmp_path, monkeypatch):
    """A copy of the installed kernels' folder, which this process looks into, and a home of its own."""
    monkeypatch.setattr(libraries, "FOLDER", shutil.copytree(site / KERNELS, tmp_path / "kernels_of_site"))
    monkeypatch.setattr(libraries, "_warned", set())
    monkeypatch.setattr(libraries, "origins", {})
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "home"))
    return libraries.FOLDER


NEW_SYMBOLS = """
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>
extern "C" double new_symbols(const char* text, int64_t size, double y) {
  double x = 0;
  std::from_chars(text, text + size, x);
  std::vector<std::pair<double, double>> terms(size);
  for (auto& term : terms) term = {std::log(x) + std::exp(y), std::pow(x, y) + std::log2(x) + std::exp2(y)};
  return terms.back().first + terms.back().second;
}
"""


def versions(content, prefix):
    """The versions of symbols that a library needs, such as (2, 28) for GLIBC_2.28."""
    return {tuple(map(int, text.split(b"."))) for text in re.findall(prefix.encode() + rb"_(\d+(?:\.\d+)+)\0", content)}


def test_a_portable_library_needs_nothing_newer_than_manylinux_2_28(tmp_path):
    (tmp_path / "probe").mkdir()
    (tmp_path / "probe" / "symbols.cpp").write_text(NEW_SYMBOLS)
    flags, link = build.portable(tmp_path, "probe/symbols")
    content = build.library(tmp_path, "probe/symbols", (*build.FLAGS, *flags), tmp_path, ["-s", *link])
    assert versions(content, "GLIBC") and max(versions(content, "GLIBC")) <= (2, 28) and versions(content, "GLIBCXX") <= {(3, 4)}
    (tmp_path / "symbols.so").write_bytes(content)
    function = ctypes.CDLL(str(tmp_path / "symbols.so")).new_symbols
    function.restype, function.argtypes = ctypes.c_double, (ctypes.c_char_p, ctypes.c_int64, ctypes.c_double)
    assert function(b"2.5", 3, 1.5) == pytest.approx(math.log(2.5) + math.exp(1.5) + 2.5 ** 1.5 + math.log2(2.5) + 2 ** 1.5, rel=1e-14)


def test_headers_of_the_same_layout_share_a_library(tmp_path, monkeypatch):
    lowest = next(level for level in build.LEVELS if level.name == "x86-64-v3")
    for header in build.INTERFACE:
        (tmp_path / "include" / "c10" / header).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "include" / "c10" / header).write_text("[[nodiscard]] " + (libraries._TORCH / "include" / "c10" / header).read_text())
    known, other = (build.packaged(libraries.FOLDER, "runtime/heap", lowest, torch).name for torch in (libraries._TORCH, tmp_path))
    assert known != other
    monkeypatch.setitem(build.SAME_LAYOUT, *(re.search(r"-(\w+)\.so$", name)[1] for name in (other, known)))
    assert build.packaged(libraries.FOLDER, "runtime/heap", lowest, tmp_path).name == known


def test_a_wheel_is_for_one_kind_of_machine_and_every_python(wheel):
    assert wheel.name.endswith("-py3-none-linux_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [pathlib.PurePath(name) for name in archive.namelist()]
    found = sorted(p.name for p in names if p.suffix == ".so")
    lowest = next(level for level in build.LEVELS if level.name == "x86-64-v3")
    heap = build.packaged(libraries.FOLDER, "runtime/heap", lowest, libraries._TORCH).name
    assert found == ["image-nchw_to_nhwc-x86-64-v3.so", "nn-nms-x86-64-v3.so", "nn-nms-x86-64-v4.so", heap]
    assert heap.startswith("runtime-heap-x86-64-v3-") and {p.parent for p in names if p.suffix == ".so"} == {pathlib.PurePath(KERNELS, "packaged")}
    assert pathlib.PurePath(KERNELS, "nn", "nms.cpp") in names


def test_a_source_that_does_not_compile_stays_out_and_is_named(built):
    assert re.search(r"kernels: \d of 5: nn/broken.cpp is not in the wheel for x86-64-v3, and is compiled where it runs: ", built[1])
    assert re.search(r"kernels: \d of 5: nn/nms.cpp for x86-64-v4\n", built[1])


def test_the_build_says_how_far_it_is(built):
    assert "kernels: compiling 5 libraries, for about two seconds each on each of " in built[1]
    assert re.findall(r"kernels: (\d) of 5: ", built[1]) == list("12345")


def test_it_needs_no_compiler_and_writes_nothing(site, tmp_path):
    code = """
import json
import numpy as np
import mxnet
from mxnet import kernels
from mxnet.kernels.runtime import libraries
from mxnet.kernels.nn import nms
stays = nms.suppress(np.array([[0, 0, 2, 2], [0, 0, 2, 2.1], [5, 5, 6, 6]], np.float32), 0.5, None, 0.0, None, False)
enabled = mxnet.runtime.Features().is_enabled("COMPILED_KERNELS")
print(json.dumps([mxnet.__file__, stays.tolist(), kernels.own_heap(), enabled, libraries.origins]))
"""
    env = {**{k: v for k, v in os.environ.items() if k != "CXX"}, "PYTHONPATH": str(site), "MXNET_HOME": str(tmp_path), **NO_COMPILER}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=200, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    *found, origins = json.loads(done.stdout)
    assert found == [str(site / "mxnet" / "__init__.py"), [True, False, True], True, True]
    assert origins["runtime/heap"] == "installed with the package, for x86-64-v3"
    assert origins["nn/nms"] in ("installed with the package, for x86-64-v3", "installed with the package, for x86-64-v4")
    assert list(tmp_path.iterdir()) == []


def test_the_best_that_the_processor_can_run_is_taken(installed, monkeypatch, caplog):
    monkeypatch.setenv("PATH", NO_COMPILER["PATH"])
    monkeypatch.delenv("CXX", raising=False)
    _, best, _, old = (level.needs for level in build.LEVELS if level.machine == "x86_64")
    for flags, names in ((best, ["nn-nms-x86-64-v4.so", "nn-nms-x86-64-v3.so"]), (old, ["nn-nms-x86-64-v3.so"]), (old - {"fma"}, [])):
        monkeypatch.setattr(processor, "flags", lambda flags=flags: flags)
        assert [path.name for path, _ in libraries._packaged("nn/nms")] == names and libraries.available() is bool(names)
    assert libraries.open_library("nn/nms") is None
    assert caplog.messages == ["kernels are off, torch's operators compute the same more slowly: there is no C++ compiler; install g++, or name "
                               "one in CXX"]


def test_what_is_damaged_or_made_for_another_torch_is_compiled(installed, caplog):
    for path in (installed / "packaged").iterdir():
        content = path.read_bytes()
        if path.name.startswith("runtime-heap"):
            path.rename(path.with_name("runtime-heap-x86-64-v3-00000000.so"))
        elif path.name.startswith("nn-nms"):
            path.write_bytes(content[:5000])
        else:  # whole, but no library
            path.write_bytes(b"text" + hashlib.sha256(b"text").digest())
    for name in ("runtime/heap", "image/nchw_to_nhwc", "nn/nms"):
        assert libraries.open_library(name) is not None
    assert libraries.origins == dict.fromkeys(("runtime/heap", "image/nchw_to_nhwc", "nn/nms"),
                                              f"compiled for this processor, in {libraries.folder()}")
    assert f"{installed / 'packaged' / 'nn-nms-x86-64-v3.so'} is damaged, and is compiled here: install remexnet again" in caplog.messages
    other = installed / "packaged" / "image-nchw_to_nhwc-x86-64-v3.so"
    assert f"a kernel of the installed package does not load, and is compiled here: {other}: file too short" in caplog.messages


def test_without_a_compiler_the_wheel_is_pure(sources, tmp_path):
    path, said = wheel_of(sources, tmp_path, **NO_COMPILER)
    assert path.name.endswith("-py3-none-any.whl")
    assert "kernels: none are in this wheel, for no C++ compiler that makes them was found; install g++, or name one in CXX" in said
    with zipfile.ZipFile(path) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".so")]
