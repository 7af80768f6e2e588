import pytest

import mxnet as mx


def test_load_says_why_it_cannot(tmp_path):
    library, text = tmp_path / "ops.so", tmp_path / "ops.txt"
    library.touch()
    text.touch()
    for path, words in ((str(tmp_path / "no.so"), "does NOT exist"), (str(text), "is NOT a library file"),
                        (str(library), "no libmxnet to load it into; write the operators in Python")):
        with pytest.raises(mx.MXNetError, match=words):
            mx.library.load(path)


def test_load_wants_an_absolute_path(tmp_path, monkeypatch):
    (tmp_path / "ops.so").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mx.MXNetError, match="is not an absolute path"):
        mx.library.load("ops.so", verbose=False)
