"""What pyproject.toml cannot say: kernels compiled for common processors go into the wheel, where there is a C++ compiler.

Without one the wheel is pure Python, and so is an editable installation: kernels are then compiled where they run.
"""
import concurrent.futures
import functools
import importlib.util
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import sysconfig

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

# The one place with the project's address, such as "https://github.com/NAME/remex", from which all links in the metadata follow. Empty while
# there is no public one: then distributions have no links, rather than dead ones. scripts/check_version.py refuses a release without it.
ADDRESS = ""
# Set by `scripts/build_dist.py --manylinux`.
MANYLINUX = bool(os.environ.get("REMEX_MANYLINUX"))
KERNELS = pathlib.Path("mxnet", "kernels")
SOURCES = pathlib.Path(__file__).resolve().parent / "src" / KERNELS
_spec = importlib.util.spec_from_file_location("build", SOURCES / "runtime" / "build.py")
build = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build)


def links(address):
    """The links of the metadata; none without an address."""
    return {"Homepage": address, "Documentation": f"{address}#documentation", "Source": address, "Issues": f"{address}/issues",
            "Changelog": f"{address}/blob/main/CHANGELOG.md"} if address else {}


@functools.cache
def levels():
    """The processors to compile for; none where that cannot be done."""
    if sys.platform != "linux" or build.compiler() is None:
        return []
    return [level for level in build.LEVELS if level.machine == platform.machine() and _works(level)]


def _works(level):
    command = (build.compiler(), *build.FLAGS, *level.flags, "-fopenmp", "-x", "c++", "-E", os.devnull)
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def torch_folder():
    """Torch's, whose headers one source needs; where pip builds apart, that of the environment which it installs into."""
    found = importlib.util.find_spec("torch")
    return pathlib.Path(found.origin).parent if found else pathlib.Path(sysconfig.get_path("purelib"), "torch")


def package(folder):
    """Compile every source for every level that it tells apart into the kernels' folder; says what it could not."""
    def make(source, level):
        try:
            path = folder / build.packaged(SOURCES, source, level, torch_folder()).relative_to(SOURCES)
            path.parent.mkdir(exist_ok=True)
            flags, link = build.portable(SOURCES, source) if MANYLINUX else ((), ())
            path.write_bytes(build.library(SOURCES, source, (*build.FLAGS, *level.flags, *flags), torch_folder(), ["-s", *link]))
        except OSError as error:
            return f"{source}.cpp is not in the wheel for {level.name}, and is compiled where it runs: {error}"
        return f"{source}.cpp for {level.name}"

    shutil.rmtree(folder / "packaged", ignore_errors=True)  # an earlier build's
    wanted = [(source, level) for level in levels() for source in build.sources(SOURCES) if source in level.sources or not level.sources]
    print(f"kernels: compiling {len(wanted)} libraries, for about two seconds each on each of {os.cpu_count()} cores", flush=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, task in enumerate(concurrent.futures.as_completed([pool.submit(make, *one) for one in wanted]), 1):
            print(f"kernels: {done} of {len(wanted)}: {task.result()}", flush=True)


class Build(build_py):
    """Compiles kernels after everything else was copied."""

    def run(self):
        super().run()
        if self.editable_mode:
            return
        if levels():
            package(pathlib.Path(self.build_lib) / KERNELS)
        else:
            print("kernels: none are in this wheel, for no C++ compiler that makes them was found; install g++, or name one in CXX")


class Wheel(bdist_wheel):
    """A wheel for every Python, and for one kind of machine if kernels are in it."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class Machine(Distribution):
    """What kind of wheel this is."""

    def has_ext_modules(self):
        return "editable_wheel" not in self.commands and bool(levels())


setup(distclass=Machine, cmdclass={"build_py": Build, "bdist_wheel": Wheel}, project_urls=links(ADDRESS))
