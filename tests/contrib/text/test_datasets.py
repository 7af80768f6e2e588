import hashlib
import zipfile

import numpy as np
import pytest
from mxnet.gluon.contrib.data.text import WikiText2, WikiText103

import mxnet as mx
from mxnet.contrib.text import datasets

TEXT = "a b c d\n\n = x = \n e f g a b\n"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(url, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(datasets, "download", refuse)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "wiki.train.tokens").write_text(TEXT)
    (tmp_path / "wiki.test.tokens").write_text("x y a")
    return str(tmp_path)


@pytest.mark.filterwarnings("ignore:.*is not the file that was published")
@pytest.mark.parametrize("cls", [WikiText2, WikiText103])
def test_words_in_a_row(root, cls):
    data = cls(root, seq_len=3)
    values = [(x.asnumpy().tolist(), y.asnumpy().tolist()) for x, y in data]
    assert values == [([3, 4, 5], [4, 5, 6]), ([6, 1, 2], [1, 2, 10]), ([10, 2, 1], [2, 1, 7]), ([7, 8, 9], [8, 9, 3])]
    assert len(data) == 4 and data[0][0].dtype is data[0][1].dtype is np.int32 and type(data[0][0]) is mx.nd.NDArray
    assert data.vocabulary.idx_to_token == ["<unk>", "<eos>", "=", "a", "b", "c", "d", "e", "f", "g", "x"] and data.frequencies["="] == 2
    test = cls(root, segment="test", vocab=data.vocabulary, seq_len=1)
    assert [y.asscalar() for _, y in test] == [0, 3, 1] and test.frequencies["y"] == 1  # y is unknown
    assert len(cls(root, segment="test")) == 0


def test_a_text_of_ones_own_is_told_from_the_published_one(root, monkeypatch):
    with pytest.warns(UserWarning, match="wiki.train.tokens is not the file that was published as WikiText2"):
        WikiText2(root)
    monkeypatch.setitem(WikiText2._segments, "train", ("wiki.train.tokens", hashlib.sha1(TEXT.encode()).hexdigest()))
    assert len(WikiText2(root, seq_len=14)) == 1


@pytest.mark.filterwarnings("ignore:.*is not the file that was published")
def test_the_archive_is_downloaded_and_unpacked(tmp_path, monkeypatch):
    asked = []

    def download(url, path, sha1_hash):
        asked.append((url, sha1_hash))
        with zipfile.ZipFile(tmp_path / "archive.zip", "w") as f:
            for name in ("wikitext-2/wiki.valid.tokens", "wikitext-2/", "../wiki.test.tokens", "elsewhere.txt"):
                f.writestr(name, "" if name.endswith("/") else TEXT)
        return str(tmp_path / "archive.zip")

    monkeypatch.setattr(datasets, "download", download)
    monkeypatch.setenv("MXNET_GLUON_REPO", "http://mirror")
    root = tmp_path / "root"
    assert len(WikiText2(str(root), segment="validation", seq_len=7)) == 2
    assert asked == [("http://mirror/gluon/dataset/wikitext-2/wikitext-2-v1.zip", "3c914d17d80b1459be871a5039ac23e752a53cbe")]
    assert sorted(p.name for p in root.iterdir()) == ["wiki.test.tokens", "wiki.valid.tokens"]


def test_what_is_missing(tmp_path, root):
    with pytest.raises(mx.MXNetError, match=r"^WikiText103: .*wiki.valid.tokens is missing, and wikitext-103-v1.zip cannot be downloaded from "
                                            r"http.*/gluon/dataset/wikitext-103/wikitext-103-v1.zip \(no network\); put wiki.valid.tokens"):
        WikiText103(root, segment="validation")
    with pytest.raises(ValueError, match="segment must be one of 'train', 'validation', 'test', received 'valid'"):
        WikiText2(root, segment="valid")
    with pytest.raises(ValueError, match="seq_len must be at least 1, received 0"):
        WikiText2(root, seq_len=0)
    (tmp_path / "wiki.train.tokens").write_bytes(b"\xff")
    with pytest.raises(mx.MXNetError, match="wiki.train.tokens is not a text file"), pytest.warns(UserWarning):
        WikiText2(root)


def test_a_text_that_was_unpacked_in_part_is_not_there(tmp_path, monkeypatch):
    def download(url, path, sha1_hash):
        with zipfile.ZipFile(tmp_path / "archive.zip", "w") as f:
            f.writestr("wikitext-2/wiki.test.tokens", TEXT)
        return str(tmp_path / "archive.zip")

    def break_off(source, target):
        target.write(source.read(3))
        raise KeyboardInterrupt

    monkeypatch.setattr(datasets, "download", download)
    monkeypatch.setattr(datasets.shutil, "copyfileobj", break_off)
    with pytest.raises(KeyboardInterrupt):
        WikiText2(str(tmp_path / "root"), segment="test")
    assert list((tmp_path / "root").iterdir()) == []
