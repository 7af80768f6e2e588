import bz2
import functools
import gzip
import http.server
import struct
import threading
import zipfile

import numpy as np
import pytest

import mxnet as mx
from mxnet import test_utils as tu
from mxnet.test_utils import data

NAMES = {"train-labels-idx1-ubyte": (3,), "train-images-idx3-ubyte": (3, 28, 28), "t10k-labels-idx1-ubyte": (2,),
         "t10k-images-idx3-ubyte": (2, 28, 28)}


@pytest.fixture
def mnist(tmp_path, monkeypatch):
    """A folder with a small MNIST, as the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "home"))
    for name, shape in NAMES.items():
        values = (np.arange(np.prod(shape)) % 251).astype(np.uint8)
        content = struct.pack(f">I{len(shape)}I", 0x800 + len(shape), *shape) + values.tobytes()
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    return tmp_path


def test_get_mnist(mnist):
    digits = tu.get_mnist()
    assert digits["train_data"].shape == (3, 1, 28, 28) and digits["train_data"].dtype == np.float32
    assert digits["train_data"][0, 0, 0, :3].tolist() == [0, np.float32(1 / 255), np.float32(2 / 255)]
    assert digits["test_label"].tolist() == [0, 1] and digits["test_label"].dtype == np.int8


def test_unpacked_files_in_the_data_folder(mnist):
    tu.get_mnist_ubyte()
    assert sorted(p.name for p in (mnist / "data").iterdir()) == sorted(NAMES)
    for path in mnist.glob("*.gz"):
        path.unlink()
    assert tu.get_mnist()["train_label"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:6], lambda b: b"", lambda b: b"\0\0\x0d\x01" + b[4:]])
def test_damaged_files(mnist, damage):
    path = mnist / "train-labels-idx1-ubyte.gz"
    path.write_bytes(gzip.compress(damage(gzip.decompress(path.read_bytes()))))
    with pytest.raises(mx.MXNetError, match="train-labels-idx1-ubyte.gz is not an IDX file of bytes, or is truncated"):
        tu.get_mnist()


def test_truncated_gzip(mnist):
    path = mnist / "train-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(mx.MXNetError, match="train-labels-idx1-ubyte.gz is damaged"):
        tu.get_mnist()


def test_missing_files_say_where_to_put_them(mnist, monkeypatch):
    def refuse(url, **kwargs):
        raise OSError(f"no network to {url}")

    monkeypatch.setattr(data, "download", refuse)
    (mnist / "train-images-idx3-ubyte.gz").unlink()
    with pytest.raises(mx.MXNetError, match="train-images-idx3-ubyte.gz is in none of the folders .*data.*no network to http.*put the file"):
        tu.get_mnist()


def test_mnist_comes_from_a_server(mnist, monkeypatch):
    folder = mnist / "site" / "gluon" / "dataset" / "mnist"
    folder.mkdir(parents=True)
    for path in mnist.glob("*.gz"):
        path.rename(folder / path.name)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(mnist / "site")))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("MXNET_GLUON_REPO", f"http://127.0.0.1:{server.server_port}")
    try:
        assert tu.get_mnist()["test_label"].tolist() == [0, 1]
        assert sorted(p.name for p in (mnist / "home/datasets/mnist").iterdir()) == sorted(f"{name}.gz" for name in NAMES)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert tu.get_mnist()["train_label"].tolist() == [0, 1, 2]  # from the copies


def test_a_download_that_is_no_zip_file_is_not_kept(mnist, monkeypatch):
    fake_download(monkeypatch, {"http://x/a.zip": b"<html>"})
    with pytest.raises(mx.MXNetError, match="what http://x/a.zip gave as a.zip is no zip file"):
        tu.get_zip_data(str(mnist), "http://x/a.zip", "a.zip")
    assert not (mnist / "a.zip").exists()


def fake_download(monkeypatch, files):
    """Downloads come from a dict of contents by URL; returns the list of addresses asked for."""
    asked = []

    def download(url, path=None, overwrite=False, retries=5):
        asked.append(url)
        with open(path, "wb") as f:
            f.write(files[url])
        return path

    from mxnet.gluon import utils
    monkeypatch.setattr(utils, "download", download)
    return asked


def test_download(tmp_path, monkeypatch):
    asked = fake_download(monkeypatch, {"http://x/a.txt": b"content"})
    assert tu.download("http://x/a.txt", dirname=str(tmp_path)) == str(tmp_path / "a.txt")
    assert tu.download("http://x/a.txt", fname=str(tmp_path / "b.txt")) == str(tmp_path / "b.txt")
    assert asked == ["http://x/a.txt"] * 2 and (tmp_path / "b.txt").read_bytes() == b"content"
    with pytest.raises(ValueError, match="should be at least 0, received -1"):
        tu.download("http://x/a.txt", retries=-1)


def test_download_model(tmp_path, monkeypatch):
    address = f"{tu.data._SERVER}/models/imagenet/resnet/50-layers/resnet-50"
    asked = fake_download(monkeypatch, dict.fromkeys((f"{address}-symbol.json", f"{address}-0000.params", "s", "p"), b"x"))
    prefix = str(tmp_path / "models" / "imagenet1k-resnet-50")
    assert tu.download_model("imagenet1k-resnet-50", str(tmp_path / "models")) == (prefix, 0)
    assert (tmp_path / "models" / "imagenet1k-resnet-50-0000.params").exists() and len(asked) == 2
    assert tu.download_model("unknown") == (None, 0)
    assert tu.download_model("own", str(tmp_path), {"own": {"symbol": "s", "params": "p"}}) == (str(tmp_path / "own"), 0)
    with pytest.raises(mx.MXNetError, match="the address `params` of own is missing"):
        tu.download_model("own", str(tmp_path), {"own": {"symbol": "s"}})


def test_archives(tmp_path, monkeypatch):
    archive = tmp_path / "source.zip"
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("inside.txt", "hello")
    fake_download(monkeypatch, {"z": archive.read_bytes(), "b": bz2.compress(b"lines")})
    tu.get_zip_data(str(tmp_path), "z", "x.zip")
    assert (tmp_path / "inside.txt").read_text() == "hello"
    tu.get_bz2_data(str(tmp_path), "lines.txt", "b", "lines.bz2")
    assert (tmp_path / "lines.txt").read_bytes() == b"lines" and not (tmp_path / "lines.bz2").exists()


def test_dummy_iter():
    real = mx.io.NDArrayIter(np.arange(6).reshape(6, 1), batch_size=2)
    dummy = tu.DummyIter(real)
    assert [b.data[0].asnumpy().ravel().tolist() for b, _ in zip(dummy, range(3))] == [[0, 1]] * 3
    assert dummy.batch_size == 2 and dummy.provide_data == real.provide_data


def test_im2rec_path(tmp_path, monkeypatch):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "im2rec.py").touch()
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    assert tu.get_im2rec_path() == str(tmp_path / "tools" / "im2rec.py")


def test_an_archive_that_is_damaged_leaves_nothing(tmp_path, monkeypatch):
    archive = tmp_path / "source.zip"
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("first.txt", "hello")
        z.writestr("second.txt", "world")
    damaged = archive.read_bytes().replace(b"world", b"w0rld")
    fake_download(monkeypatch, {"z": damaged, "b": bz2.compress(b"lines" * 1000)[:-9], "n": b"none"})
    with pytest.raises(mx.MXNetError, match="what z gave as x.zip is no zip file .Bad CRC-32 for file 'second.txt'"):
        tu.get_zip_data(str(tmp_path / "z"), "z", "x.zip")
    for address in ("b", "n"):
        with pytest.raises(mx.MXNetError, match=f"what {address} gave as lines.bz2 cannot be unpacked"):
            tu.get_bz2_data(str(tmp_path), "lines.txt", address, "lines.bz2")
    assert list((tmp_path / "z").iterdir()) == [] and [p.name for p in tmp_path.iterdir() if p.is_file()] == ["source.zip"]


def test_archives_that_ask_for_much_memory_are_refused(tmp_path, monkeypatch):
    archive = tmp_path / "source.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_LZMA) as z:
        z.writestr("first.txt", "hello")
    fake_download(monkeypatch, {"z": archive.read_bytes()})
    with pytest.raises(mx.MXNetError, match="first.txt is compressed by method 14, expected is none, or deflate"):
        tu.get_zip_data(str(tmp_path), "z", "x.zip")
