"""Vectors for tokens, from files."""
from __future__ import annotations

import logging
import os
import shutil
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import files, registry
from ... import ndarray as nd
from ...base import MXNetError, data_dir
from ...suggestions import did_you_mean, shortened
from ...util import is_np_array
from . import _pretrained, vocab
from .vocab import UNKNOWN

if TYPE_CHECKING:
    from .vocab import Vocabulary

_log = logging.getLogger(__name__)


def register(embedding_cls: type[Any]) -> type[Any]:
    """Decorate a subclass of `_TokenEmbedding` so that `create` finds it by its name.

    Example
    -------
    >>> @mx.contrib.text.embedding.register
    ... class Short(mx.contrib.text.embedding.CustomEmbedding):
    ...     pass
    >>> 'short' in mx.contrib.text.embedding.get_pretrained_file_names()
    True
    """
    return registry.get_register_func(_TokenEmbedding, "token embedding")(embedding_cls)


def create(embedding_name: str, **kwargs: Any) -> Any:
    """Return an embedding by name, such as ``create('glove', pretrained_file_name='glove.6B.50d.txt')``.

    Example
    -------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), 'vectors.txt')
    >>> _ = path.write_text('hello 1 2\\nworld 3 4\\n')
    >>> @mx.contrib.text.embedding.register
    ... class OwnVectors(mx.contrib.text.embedding.CustomEmbedding):
    ...     pass
    >>> mx.contrib.text.embedding.create('ownvectors', pretrained_file_path=str(path)).vec_len
    2
    """
    return registry.get_create_func(_TokenEmbedding, "token embedding")(embedding_name, **kwargs)


def get_pretrained_file_names(embedding_name: str | None = None) -> Any:
    """Return the published files of one embedding, as a list, or of all, as a dict of lists.

    Raises
    ------
    KeyError
        If no embedding has that name.

    Example
    -------
    >>> 'glove.6B.50d.txt' in mx.contrib.text.embedding.get_pretrained_file_names('glove')
    True
    """
    known = registry.get_registry(_TokenEmbedding)
    if embedding_name is None:
        return {name: list(cls.pretrained_file_name_sha1) for name, cls in known.items()}
    if embedding_name not in known:
        raise KeyError(f"Cannot find `embedding_name` {embedding_name}; there are {', '.join(known)}{did_you_mean(embedding_name, known)}")
    return list(known[embedding_name].pretrained_file_name_sha1)


class MalformedVectors(MXNetError, AssertionError, ValueError):
    """A file of vectors has another form; MXNet raises an AssertionError or a ValueError."""


def _decoded(lines, path):
    try:
        yield from lines
    except UnicodeDecodeError as error:
        raise MalformedVectors(f"{path} is no text in {error.encoding}: {error.reason} ({error.object[error.start:error.start + 1].hex()}); pass "
                               "another `encoding`") from None


def _unpack(source, folder, name):
    """Write a file of an archive into a folder, whatever path it has in there."""
    if source is None or name.endswith("/"):
        return
    with source, files.atomic_write(os.path.join(folder, os.path.basename(name))) as target:
        shutil.copyfileobj(source, target, 1 << 20)


def _array(values):
    if is_np_array():
        from ... import numpy as mx_np
        return mx_np.array(values)
    return nd.array(values)


