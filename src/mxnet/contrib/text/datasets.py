"""Published texts for language models: the module `mxnet.gluon.contrib.data.text`."""
from __future__ import annotations

import os
import shutil
import warnings
import zipfile

import numpy as np

from ... import base, ndarray
from ...base import MXNetError
from ...downloads import why
from ...files import atomic_write, read_text
from ...gluon.data import dataset
from ...gluon.utils import _get_repo_file_url, check_sha1, download
from ...suggestions import shortened
from .utils import count_tokens_from_str
from .vocab import Vocabulary

__all__ = ["WikiText2", "WikiText103"]

END = "<eos>"  # stands after each line


class _LanguageModelDataset(dataset._DownloadedDataset):
    """The base of texts: a vocabulary, and the count of each token in the text."""

    def __init__(self, root, namespace, vocabulary):
        self._vocab = vocabulary
        self._counter = None
        self._namespace = namespace
        super().__init__(root, None)

    vocabulary = property(lambda self: self._vocab, doc="The Vocabulary that numbers the tokens.")
    frequencies = property(lambda self: self._counter, doc="How often each token occurs: a collections.Counter.")

    def _build_vocab(self, content):
        if not self._counter:
            self._counter = count_tokens_from_str(content)
        if not self._vocab:
            self._vocab = Vocabulary(counter=self._counter, reserved_tokens=[END])


class _WikiText(_LanguageModelDataset):
    """The base of `WikiText2` and `WikiText103`, which define the names and places of the files."""

    _archive = "", ""
    _segments: dict[str, tuple[str, str]] = {}

    def __init__(self, root, namespace, segment, vocab, seq_len):
        if segment not in self._segments:
            raise ValueError(f"{type(self).__name__}: segment must be one of {', '.join(map(repr, self._segments))}, received {shortened(segment)}")
        if seq_len < 1:
            raise ValueError(f"{type(self).__name__}: seq_len must be at least 1, received {seq_len}")
        self._segment = segment
        self._seq_len = seq_len
        super().__init__(root, namespace, vocab)

    def _file(self):
        """Return the path of the segment's text, which is unpacked from the published archive if it is missing.

        A file with another content than was published is read all the same: that is how one puts a text of one's own there.
        """
        name, sha1 = self._segments[self._segment]
        path = os.path.join(self._root, name)
        if os.path.exists(path):
            if not check_sha1(path, sha1):
                warnings.warn(f"{path} is not the file that was published as {type(self).__name__} (its SHA-1 differs); it is used as it is. "
                              "Delete it to download the published one.", stacklevel=6)
            return path
        archive, sha1 = self._archive
        url = _get_repo_file_url(f"gluon/dataset/{self._namespace}", archive)
        try:
            archive = download(url, path=self._root, sha1_hash=sha1)
        except Exception as error:
            raise MXNetError(f"{type(self).__name__}: {path} is missing, and {archive} cannot be downloaded from {url} ({why(error)}); put {name}, "
                             f"or {archive}, into {self._root}") from error
        wanted = {name for name, _ in self._segments.values()}
        with zipfile.ZipFile(archive) as packed:
            for member in packed.infolist():
                name = os.path.basename(member.filename)  # wherever in the archive a file is, it goes into our folder
                if name in wanted:
                    with packed.open(member) as source, atomic_write(os.path.join(self._root, name)) as target:
                        shutil.copyfileobj(source, target)
        return path

    def _get_data(self):
        content = read_text(self._file())
        self._build_vocab(content)
        tokens = [token for line in content.splitlines() if (words := line.split()) for token in (*words, END)]
        numbers = np.array(self.vocabulary.to_indices(tokens), np.int32)
        length = max(len(numbers) - 1, 0) // self._seq_len * self._seq_len
        self._data, self._label = (ndarray.array(part[:length], dtype=np.int32).reshape((-1, self._seq_len)) for part in (numbers[:-1], numbers[1:]))


class WikiText2(_WikiText):
    """WikiText-2 (Merity et al., 2016), good articles of Wikipedia: 2 million words to train on.

    An element is a pair of arrays (seq_len,) of int32: the numbers of `seq_len` words in a row, and of those one further on. ``'<eos>'`` stands
    after each line. The text is licensed under Creative Commons Attribution-ShareAlike.

    Parameters
    ----------
    root : str
        Where the files lie, or are downloaded to; by default ``$MXNET_HOME/datasets/wikitext-2``.
    segment : str
        'train', 'validation' or 'test': the file ``wiki.train.tokens``, ``wiki.valid.tokens`` or ``wiki.test.tokens``.
    vocab : Vocabulary, optional
        Numbers the words; by default one of all words of the segment.
    seq_len : int
        An incomplete rest at the end is dropped.

    Raises
    ------
    MXNetError
        If the file is missing and cannot be downloaded.
    ValueError
        If there is no such segment, or `seq_len` is below 1.
    """

    _archive = "wikitext-2-v1.zip", "3c914d17d80b1459be871a5039ac23e752a53cbe"
    _segments = {"train": ("wiki.train.tokens", "863f29c46ef9d167fff4940ec821195882fe29d1"),
                 "validation": ("wiki.valid.tokens", "0418625c8b4da6e4b5c7a0b9e78d4ae8f7ee5422"),
                 "test": ("wiki.test.tokens", "c7b8ce0aa086fb34dab808c5c49224211eb2b172")}

    def __init__(self, root: str = os.path.join(base.data_dir(), "datasets", "wikitext-2"), segment: str = "train", vocab: Vocabulary | None = None,
                 seq_len: int = 35):
        super().__init__(root, "wikitext-2", segment, vocab, seq_len)


class WikiText103(_WikiText):
    """WikiText-103, 103 million words to train on; the rest is as in `WikiText2`."""

    _archive = "wikitext-103-v1.zip", "0aec09a7537b58d4bb65362fee27650eeaba625a"
    _segments = {"train": ("wiki.train.tokens", "b7497e2dfe77e72cfef5e3dbc61b7b53712ac211"),
                 "validation": ("wiki.valid.tokens", "c326ac59dc587676d58c422eb8a03e119582f92b"),
                 "test": ("wiki.test.tokens", "8a5befc548865cec54ed4273cf87dbbad60d1e47")}

    def __init__(self, root: str = os.path.join(base.data_dir(), "datasets", "wikitext-103"), segment: str = "train", vocab: Vocabulary | None = None,
                 seq_len: int = 35):
        super().__init__(root, "wikitext-103", segment, vocab, seq_len)
