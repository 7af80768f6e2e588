import hashlib
import io
import os
import pathlib
import zipfile

import pytest

import mxnet as mx
from mxnet.gluon.model_zoo import model_store, vision


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A server with one model; the parameters of it, and what was asked for."""
    net = vision.resnet18_v1(classes=2, thumbnail=True)
    net.initialize()
    net(mx.nd.zeros((1, 3, 32, 32)))
    published = tmp_path / "published.params"
    net.save_parameters(str(published))
    content = published.read_bytes()
    monkeypatch.setitem(model_store._model_sha1, "resnet18_v1", hashlib.sha1(content).hexdigest())
    state = {"content": content, "asked": [], "member": f"resnet18_v1-{model_store.short_hash('resnet18_v1')}.params"}

    def download(url, path, overwrite):
        state["asked"].append(url)
        with zipfile.ZipFile(path, "w") as zipped:
            zipped.writestr(state["member"], state["content"])
        return path

    monkeypatch.setattr(model_store, "download", download)
    return state


def test_downloads_once(server, tmp_path, monkeypatch):
    monkeypatch.setenv("MXNET_GLUON_REPO", "https://example.org/mx")
    root = str(tmp_path / "models")
    path = model_store.get_model_file("resnet18_v1", root=root)
    assert path == os.path.join(root, server["member"])
    assert pathlib.Path(path).read_bytes() == server["content"]
    assert server["asked"] == [f"https://example.org/mx/gluon/models/{server['member'].replace('.params', '.zip')}"]
    assert model_store.get_model_file("resnet18_v1", root=root) == path
    assert len(server["asked"]) == 1
    assert os.listdir(root) == [server["member"]]


def test_replaces_a_damaged_file(server, tmp_path, caplog):
    path = tmp_path / server["member"]
    path.write_bytes(b"half")
    model_store.get_model_file("resnet18_v1", root=str(tmp_path))
    assert path.read_bytes() == server["content"]
    assert "is damaged" in caplog.text


@pytest.mark.parametrize(("change", "error", "text"), [
    ({"content": b"other"}, ValueError, "Downloaded file has different hash"),
    ({"member": "evil/../../x"}, mx.MXNetError, "is no archive of resnet18_v1-"),
])
def test_refuses_what_was_not_published(server, tmp_path, change, error, text):
    server.update(change)
    with pytest.raises(error, match=text):
        model_store.get_model_file("resnet18_v1", root=str(tmp_path / "models"))
    assert os.listdir(tmp_path / "models") == []


@pytest.mark.parametrize(("method", "change", "text"), [
    (zipfile.ZIP_LZMA, lambda c: c, "is compressed by method 14, expected is none, or deflate"),
    (zipfile.ZIP_STORED, lambda c: c[:-8] + b"\xff\xff\xff\x7f" + c[-4:], "Invalid argument|is no archive of a.params")])
def test_archives_that_no_system_can_read(tmp_path, method, change, text):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as zipped:
        zipped.writestr("a.params", b"content")
    (tmp_path / "a.zip").write_bytes(change((tmp_path / "a.zip").read_bytes()))
    with pytest.raises(mx.MXNetError, match=text):
        model_store._extract(str(tmp_path / "a.zip"), "a.params", io.BytesIO())


def test_says_where_to_put_a_file_that_cannot_be_had(monkeypatch, tmp_path):
    def refuse(url, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(model_store, "download", refuse)
    with pytest.raises(mx.MXNetError, match="vgg11-dd221b16.zip .no network.; put them there as vgg11-dd221b16.params"):
        model_store.get_model_file("vgg11", root=str(tmp_path))


def test_pretrained(server, tmp_path):
    net = vision.resnet18_v1(pretrained=True, root=str(tmp_path / "models"), classes=2, thumbnail=True)
    assert net.output.weight.data().shape == (2, 512)


def test_unknown_model():
    with pytest.raises(ValueError, match="Pretrained model for lenet is not available; there are: alexnet, densenet121"):
        model_store.get_model_file("lenet")
    assert model_store.short_hash("alexnet") == "44335d1f"


def test_purge(tmp_path):
    for name in ("a.params", "b.params", "c.json"):
        (tmp_path / name).write_bytes(b"")
    model_store.purge(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]
