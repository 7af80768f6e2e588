import functools
import http.server
import importlib.util
import os
import pathlib
import random
import re
import subprocess
import threading

import numpy as np
import pytest

import mxnet as mx
from forked import python
from mxnet import files, remote
from mxnet.base import MXNetError
from mxnet.recordio import MXIndexedRecordIO, MXRecordIO

CONTENT = random.Random(0).randbytes(300_000)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(remote, "BLOCK_SIZE", 1 << 12)


class Source:
    """What ReadAhead fetches from; notes the blocks asked for."""

    def __init__(self, content=CONTENT):
        self.content, self.asked = content, []

    def __call__(self, begin, end):
        self.asked.append(begin >> 12)
        return self.content[begin:end]

    def open(self):
        return remote.ReadAhead(self, len(self.content), "x")


def test_what_is_read_in_order_is_fetched_ahead(small_blocks):
    source = Source()
    with source.open() as f:
        f.read(10)
        assert source.asked == [0]
        f.seek(1 << 12)
        f.read(10)
        f.seek(2 << 12)
        f.read(10)
        f.seek(3 << 12)
        f.read(10)
        for future in list(f.blocks.values()):
            future.result()
        assert sorted(source.asked) == list(range(3 + 1 + 7))  # 1, 3, then 7 blocks ahead
        f.seek(0)
        assert f.readall() == CONTENT
        assert max(map(source.asked.count, set(source.asked))) <= 2


def test_what_is_read_here_and_there_is_not(small_blocks):
    source = Source()
    with source.open() as f:
        for block in (40, 7, 60, 3, 22):
            f.seek(block << 12)
            assert f.read(100) == CONTENT[block << 12:][:100]
    assert source.asked == [40, 7, 60, 3, 22]


def test_any_order(small_blocks):
    rng = random.Random(5)
    with Source().open() as f:
        for _ in range(200):
            at, length = rng.randrange(len(CONTENT) + 10), rng.randrange(1, 20_000)
            f.seek(at)
            found = bytearray()
            while piece := f.read(length - len(found)) if len(found) < length else b"":
                found += piece
            assert found == CONTENT[at:at + length]
        assert len(f.blocks) <= remote.BLOCKS_AHEAD + remote.BLOCKS_BEHIND + 1
        assert f.seek(-3, os.SEEK_END) == len(CONTENT) - 3 and f.read() == CONTENT[-3:] and f.read(5) == b""


def test_an_error_is_raised_where_its_bytes_are_read_and_tried_again(small_blocks):
    source = Source()
    with source.open() as f:
        source.content = CONTENT[:5000]
        f.seek(4096)
        with pytest.raises(MXNetError, match="x changed while it was read: bytes 4096 to 8192 were asked for, of 300000, and 904 came"):
            f.read(1)
        source.content = CONTENT
        assert f.read(1) == CONTENT[4096:4097]


_MISSING = """
import sys
import mxnet as mx
from mxnet import files
packages = {"s3": "s3fs", "gs": "gcsfs", "hdfs": "pyarrow", "http": "aiohttp", "https": "aiohttp"}
sys.modules.update(dict.fromkeys(packages.values()))
for protocol, package in packages.items():
    path = protocol + "://127.0.0.1/b"
    for use in (files.open_stream, files.read_bytes, lambda p: mx.recordio.MXRecordIO(p, "w"), mx.nd.load):
        try:
            use(path)
        except mx.MXNetError as error:
            assert f"{path}: {protocol}:// needs the package {package}, and it cannot be imported" in str(error), error
            assert str(error).endswith("install it with: pip install 'remexnet[remote]'"), error
        else:
            raise AssertionError(path)
"""


def test_what_is_missing_is_named():
    pytest.importorskip("fsspec")
    subprocess.run([*python(), "-c", _MISSING], check=True, timeout=120)