class _TokenEmbedding(vocab.Vocabulary):
    """A vocabulary with a vector for each token.

    Attributes
    ----------
    vec_len : int
        The length of the vectors.
    idx_to_vec : NDArray
        Shape (number of tokens, vec_len); row 0 is the vector of unknown tokens.
    """

    pretrained_file_name_sha1: dict[str, str] = {}

    vec_len = property(lambda self: self._vec_len, doc="The length of the vectors.")
    idx_to_vec = property(lambda self: self._idx_to_vec, doc="The vectors, one in each row.")

    def get_vecs_by_tokens(self, tokens, lower_case_backup=False):
        """Return the vector of a token, or a matrix of those of a list of tokens.

        Parameters
        ----------
        tokens : str or list of str
        lower_case_backup : bool
            Look tokens that are not found up again in lower case.
        """
        index = self._token_to_idx
        wanted = tokens if isinstance(tokens, list) else [tokens]
        rows = [index.get(t, index.get(t.lower(), UNKNOWN) if lower_case_backup else UNKNOWN) for t in wanted]
        vectors = self._idx_to_vec[_array(np.array(rows, "int32"))]
        return vectors if isinstance(tokens, list) else vectors[0]

    def update_token_vectors(self, tokens, new_vectors):
        """Give tokens other vectors.

        Parameters
        ----------
        tokens : str or list of str
        new_vectors : NDArray
            Shape (number of tokens, vec_len); for one token also (vec_len,).

        Raises
        ------
        AssertionError
            If `new_vectors` is no array of that shape.
        ValueError
            If a token is not indexed.
        """
        single = not isinstance(tokens, list) or len(tokens) == 1
        tokens = tokens if isinstance(tokens, list) else [tokens]
        if not isinstance(new_vectors, nd.NDArray) or new_vectors.ndim not in ((1, 2) if single else (2,)):
            raise AssertionError(f"`new_vectors` must be an NDArray of {'1 or 2 axes' if single else '2 axes'}, received {shortened(new_vectors)}")
        rows = new_vectors.reshape((1, -1)) if new_vectors.ndim == 1 else new_vectors
        if rows.shape != (len(tokens), self.vec_len):
            raise AssertionError(f"`new_vectors` must have shape {(len(tokens), self.vec_len)}, received {new_vectors.shape}")
        missing = [t for t in tokens if t not in self._token_to_idx]
        if missing:
            raise ValueError(f"Token {missing[0]} is unknown. To change the vector of unknown tokens name {self.unknown_token} in `tokens`")
        self._idx_to_vec[_array(np.array([self._token_to_idx[t] for t in tokens], "int32"))] = rows

    @classmethod
    def _check_pretrained_file_names(cls, pretrained_file_name):
        if pretrained_file_name not in cls.pretrained_file_name_sha1:
            raise KeyError(f"Cannot find pretrained file {pretrained_file_name} for token embedding {cls.__name__.lower()}. Valid files: "
                           f"{', '.join(cls.pretrained_file_name_sha1)}")

    @classmethod
    def _get_download_file_name(cls, pretrained_file_name):
        return pretrained_file_name

    @classmethod
    def _get_pretrained_file_url(cls, pretrained_file_name):
        from ...gluon.utils import _get_repo_url
        return f"{_get_repo_url()}gluon/embeddings/{cls.__name__.lower()}/{cls._get_download_file_name(pretrained_file_name)}"

    @classmethod
    def _get_pretrained_file(cls, embedding_root, pretrained_file_name):
        """Return the path of a published file, downloaded and unpacked unless it is there with the right sum."""
        from ...gluon.utils import check_sha1, download
        folder = os.path.join(os.path.expanduser(embedding_root), cls.__name__.lower())
        path = os.path.join(folder, pretrained_file_name)
        expected = cls.pretrained_file_name_sha1[pretrained_file_name]
        if os.path.exists(path) and check_sha1(path, expected):
            return path
        archive = cls._get_download_file_name(pretrained_file_name)
        archives = getattr(cls, "pretrained_archive_name_sha1", {})
        target = os.path.join(folder, archive)
        download(cls._get_pretrained_file_url(pretrained_file_name), target, sha1_hash=archives.get(archive, expected))
        if archive.endswith(".zip"):
            with zipfile.ZipFile(target) as packed:
                for name in packed.namelist():
                    _unpack(packed.open(name), folder, name)
        elif archive.endswith(".gz"):
            with tarfile.open(target, "r:gz") as packed:
                for member in packed:
                    _unpack(packed.extractfile(member), folder, member.name)
        return path

    def _load_embedding(self, pretrained_file_path, elem_delim, init_unknown_vec, encoding="utf8"):
        """Read the lines ``token<delim>number<delim>number...`` of a file; the first vector of a token counts."""
        path = os.path.expanduser(pretrained_file_path)
        if not os.path.isfile(path):
            raise ValueError(f"pretrained_file_path: there is no file {pretrained_file_path!r}; a text file with a token and its vector on each "
                             "line is expected")
        _log.info("reading the vectors of tokens from %s", path)
        unknown, seen, vectors, length = None, set(), [], None
        with open(path, encoding=encoding) as lines:
            for number, line in enumerate(_decoded(lines, path), 1):
                token, *values = line.rstrip().split(elem_delim)
                if not values:
                    raise MalformedVectors(f"{path}, line {number}: a token, {elem_delim!r} and numbers expected, received {line.rstrip()[:80]!r}")
                try:
                    vector = np.array(values, dtype="float32")
                except (ValueError, OverflowError):
                    raise MalformedVectors(f"{path}, line {number}: numbers expected behind the token, received {line.rstrip()[:80]!r}") from None
                if token == self.unknown_token and unknown is None:
                    unknown = vector
                elif token in seen:
                    warnings.warn(f"{path}, line {number}: skipped, a second vector for token {token}",
                                  stacklevel=2)
                    continue
                elif len(vector) == 1:
                    warnings.warn(f"{path}, line {number}: skipped, {token} with the one number {values} "
                                  "looks like a header", stacklevel=2)
                    continue
                else:
                    length = length or len(vector)
                    if len(vector) != length:
                        raise MalformedVectors(f"{path}, line {number}: vectors of {length} numbers expected as on the lines before, received "
                                               f"{len(vector)} for token {token}")
                    vectors.append(vector)
                    self._token_to_idx[token] = len(self._idx_to_token)
                    self._idx_to_token.append(token)
                seen.add(token)
        if not vectors:
            raise MalformedVectors(f"{path}: no line has a token with a vector of 2 numbers or more")
        if unknown is not None and len(unknown) not in (1, length):
            raise MalformedVectors(f"{path}: vectors of {length} numbers expected, {self.unknown_token} has {len(unknown)}")
        self._vec_len = length
        # Tokens that the vocabulary has reserved stand before those of the file and have no vector there.
        rows = len(self._idx_to_token) - len(vectors)
        self._idx_to_vec = _array(np.concatenate([np.zeros((rows, length), "float32"), np.stack(vectors)]))
        self._idx_to_vec[UNKNOWN] = init_unknown_vec(shape=length).asnumpy() if unknown is None else unknown

    def _index_tokens_from_vocabulary(self, vocabulary):
        self._token_to_idx, self._idx_to_token = dict(vocabulary.token_to_idx), list(vocabulary.idx_to_token)
        self._unknown_token = vocabulary.unknown_token
        self._reserved_tokens = None if vocabulary.reserved_tokens is None else list(vocabulary.reserved_tokens)

    def _set_idx_to_vec_by_embeddings(self, token_embeddings, vocab_len, vocab_idx_to_token):
        """Put the vectors of several embeddings side by side, for the tokens of a vocabulary."""
        parts = []
        for embedding in token_embeddings:
            rest = embedding.get_vecs_by_tokens(vocab_idx_to_token[1:]).asnumpy() if vocab_len > 1 else np.zeros((0, embedding.vec_len), "float32")
            parts.append(np.concatenate([embedding.idx_to_vec[0:1].asnumpy(), rest]))
        joined = np.concatenate(parts, axis=1)
        self._vec_len, self._idx_to_vec = joined.shape[1], _array(joined)

    def _build_embedding_for_vocabulary(self, vocabulary):
        if vocabulary is None:
            return
        if not isinstance(vocabulary, vocab.Vocabulary):
            raise AssertionError(f"vocabulary must be a mxnet.contrib.text.vocab.Vocabulary, received {shortened(vocabulary)}")
        self._set_idx_to_vec_by_embeddings([self], len(vocabulary), vocabulary.idx_to_token)
        self._index_tokens_from_vocabulary(vocabulary)


