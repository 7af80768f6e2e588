import collections

import numpy as np
import pytest

from mxnet import nd
from mxnet.contrib.text import embedding, vocab


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "my.vec"
    file.write_text("2 3\na 0.1 0.2 0.3\nb 1 2 3\na 9 9 9\n")
    return str(file)


@pytest.fixture
def vectors(path):
    with pytest.warns(UserWarning, match="skipped, (a second vector for token a|.* looks like a header)"):
        return embedding.CustomEmbedding(path)


def close(array, values):
    np.testing.assert_allclose(array.asnumpy(), np.array(values, "float32"))


def test_reads_a_file(vectors):
    assert vectors.idx_to_token == ["<unk>", "a", "b"] and vectors.vec_len == 3
    close(vectors.idx_to_vec, [[0, 0, 0], [.1, .2, .3], [1, 2, 3]])


def test_the_file_may_know_the_unknown_token(tmp_path):
    file = tmp_path / "u.txt"
    file.write_text("<unk>;5;6\nx;1;2\n")
    v = embedding.CustomEmbedding(str(file), elem_delim=";", init_unknown_vec=nd.ones)
    close(v.idx_to_vec, [[5, 6], [1, 2]])
    file.write_text("x;1;2\n")
    close(embedding.CustomEmbedding(str(file), elem_delim=";", init_unknown_vec=nd.ones, reserved_tokens=["<pad>"]).idx_to_vec,
          [[1, 1], [0, 0], [1, 2]])


def test_looks_up(vectors):
    close(vectors.get_vecs_by_tokens("b"), [1, 2, 3])
    close(vectors.get_vecs_by_tokens(["a", "B"]), [[.1, .2, .3], [0, 0, 0]])
    close(vectors.get_vecs_by_tokens(["B"], lower_case_backup=True), [[1, 2, 3]])


def test_updates(vectors):
    vectors.update_token_vectors("a", nd.array([7, 8, 9]))
    vectors.update_token_vectors(["b", "<unk>"], nd.array([[1, 1, 1], [2, 2, 2]]))
    close(vectors.idx_to_vec, [[2, 2, 2], [7, 8, 9], [1, 1, 1]])
    with pytest.raises(ValueError, match="Token z is unknown"):
        vectors.update_token_vectors("z", nd.array([7, 8, 9]))
    with pytest.raises(AssertionError, match=r"must have shape \(1, 3\), received \(2,\)"):
        vectors.update_token_vectors("a", nd.array([7, 8]))
    with pytest.raises(AssertionError, match="must be an NDArray of 2 axes"):
        vectors.update_token_vectors(["a", "b"], nd.array([7, 8, 9]))


@pytest.mark.filterwarnings("ignore")
def test_for_a_vocabulary(path, vectors):
    words = vocab.Vocabulary(collections.Counter(["b", "c"]), reserved_tokens=["<pad>"])
    kept = embedding.CustomEmbedding(path, vocabulary=words)
    assert kept.idx_to_token == ["<unk>", "<pad>", "b", "c"] and kept.reserved_tokens == ["<pad>"]
    close(kept.idx_to_vec, [[0, 0, 0], [0, 0, 0], [1, 2, 3], [0, 0, 0]])
    both = embedding.CompositeEmbedding(words, [vectors, kept])
    assert both.vec_len == 6
    close(both.get_vecs_by_tokens("b"), [1, 2, 3, 1, 2, 3])
    with pytest.raises(AssertionError, match="must be an embedding or a list of embeddings"):
        embedding.CompositeEmbedding(words, [3])


def test_bad_files(tmp_path):
    file = tmp_path / "bad.vec"
    for text, match in (("a\n", "line 1: a token, ' ' and numbers expected"), ("a 1 2\nb 1 2 3\n", "line 2: .*, received 3 for token b")):
        file.write_text(text)
        with pytest.raises(AssertionError, match=match):
            embedding.CustomEmbedding(str(file))
    with pytest.raises(ValueError, match="pretrained_file_path: there is no file"):
        embedding.CustomEmbedding(str(tmp_path / "nothing"))
