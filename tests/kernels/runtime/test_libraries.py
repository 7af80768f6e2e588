"""Where compiled kernels are kept, what becomes of damaged and foreign ones, and what is said where there are none."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from forked import python
from mxnet import processor
from mxnet.kernels.runtime import build, libraries

pytestmark = [pytest.mark.skipif(sys.platform != "linux" or shutil.which("g++") is None, reason="needs Linux and a C++ compiler")]
OFF = "kernels are off, torch's operators compute the same more slowly"
LOAD = """
from mxnet import kernels
from mxnet.kernels.runtime import libraries
print(kernels.load("image/nchw_to_nhwc") is not None, libraries.folder())
"""


def run(home, code=LOAD, begin=(), **env):
    """What a program prints, as words, and what it logs; `begin` is put before its command."""
    env = {k: v for k, v in {**os.environ, "MXNET_HOME": str(home), **env}.items() if v is not None}
    start = [*begin, sys.executable] if begin else python()
    done = subprocess.run([*start, "-c", code], capture_output=True, text=True, env=env, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def fresh(monkeypatch, home):
    monkeypatch.setenv("MXNET_HOME", str(home))
    monkeypatch.setattr(libraries, "_warned", set())
    monkeypatch.setattr(libraries, "origins", {})
    monkeypatch.setattr(libraries, "_packaged", lambda name: iter(()))  # whatever is installed here


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of its own for this process, as if it had loaded no kernel yet."""
    fresh(monkeypatch, tmp_path)
    processor.cpuinfo_lines.cache_clear()
    yield tmp_path
    processor.cpuinfo_lines.cache_clear()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A library that was compiled."""
    with pytest.MonkeyPatch.context() as patch:
        fresh(patch, tmp_path_factory.mktemp("home"))
        return libraries._library("image/nchw_to_nhwc")


@pytest.fixture
def library(home, made):
    """The library where it is kept."""
    (home / "kernels").mkdir(mode=0o700)
    return pathlib.Path(shutil.copy(made, home / "kernels"))


def loads(place=None):
    """Whether the library is loaded, from a place if one is named, and runs."""
    assert libraries.open_library("image/nchw_to_nhwc").two is not None
    return place is None or libraries.origins == {"image/nchw_to_nhwc": f"compiled for this processor, in {place}"}


def test_it_is_kept_in_a_folder_of_ones_own(home, caplog):
    assert loads(home / "kernels") and (home / "kernels").stat().st_mode & 0o777 == 0o700
    kept, = (home / "kernels").iterdir()
    before = kept.stat()
    assert loads(home / "kernels") and (kept.stat().st_ino, kept.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert caplog.messages == []


@pytest.mark.parametrize("keep", [0, 10, 99, 5000, -1])
def test_a_damaged_library_is_made_again(home, library, keep, caplog):
    """One cut short killed the process with SIGBUS; below 100 bytes it was silently off for good."""
    whole = library.read_bytes()
    library.write_bytes(whole[:keep] if keep >= 0 else whole[:2000] + b"?" + whole[2001:])
    assert loads(home / "kernels") and library.stat().st_size == len(whole) and list(library.parent.iterdir()) == [library]
    assert caplog.messages == []


def test_what_is_compiled_needs_no_compiler(home, library):
    assert run(home, PATH="/nonexistent", CXX=None) == (["True", str(home / "kernels")], "")


@pytest.mark.parametrize("env, reason", [
    ({"PATH": "/nonexistent"}, "there is no C++ compiler; install g++, or name one in CXX"),
    ({"CXX": "/nonexistent/g++"}, "there is no compiler /nonexistent/g++"),
    ({"CXX": "false"}, "false fails: 1")])
def test_why_there_are_none_is_said_once(home, monkeypatch, caplog, env, reason):
    monkeypatch.delenv("CXX", raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert libraries.open_library("nn/nms") is libraries.open_library("nn/max_pooling") is None
    assert libraries.origins == {"nn/nms": f"off: {reason}", "nn/max_pooling": f"off: {reason}"}
    assert caplog.messages == [f"{OFF}: {reason}"]


def test_a_compiler_that_does_not_come_to_an_end(home, monkeypatch, caplog):
    slow = home / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o700)
    monkeypatch.setenv("CXX", str(slow))
    monkeypatch.setattr(build, "_LIMIT", 0.1)
    assert libraries.open_library("image/nchw_to_nhwc") is None
    assert caplog.messages == [f"{OFF}: {slow} takes longer than 0.1 s"]


def test_that_tensors_have_no_heap_is_said_as_such(home, monkeypatch, caplog):
    monkeypatch.setenv("CXX", "false")
    assert libraries.open_library("runtime/heap") is None
    assert caplog.messages == ["large tensors have no heap of their own: false fails: 1"]


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_to_is_not_trusted(home, library, mode, caplog):
    os.chmod(home / "kernels", mode)
    library.write_bytes(b"not what was compiled")
    assert loads(libraries._private()) and library.read_bytes() == b"not what was compiled"
    assert caplog.messages == [f"kernels are not kept in {home / 'kernels'}, but compiled for this process alone: others may write to it; "
                               f"say chmod 700 {home / 'kernels'}"]


MOUNT = ["unshare", "--mount", "sh", "-c",
         'mount -t tmpfs -o size=8k,mode=700 none "$MXNET_HOME" && mkdir -m 700 "$MXNET_HOME/kernels" && "$@"', "sh"]


@pytest.mark.parametrize(("state", "reason"), [("", "No space left on device"), ("ro", "Read-only file system")])
def test_a_disk_that_is_full_or_read_only(tmp_path, state, reason):
    """Kernels were off; now they serve the process."""
    if subprocess.run([*MOUNT, "true"], env={**os.environ, "MXNET_HOME": str(tmp_path)}, capture_output=True, timeout=120).returncode:
        pytest.skip("file systems cannot be mounted here")
    change = ["sh", "-c", 'mount -o remount,ro "$MXNET_HOME" && "$@"', "sh"] if state else []
    words, log = run(tmp_path, begin=[*MOUNT, *change])
    assert words[0] == "True" and words[1] == str(tmp_path / "kernels")
    assert log == f"kernels are not kept in {tmp_path / 'kernels'}, but compiled for this process alone: {reason}\n"


def test_a_processor_that_is_not_known(home, monkeypatch, caplog):
    """What is compiled for it might not run on the next machine with this home."""
    monkeypatch.setattr(processor, "CPUINFO", home / "nonexistent")
    assert libraries.open_library("image/nchw_to_nhwc") is not None
    assert libraries.origins == {"image/nchw_to_nhwc": f"compiled for this processor, in {libraries._private()}"}
    assert not (home / "kernels").exists()
    assert caplog.messages == [f"kernels are not kept in {home / 'kernels'}, but compiled for this process alone: "
                               "/proc/cpuinfo does not say which processor this is"]


def test_other_systems_than_linux(home, monkeypatch, caplog):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not libraries.available() and libraries.open_library("nn/nms") is libraries.open_library("nn/max_pooling") is None
    assert libraries.origins == dict.fromkeys(("nn/nms", "nn/max_pooling"), "off: they are for Linux, and this is darwin")
    assert caplog.messages == ["kernels are off, torch's operators compute the same more slowly: they are for Linux, and this is darwin"]


def test_a_library_without_its_function(home, caplog):
    """It was an AttributeError, then silence."""
    wrong = libraries.folder() / libraries._file("nn/nms")
    libraries._library("image/nchw_to_nhwc").replace(wrong)
    library = libraries.open_library("nn/nms")
    assert libraries.symbol(library, "two", True) is not None and libraries.symbol(library, "suppress", False) is None and caplog.messages == []
    assert all(libraries.symbol(each, "suppress", True) is None for each in (library, library, None))
    assert caplog.messages == [f"{wrong} has no function suppress: torch computes the same more slowly. Delete it, or install remexnet again"]


def test_they_are_available_with_a_compiler_or_a_library_that_was_kept(home, monkeypatch):
    assert libraries.available()
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CXX", raising=False)
    assert not libraries.available()
    monkeypatch.undo()
    monkeypatch.setenv("MXNET_HOME", str(home))
    libraries._library("nn/nms")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert libraries.available()


def test_a_file_in_the_place_of_the_folder(home):
    """The folder that takes its place is gone with its process."""
    (home / "kernels").write_text("")
    words, log = run(home)
    assert words[0] == "True" and "but compiled for this process alone: File exists" in log and not os.path.exists(words[1])


def test_a_link_of_ones_own_is_followed(home, library):
    os.rename(home / "kernels", home / "elsewhere")
    os.symlink(home / "elsewhere", home / "kernels")
    before = (home / "elsewhere" / library.name).stat().st_ino
    assert loads(home / "kernels") and library.stat().st_ino == before


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["folder", "link", "library"])
def test_what_belongs_to_another_user_is_not_loaded(home, library, what, caplog):
    if what == "folder":
        os.chown(home / "kernels", 4321, 4321)
    elif what == "link":
        os.rename(home / "kernels", home / "elsewhere")
        os.symlink(home / "elsewhere", home / "kernels")
        os.lchown(home / "kernels", 4321, 4321)
    else:
        os.chown(library, 4321, 4321)
    assert loads(home / "kernels" if what == "library" else libraries._private())
    if what == "library":
        assert caplog.messages == [] and library.stat().st_uid == 0
    else:
        assert "belongs to another user" in caplog.text


def test_without_a_home_nothing_is_made_in_the_working_folder(tmp_path):
    code = "import os; os.path.expanduser = lambda path: path\nfrom mxnet.base import data_dir\nprint(data_dir())"
    words, _ = run(tmp_path, code, MXNET_HOME=None)
    assert not words[0].startswith("~") and words[0].endswith(f"mxnet-{os.getuid()}")


@pytest.mark.parametrize("most, level, allowed", [
    ("AVX2", "x86-64-v3", ["x86-64-v3"]), ("avx2_vnni", "x86-64-v3", ["x86-64-v3"]), ("SSE41", "x86-64-v2", []),
    ("DEFAULT", "native", ["x86-64-v4-amx", "x86-64-v4-bf16", "x86-64-v4", "x86-64-v3"])])
def test_programs_may_be_held_to_fewer_instructions(most, level, allowed, monkeypatch):
    script = "from mxnet.kernels.runtime import libraries; print(*libraries.FLAGS)"
    found = subprocess.run([sys.executable, "-c", script], env={**os.environ, "ONEDNN_MAX_CPU_ISA": most}, capture_output=True, text=True, check=True)
    assert found.stdout.split()[0] == f"-march={level}"
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", most)
    monkeypatch.setattr(libraries.processor, "flags", lambda: frozenset().union(*(each.needs for each in build.LEVELS)))
    monkeypatch.setattr(libraries.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(build, "packaged", lambda folder, name, each, torch: pathlib.Path(__file__))
    monkeypatch.setattr(build, "is_complete", lambda content: True)
    assert [name for _, name in libraries._packaged("nn/nms")] == allowed
