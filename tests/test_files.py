"""Files are written whole or not at all, and errors name them."""
import os
import stat

import pytest

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
    with pytest.raises(MXNetError, match=r"s3://bucket/a: .* needs fsspec; install it with: pip install 'remex\[remote\]'"):
        files.read_bytes("s3://bucket/a")
