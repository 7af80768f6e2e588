"""Files of Apache MXNet in the package's folder are noticed at import, whichever of the two was installed first."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import mxnet
from mxnet import installation

SOURCES = pathlib.Path(mxnet.__file__).parent


def mixed(tmp_path, files):
    """A folder with this package's files of the given names, and one of Apache MXNet's."""
    folder = tmp_path / "mxnet"
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCES / name, folder / name)
    (folder / "_ctypes").mkdir()
    (folder / "_ctypes" / "ndarray.py").write_text("")
    return folder


def imported(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    return subprocess.run([sys.executable, "-c", "import mxnet"], capture_output=True, text=True, env=env, timeout=120, cwd=tmp_path)


def test_apache_mxnet_installed_over_this_package(tmp_path):
    folder = mixed(tmp_path, ["context/__init__.py", "installation.py"])
    # What pip wrote over ours: it begins with the import of context, as in every release of 1.x, which has it as a file.
    (folder / "__init__.py").write_text("from .context import Context, current_context, cpu, gpu, cpu_pinned\n")
    (folder / "context.py").write_text("from .base import classproperty\n")
    done = imported(tmp_path)
    assert done.returncode == 1 and f"ImportError: {folder} contains files of two packages: remexnet (Remex) and Apache MXNet" in done.stderr
    assert f"    {sys.executable} -m pip uninstall -y mxnet remexnet\n    {sys.executable} -m pip install remexnet\n" in done.stderr


def test_this_package_installed_over_apache_mxnet(tmp_path):
    shutil.copytree(SOURCES, tmp_path / "mxnet", ignore=shutil.ignore_patterns("__pycache__", "gluon", "numpy", "packaged", "*.cpp", "*.pyi"))
    (tmp_path / "mxnet" / "_ctypes").mkdir()
    (tmp_path / "mxnet" / "_ctypes" / "ndarray.py").write_text("")
    done = imported(tmp_path)
    assert done.returncode == 1 and "contains files of two packages" in done.stderr


def test_the_check_is_one_look_at_the_file_system(tmp_path, monkeypatch):
    looks = []
    monkeypatch.setattr(os, "stat", lambda path: looks.append(path) or (_ for _ in ()).throw(FileNotFoundError(path)))
    installation.check("/some")
    assert looks == [os.path.join("/some", "_ctypes", "ndarray.py")]


def test_a_clean_folder_and_a_mixed_one(tmp_path):
    installation.check(str(tmp_path))
    (tmp_path / "_ctypes").mkdir()
    (tmp_path / "_ctypes" / "ndarray.py").write_text("")
    with pytest.raises(ImportError, match="Remove both and install Remex again") as error:
        installation.check(str(tmp_path))
    assert error.value.name == "mxnet"


def test_the_package_has_no_file_of_that_name():
    assert not (SOURCES / "_ctypes").exists()