class _Published(_TokenEmbedding):
    """An embedding whose files can be downloaded."""

    def _open(self, pretrained_file_name, embedding_root, init_unknown_vec, vocabulary):
        self._check_pretrained_file_names(pretrained_file_name)
        root = os.path.join(data_dir(), "embeddings") if embedding_root is None else embedding_root
        self._load_embedding(self._get_pretrained_file(root, pretrained_file_name), " ", init_unknown_vec)
        self._build_embedding_for_vocabulary(vocabulary)


@register
class GloVe(_Published):
    """The GloVe vectors (https://nlp.stanford.edu/projects/glove/).

    Parameters
    ----------
    pretrained_file_name : str
        One of ``get_pretrained_file_names('glove')``.
    embedding_root : str
        The folder for downloads.
    init_unknown_vec : callable
        ``init_unknown_vec(shape=n)`` returns the vector of unknown tokens, unless the file has one.
    vocabulary : Vocabulary, optional
        The tokens to keep, instead of all of the file's.

    Example
    -------
    >>> 'glove.6B.50d.txt' in mx.contrib.text.embedding.GloVe.pretrained_file_name_sha1
    True
    >>> mx.contrib.text.embedding.GloVe(pretrained_file_name='glove.6B.50d.txt')   # doctest: +SKIP
    """

    pretrained_archive_name_sha1 = _pretrained.GLOVE_ARCHIVES
    pretrained_file_name_sha1 = _pretrained.GLOVE_FILES

    def __init__(self, pretrained_file_name: str = "glove.840B.300d.txt", embedding_root: str = os.path.join(data_dir(), "embeddings"),
                 init_unknown_vec: Callable[..., Any] = nd.zeros, vocabulary: Vocabulary | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self._open(pretrained_file_name, embedding_root, init_unknown_vec, vocabulary)

    @classmethod
    def _get_download_file_name(cls, pretrained_file_name):
        collection = pretrained_file_name.split(".")[1]
        return next(a for a in cls.pretrained_archive_name_sha1 if a.split(".")[1] == collection)


@register
class FastText(_Published):
    """The fastText vectors (https://fasttext.cc/); parameters as for `GloVe`.

    Example
    -------
    >>> 'wiki.simple.vec' in mx.contrib.text.embedding.FastText.pretrained_file_name_sha1
    True
    >>> mx.contrib.text.embedding.FastText(pretrained_file_name='wiki.simple.vec')   # doctest: +SKIP
    """

    pretrained_archive_name_sha1 = _pretrained.FASTTEXT_ARCHIVES
    pretrained_file_name_sha1 = _pretrained.FASTTEXT_FILES

    def __init__(self, pretrained_file_name: str = "wiki.simple.vec", embedding_root: str = os.path.join(data_dir(), "embeddings"),
                 init_unknown_vec: Callable[..., Any] = nd.zeros, vocabulary: Vocabulary | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self._open(pretrained_file_name, embedding_root, init_unknown_vec, vocabulary)

    @classmethod
    def _get_download_file_name(cls, pretrained_file_name):
        return os.path.splitext(pretrained_file_name)[0] + ".zip"


class CustomEmbedding(_TokenEmbedding):
    """Vectors from a file of your own: a token and its numbers on each line.

    Parameters
    ----------
    pretrained_file_path : str
    elem_delim : str
        The separator of the token and the numbers, and of these.
    encoding : str
        The file's.
    init_unknown_vec : callable
        ``init_unknown_vec(shape=n)`` returns the vector of unknown tokens, unless the file has one.
    vocabulary : Vocabulary, optional
        The tokens to keep, instead of all of the file's.

    Raises
    ------
    ValueError
        If there is no such file.
    AssertionError
        If a line has no numbers, or not as many as the others; the message names the line.

    Example
    -------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), 'vectors.txt')
    >>> _ = path.write_text('hello 1 2\\nworld 3 4\\n')
    >>> vectors = mx.contrib.text.embedding.CustomEmbedding(str(path))
    >>> vectors.get_vecs_by_tokens('world').asnumpy()
    array([3., 4.], dtype=float32)
    """

    def __init__(self, pretrained_file_path: str, elem_delim: str = " ", encoding: str = "utf8", init_unknown_vec: Callable[..., Any] = nd.zeros,
                 vocabulary: Vocabulary | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self._load_embedding(pretrained_file_path, elem_delim, init_unknown_vec, encoding)
        self._build_embedding_for_vocabulary(vocabulary)


class CompositeEmbedding(_TokenEmbedding):
    """The vectors of several embeddings side by side, for the tokens of a vocabulary.

    Parameters
    ----------
    vocabulary : Vocabulary
    token_embeddings : embedding or list of embeddings

    Raises
    ------
    AssertionError
        If an argument is of another type.

    Example
    -------
    >>> import collections, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), 'vectors.txt')
    >>> _ = path.write_text('hello 1 2\\nworld 3 4\\n')
    >>> text = mx.contrib.text
    >>> vectors = text.embedding.CustomEmbedding(str(path))
    >>> vocabulary = text.vocab.Vocabulary(collections.Counter(['hello']))
    >>> both = text.embedding.CompositeEmbedding(vocabulary, [vectors, vectors])
    >>> both.get_vecs_by_tokens('hello').asnumpy()
    array([1., 2., 1., 2.], dtype=float32)
    """

    def __init__(self, vocabulary: Vocabulary, token_embeddings: Any):
        if not isinstance(vocabulary, vocab.Vocabulary):
            raise AssertionError(f"vocabulary must be a mxnet.contrib.text.vocab.Vocabulary, received {shortened(vocabulary)}")
        embeddings = token_embeddings if isinstance(token_embeddings, list) else [token_embeddings]
        for e in embeddings:
            if not isinstance(e, _TokenEmbedding):
                raise AssertionError(f"`token_embeddings` must be an embedding or a list of embeddings, received {shortened(e)}")
        self._index_tokens_from_vocabulary(vocabulary)
        self._set_idx_to_vec_by_embeddings(embeddings, len(self), self.idx_to_token)


__all__ = ["CompositeEmbedding", "CustomEmbedding", "FastText", "GloVe", "create", "get_pretrained_file_names", "is_np_array", "register"]