@pytest.mark.parametrize("protocol, package", remote.PACKAGES.items())
def test_the_extra_installs_what_fsspec_imports(protocol, package):
    registry = pytest.importorskip("fsspec.registry")
    known = registry.known_implementations[protocol]
    assert package in (known["class"].partition(".")[0], *known.get("err", "").replace('"', "").split())
    project = (pathlib.Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
    extra = re.search(r"^remote = \[(.*)\]$", project, re.MULTILINE)[1]
    assert {package, "fsspec"} <= {re.match(r"\w+", name)[0] for name in re.findall(r'"([^"]+)"', extra)}
    if importlib.util.find_spec(package):
        assert protocol in registry.get_filesystem_class(protocol).protocol


def test_a_file_system_that_nobody_knows():
    pytest.importorskip("fsspec")
    with pytest.raises(MXNetError, match="cannot open nowhere://a: Protocol not known: nowhere"):
        files.open_stream("nowhere://a")


def _write_all(folder):
    """One of each kind of file that iterators read."""
    with MXIndexedRecordIO(f"{folder}/a.idx", f"{folder}/a.rec", "w") as out:
        for i in range(300):
            out.write_idx(i, b"%d " % i * (i * 7 % 90))
    files.write_bytes(f"{folder}/a.csv", b"".join(b"%d,%d\n" % (i, i * i) for i in range(2000)))
    files.write_bytes(f"{folder}/a.svm", b"".join(b"%d %d:1\n" % (i, i % 7) for i in range(2000)))
    files.write_bytes(f"{folder}/a.params", files.read_bytes(_params()))


@functools.cache
def _params():
    import tempfile
    path = os.path.join(tempfile.mkdtemp(), "a.params")
    mx.nd.save(path, {"x": mx.nd.arange(5)})
    return path


def _check_all(folder):
    with MXRecordIO(f"{folder}/a.rec", "r") as records:
        assert [len(record) for record in iter(records.read, None)] == [len(b"%d " % i) * (i * 7 % 90) for i in range(300)]
    with MXIndexedRecordIO(f"{folder}/a.idx", f"{folder}/a.rec", "r") as records:
        for i in (299, 0, 150, 151, 152, 3):
            assert records.read_idx(i) == b"%d " % i * (i * 7 % 90)
    rows = [b.data[0].asnumpy() for b in mx.io.CSVIter(data_csv=f"{folder}/a.csv", data_shape=(2,), batch_size=500)]
    assert np.array_equal(np.concatenate(rows)[:, 0], np.arange(2000))
    labels = [b.label[0].asnumpy() for part in range(3) for b in mx.io.LibSVMIter(
        data_libsvm=f"{folder}/a.svm", data_shape=(7,), batch_size=1, num_parts=3, part_index=part)]
    assert np.array_equal(np.concatenate(labels), np.arange(2000))
    assert mx.nd.load(f"{folder}/a.params")["x"].asnumpy().tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(MXNetError, match=f"cannot open {folder}/none.rec"):
        MXRecordIO(f"{folder}/none.rec", "r")


def test_memory(small_blocks):
    pytest.importorskip("fsspec")
    _write_all("memory://remote-test")
    _check_all("memory://remote-test")


class Handler(http.server.SimpleHTTPRequestHandler):
    """A static site; `parts` of its server says whether it knows ranges."""

    def do_GET(self):
        wanted = self.headers.get("Range")
        path = self.translate_path(self.path)
        if not (self.server.parts and wanted and os.path.isfile(path)):
            return super().do_GET()
        with open(path, "rb") as f:
            content = f.read()
        begin, end = (int(n) for n in wanted.removeprefix("bytes=").split("-"))
        part = content[begin:end + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {begin}-{begin + len(part) - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(part)
        self.server.given += 1

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("parts", [True, False])
def test_http(tmp_path, small_blocks, parts):
    pytest.importorskip("aiohttp")
    _write_all(str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(tmp_path)))
    server.parts, server.given = parts, 0
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        _check_all(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert (server.given > 20) == parts
