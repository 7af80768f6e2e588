import re

import pytest

from mxnet.contrib.text import _pretrained, embedding


def test_published_files():
    assert len(embedding.get_pretrained_file_names("fasttext")) == 327 and len(embedding.get_pretrained_file_names("glove")) == 10
    assert set(embedding.get_pretrained_file_names()) >= {"fasttext", "glove"}
    assert embedding.GloVe._get_download_file_name("glove.6B.50d.txt") == "glove.6B.zip"
    assert embedding.FastText._get_pretrained_file_url("wiki.simple.vec").endswith("gluon/embeddings/fasttext/wiki.simple.zip")
    with pytest.raises(KeyError, match="Cannot find `embedding_name` nothing"):
        embedding.get_pretrained_file_names("nothing")
    with pytest.raises(KeyError, match="Cannot find pretrained file x for token embedding glove"):
        embedding.create("glove", pretrained_file_name="x")


@pytest.mark.parametrize("table, suffix", [
    ("GLOVE_FILES", ".txt"), ("GLOVE_ARCHIVES", ".zip"), ("FASTTEXT_FILES", ".vec"), ("FASTTEXT_ARCHIVES", ".zip")])
def test_every_file_has_a_sum(table, suffix):
    found = getattr(_pretrained, table)
    assert all(name.endswith(suffix) and re.fullmatch("[0-9a-f]{40}", total) for name, total in found.items())


def test_columns_of_a_table():
    text = "\na 1 2\nb 3 4\n"
    assert _pretrained._table(text, ".x") == {"a.x": "1", "b.x": "3"} and _pretrained._table(text, ".y", 2) == {"a.y": "2", "b.y": "4"}
