"""Where compiled kernels are kept, and what becomes of damaged and foreign ones. Each test is a process, so that nothing is loaded yet."""
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

pytestmark = [pytest.mark.skipif(sys.platform != "linux" or shutil.which("g++") is None, reason="needs Linux and a C++ compiler")]
LOAD = """
from mxnet.ops import kernels
print(kernels.load("nms") is not None, kernels.compiled.folder())
"""


def run(home, code=LOAD, **env):
    """What a program prints, as words, and what it logs."""
    env = {k: v for k, v in {**os.environ, "MXNET_HOME": str(home), **env}.items() if v is not None}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=env, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def library(home):
    path, = (home / "kernels").glob("nms-*.so")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A home in which the library was compiled."""
    home = tmp_path_factory.mktemp("home")
    assert run(home) == (["True", str(home / "kernels")], "")
    return home


@pytest.fixture
def home(made, tmp_path):
    shutil.copytree(made, tmp_path / "home")
    return tmp_path / "home"


def test_it_is_kept_in_a_folder_of_ones_own(home):
    assert (home / "kernels").stat().st_mode & 0o777 == 0o700
    before = library(home).stat().st_mtime_ns
    assert run(home)[0][0] == "True"
    assert library(home).stat().st_mtime_ns == before


@pytest.mark.parametrize("keep", [0, 10, 99, 5000, -1])
def test_a_damaged_library_is_made_again(home, keep):
    """One cut short killed the process with SIGBUS; below 100 bytes it was silently off for good."""
    whole = library(home).read_bytes()
    library(home).write_bytes(whole[:keep] if keep >= 0 else whole[:2000] + b"?" + whole[2001:])
    assert run(home) == (["True", str(home / "kernels")], "")
    assert library(home).stat().st_size == len(whole)


def test_what_is_compiled_needs_no_compiler(home):
    assert run(home, PATH="/nonexistent", CXX=None) == (["True", str(home / "kernels")], "")


@pytest.mark.parametrize("env, reason", [
    ({"PATH": "/nonexistent", "CXX": None}, "there is no C++ compiler; install g++, or name one in CXX"),
    ({"CXX": "/nonexistent/g++"}, "there is no compiler /nonexistent/g++"),
    ({"CXX": "false"}, "false fails: 1")])
def test_why_there_are_none_is_said_once(tmp_path, env, reason):
    words, log = run(tmp_path, "from mxnet.ops import kernels\nprint(kernels.load('nms'), kernels.load('pooling'))", **env)
    assert words == ["None", "None"]
    assert log == f"kernels are off, torch's operators compute the same more slowly: {reason}\n"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_to_is_not_trusted(home, mode):
    os.chmod(home / "kernels", mode)
    forged = library(home)
    forged.write_bytes(b"not what was compiled")
    words, log = run(home)
    assert words[0] == "True" and words[1] != str(home / "kernels") and not os.path.exists(words[1])  # gone with its process
    assert log == (f"kernels are not kept in {home / 'kernels'}, but compiled for this process alone: others may write to it; "
                   f"say chmod 700 {home / 'kernels'}\n")
    assert forged.read_bytes() == b"not what was compiled"


def test_a_file_in_the_place_of_the_folder(tmp_path):
    (tmp_path / "kernels").write_text("")
    words, log = run(tmp_path)
    assert words[0] == "True" and "but compiled for this process alone: File exists" in log


def test_a_link_of_ones_own_is_followed(home, tmp_path):
    os.rename(home / "kernels", tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", home / "kernels")
    assert run(home) == (["True", str(home / "kernels")], "")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["folder", "link", "library"])
def test_what_belongs_to_another_user_is_not_loaded(home, tmp_path, what):
    if what == "folder":
        os.chown(home / "kernels", 4321, 4321)
    elif what == "link":
        os.rename(home / "kernels", tmp_path / "elsewhere")
        os.symlink(tmp_path / "elsewhere", home / "kernels")
        os.lchown(home / "kernels", 4321, 4321)
    else:
        os.chown(library(home), 4321, 4321)
    words, log = run(home)
    assert words[0] == "True"
    if what == "library":
        assert log == "" and library(home).stat().st_uid == 0
    else:
        assert "belongs to another user" in log and words[1] != str(home / "kernels")


def test_without_a_home_nothing_is_made_in_the_working_folder(tmp_path):
    code = "import os; os.path.expanduser = lambda path: path\nfrom mxnet.base import data_dir\nprint(data_dir())"
    words, _ = run(tmp_path, code, MXNET_HOME=None)
    assert not words[0].startswith("~") and words[0].endswith(f"mxnet-{os.getuid()}")
