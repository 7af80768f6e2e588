"""Files are written whole or not at all, and errors name them."""
import errno
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import types

import pytest

from forked import python
from mxnet import MXNetError, files


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "a.bin"
    files.write_bytes(path, b"\x00\xff")
    assert files.read_bytes(str(path)) == files.read_bytes(f"file://{path}") == b"\x00\xff"
    with files.reading(path) as (f, size):
        assert (f.read(1), size) == (b"\x00", 2)
    files.write_bytes(f"file://{path}", "größe".encode())
    assert files.read_text(path) == "größe" and os.listdir(tmp_path) == ["a.bin"]


def test_everybody_who_may_read_other_files_may_read_these(tmp_path):
    old = os.umask(0o027)
    try:
        files.write_bytes(tmp_path / "a", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(tmp_path / "a").st_mode) == 0o640


def test_an_error_while_writing_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), files.atomic_write(path) as f:
        f.write(b"half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["a"]
    with pytest.raises(MXNetError, match="cannot write .*/a: No space left on device"), files.atomic_write(path) as f:
        raise OSError(28, "No space left on device")
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["a"]


def test_nobody_sees_a_file_that_is_being_written(tmp_path):
    path = tmp_path / "a"
    with files.atomic_write(path) as f:
        f.write(b"1")
        f.flush()
        assert not path.exists()
    assert path.read_bytes() == b"1"


def test_errors_name_the_file(tmp_path):
    with pytest.raises(MXNetError, match="cannot read .*nothing: No such file or directory"):
        files.read_bytes(tmp_path / "nothing")
    with pytest.raises(MXNetError, match="cannot read .*nothing"), files.reading(tmp_path / "nothing"):
        pass
    with pytest.raises(MXNetError, match="cannot write .*folder/a: No such file or directory"):
        files.write_bytes(tmp_path / "folder" / "a", b"")
    (tmp_path / "b").write_bytes(b"ab\xff")
    with pytest.raises(MXNetError, match="b is not a text file: byte 2 is not UTF-8"):
        files.read_text(tmp_path / "b")


def test_remote_paths_go_through_fsspec(monkeypatch):
    assert [files.is_remote(p) for p in ("s3://bucket/a", "file:///tmp/a", "/tmp/a", "a")] == [True, False, False, False]
    fsspec = pytest.importorskip("fsspec")
    files.write_bytes("memory://folder/a", b"remote")
    assert fsspec.filesystem("memory").cat("/folder/a") == b"remote"
    with files.reading("memory://folder/a") as (f, size):
        assert (f.read(), size) == (b"remote", 6)


def test_without_fsspec_the_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(MXNetError, match=r"s3://bucket/a: .* needs fsspec; install it with: pip install 'remexnet\[remote\]'"):
        files.read_bytes("s3://bucket/a")


# -- what is replaced, and how ---------------------------------------------------------------------------------------

def test_mode_and_owner_stay(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"before")
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    files.write_bytes(path, b"after")
    found = path.stat()
    assert path.read_bytes() == b"after" and stat.S_IMODE(found.st_mode) == 0o600
    assert os.geteuid() != 0 or (found.st_uid, found.st_gid) == (1234, 2345)


def test_a_file_whose_owner_cannot_be_kept_is_written_in_place(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"before, and longer")
    number = path.stat().st_ino
    real = os.fstat

    def of_another(handle):
        found = list(real(handle))
        found[4] += 1
        return os.stat_result(found)

    def refuse(*args):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(files.os, "fstat", of_another)
    monkeypatch.setattr(files.os, "fchown", refuse)
    files.write_bytes(path, b"after")
    assert path.read_bytes() == b"after" and path.stat().st_ino == number and os.listdir(tmp_path) == ["a"]


def test_a_folder_that_takes_no_new_files_keeps_the_old_one_writable(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"before")

    def refuse(**kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.tempfile, "mkstemp", refuse)
    files.write_bytes(path, b"after")
    assert path.read_bytes() == b"after"
    with pytest.raises(MXNetError, match="cannot write .*/b: Permission denied"):
        files.write_bytes(tmp_path / "b", b"after")


def test_links_stay(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link, second = tmp_path / "folder" / "target", tmp_path / "link", tmp_path / "second"
    target.write_bytes(b"before")
    target.chmod(0o640)
    link.symlink_to("folder/target")
    second.symlink_to("link")
    files.write_bytes(second, b"after")
    assert second.is_symlink() and link.is_symlink() and not target.is_symlink()
    assert target.read_bytes() == b"after" and stat.S_IMODE(target.stat().st_mode) == 0o640
    dangling = tmp_path / "dangling"
    dangling.symlink_to("folder/new")
    files.write_bytes(dangling, b"new")
    assert dangling.is_symlink() and (tmp_path / "folder" / "new").read_bytes() == b"new"


def test_devices_are_written_to():
    before = os.stat("/dev/null")
    files.write_bytes("/dev/null", b"gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode) and os.stat("/dev/null").st_ino == before.st_ino
    if os.path.exists("/dev/full"):
        with pytest.raises(MXNetError, match="cannot write /dev/full: No space left on device"):
            files.write_bytes("/dev/full", b"x")


def test_pipes_are_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.write_bytes(path, b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_an_open_file_that_was_deleted_is_written_to(tmp_path):
    with open(tmp_path / "a", "w+b") as f:
        os.unlink(tmp_path / "a")
        files.write_bytes(f"/proc/self/fd/{f.fileno()}", b"through")
        assert f.read() == b"through"
    assert os.listdir(tmp_path) == []


def test_folders_and_files_of_others_are_refused(tmp_path, monkeypatch):
    with pytest.raises(MXNetError, match="cannot write .*: Is a directory"):
        files.write_bytes(tmp_path, b"x")
    path = tmp_path / "a"
    path.write_bytes(b"before")
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)  # root may write to all
    with pytest.raises(MXNetError, match="cannot write .*/a: Permission denied"):
        files.write_bytes(path, b"after")
    assert path.read_bytes() == b"before"


def test_names_may_be_as_long_as_the_system_allows(tmp_path):
    for name in ("x" * 255, "ü" * 127):
        files.write_bytes(tmp_path / name, b"x")
        assert (tmp_path / name).read_bytes() == b"x"


# -- writers that are killed -----------------------------------------------------------------------------------------

_WRITER = """
import os, sys
from mxnet import files
with files.atomic_write(sys.argv[1]) as f:
    f.write(b"half")
    f.flush()
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""


def _writer(path):
    process = subprocess.Popen([*python(), "-c", _WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.writer = int(process.stdout.readline())
    return process


def _end(process, kill):
    if kill:
        os.kill(process.writer, signal.SIGKILL)
        process.wait()  # stdin stays open until then: a writer that sees its end would finish
    process.communicate()
    assert process.returncode == (-signal.SIGKILL if kill else 0)


def test_what_killed_writers_left_is_removed_by_the_next_one_and_only_that(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"before")
    others = [tmp_path / ".a.bak", tmp_path / ".a.00000000.x.unfinished"]
    for other in others:
        other.write_bytes(b"another's")
    killed, alive, of_another_name = _writer(path), _writer(path), _writer(tmp_path / "a.b")
    try:
        _end(killed, kill=True)
        _end(of_another_name, kill=True)
        assert path.read_bytes() == b"before" and len(os.listdir(tmp_path)) == 6
        files.write_bytes(path, b"after")
        assert path.read_bytes() == b"after" and len(os.listdir(tmp_path)) == 5
    finally:
        _end(alive, kill=False)
    assert path.read_bytes() == b"half" and len(os.listdir(tmp_path)) == 4
    files.write_bytes(tmp_path / "a.b", b"b")
    assert sorted(os.listdir(tmp_path)) == sorted(["a", "a.b", *(o.name for o in others)])


def test_writers_in_threads_do_not_remove_each_others_files(tmp_path):
    path = tmp_path / "a"
    errors = []

    def write(content):
        try:
            for _ in range(50):
                files.write_bytes(path, content)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(bytes([i]) * 1000,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and os.listdir(tmp_path) == ["a"] and len(set(path.read_bytes())) == 1


def test_errors_are_those_of_python_and_of_mxnet(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        files.read_bytes(tmp_path / "nothing")
    assert isinstance(error.value, MXNetError) and error.value.errno == errno.ENOENT
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    with pytest.raises(files.FileError, match="cannot read .*: Is a directory"):
        files.read_bytes(tmp_path)
    with pytest.raises(files.FileError, match="cannot open a.*b: embedded null byte"):
        files.open_stream("a\0b")


class _Broken:
    """A service that fails as its library likes."""

    def open(self, *_):
        raise KeyError("no such bucket")

    url_to_fs = open


def test_whatever_a_remote_service_raises_is_a_file_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", _Broken())
    for use in (files.read_bytes, files.open_stream, files.begin, lambda path: files.write_bytes(path, b"a")):
        with pytest.raises(files.FileError, match="cannot .* s3://a/b: 'no such bucket'"):
            use("s3://a/b")


def test_a_remote_file_is_not_written_if_the_block_fails(monkeypatch):
    opened = []
    monkeypatch.setitem(sys.modules, "fsspec", types.SimpleNamespace(open=lambda path, mode: opened.append(path)))
    with pytest.raises(ZeroDivisionError), files.atomic_write("s3://a/b") as f:
        f.write(b"half")
        raise ZeroDivisionError
    assert opened == []


def test_several_files_take_their_places_as_one_step(tmp_path, monkeypatch):
    """A process that dies when the first has its name: whoever reads goes on."""
    a, b = tmp_path / "a", tmp_path / "b"

    def write(text):
        first, second = files.begin(a), files.begin(b)
        first.stream.write(text)
        second.stream.write(text)
        files.commit(first, second)

    write(b"1")
    rename = os.replace
    for dies_at, expected in ((0, b"1"), (1, b"1"), (2, b"2")):
        calls = iter(range(9))
        monkeypatch.setattr(os, "replace", lambda *paths, stop=dies_at, calls=calls: rename(*paths) if next(calls) < stop else os._exit(0))
        pid = os.fork()
        if pid == 0:
            write(b"2")
        os.waitpid(pid, 0)
        monkeypatch.undo()
        files.recover(a, b)
        assert (a.read_bytes(), b.read_bytes()) == (expected, expected)
        write(b"1")
        assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_ctrl_c_does_not_tear_files_apart(tmp_path, monkeypatch):
    a, b = tmp_path / "a", tmp_path / "b"
    rename = os.replace
    for interrupted_at in range(3):
        files.write_bytes(a, b"1")
        files.write_bytes(b, b"1")
        first, second = files.begin(a), files.begin(b)
        first.stream.write(b"2")
        second.stream.write(b"2")

        def interrupt(*paths, calls=iter(range(9)), stop=interrupted_at):
            rename(*paths)
            if next(calls) == stop:
                raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            files.commit(first, second)
        monkeypatch.undo()
        assert a.read_bytes() == b.read_bytes() == (b"1" if interrupted_at == 0 else b"2")
        assert [n for n in os.listdir(tmp_path) if n.endswith(".unfinished")] == []


def test_this_process_reads_what_it_is_writing(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    unfinished = files.begin(path)
    unfinished.stream.write(b"new")
    with files.open_stream(path) as f:
        assert f.read() == b"new" and path.read_bytes() == b"old"
    unfinished.discard()
    with files.open_stream(path) as f:
        assert f.read() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_scratch_folders_of_killed_processes_are_removed(tmp_path):
    pid = os.fork()
    if pid == 0:
        with files.scratch_folder(tmp_path / "a") as folder:
            open(f"{folder}/part", "w").close()
            os._exit(0)
    os.waitpid(pid, 0)
    assert len(os.listdir(tmp_path)) == 1
    with files.scratch_folder(tmp_path / "a") as one, files.scratch_folder(tmp_path / "a") as other:
        assert sorted(os.listdir(tmp_path)) == sorted([os.path.basename(one), os.path.basename(other)])
    assert os.listdir(tmp_path) == []


def test_a_ctrl_c_in_a_destructor_comes_again():
    class Interrupted:
        def __del__(self):
            files.at_the_end(_raise)

    def _raise():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Interrupted()
        time.sleep(5)


def test_a_ctrl_c_while_a_file_is_opened_leaves_no_descriptor(tmp_path, monkeypatch):
    real = tempfile.mkstemp

    def interrupted(**options):
        made = real(**options)
        signal.raise_signal(signal.SIGINT)
        return made

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        files.write_bytes(tmp_path / "a", b"old")
        held = os.listdir("/proc/self/fd")
        monkeypatch.setattr(tempfile, "mkstemp", interrupted)
        with pytest.raises(KeyboardInterrupt):
            files.write_bytes(tmp_path / "a", b"new")
    finally:
        signal.signal(signal.SIGINT, before)
    assert os.listdir(tmp_path) == ["a"] and (tmp_path / "a").read_bytes() == b"old" and len(os.listdir("/proc/self/fd")) == len(held)


def test_what_killed_writers_of_numbered_files_left_is_removed(tmp_path):
    for name in ("a-7.params", "a-8.params", "b-7.params"):
        (tmp_path / f"{files._prefix(name)}x.unfinished").write_bytes(b"")
    writing = files.Unfinished(tmp_path / "a-9.params")
    files.remove_left(tmp_path, r"a-\d+\.params")
    left = sorted(os.listdir(tmp_path))
    assert [name[:11] for name in left] == [".a-9.params", ".b-7.params"]
    writing.commit()
