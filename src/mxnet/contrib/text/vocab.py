"""Numbering tokens."""
from __future__ import annotations

import collections
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter

UNKNOWN = 0  # the index of the unknown token


class Vocabulary:
    """Numbers for tokens: 0 for unknown ones, then the reserved ones, then those of `counter`, the most frequent first.

    Parameters
    ----------
    counter : collections.Counter, optional
        The count of each token.
    most_freq_count : int, optional
        The largest number of tokens of `counter` to index; tokens of equal frequency come in alphabetical order.
    min_freq : int
        The least count of a token.
    unknown_token : hashable
        The token that represents all other tokens.
    reserved_tokens : list, optional
        Numbered in any case, such as ``'<pad>'``.

    Raises
    ------
    AssertionError
        If `min_freq` is not positive, `counter` is no Counter, or `reserved_tokens` repeats itself or `unknown_token`.

    Example
    -------
    >>> import collections, mxnet as mx
    >>> v = mx.contrib.text.vocab.Vocabulary(collections.Counter('a rose is a rose'.split()), reserved_tokens=['<pad>'])
    >>> v.idx_to_token, v.to_indices(['rose', 'tulip'])
    (['<unk>', '<pad>', 'a', 'rose', 'is'], [3, 0])
    """

    def __init__(self, counter: Counter[str] | None = None, most_freq_count: int | None = None, min_freq: int = 1, unknown_token: str = "<unk>",
                 reserved_tokens: list[str] | None = None):
        if min_freq <= 0:
            raise AssertionError(f"`min_freq` must be above 0, received {min_freq}")
        reserved = list(reserved_tokens or ())
        if unknown_token in reserved:
            raise AssertionError(f"`reserved_tokens` holds {unknown_token!r}, which is the unknown token; leave it out")
        if len(set(reserved)) != len(reserved):
            raise AssertionError(f"`reserved_tokens` must be different from each other, received {reserved}")
        if counter is not None and not isinstance(counter, collections.Counter):
            raise AssertionError(f"`counter` must be an instance of collections.Counter, received {type(counter).__name__}")
        self._unknown_token = unknown_token
        self._reserved_tokens = None if reserved_tokens is None else reserved
        self._idx_to_token = [unknown_token, *reserved]
        special = set(self._idx_to_token)
        limit = len(self._idx_to_token) + (len(counter or ()) if most_freq_count is None else most_freq_count)
        for token, count in sorted(sorted((counter or {}).items()), key=lambda item: -item[1]):
            if count < min_freq or len(self._idx_to_token) == limit:
                break
            if token not in special:
                self._idx_to_token.append(token)
        self._token_to_idx = {t: i for i, t in enumerate(self._idx_to_token)}

    def __len__(self) -> int:
        return len(self._idx_to_token)

    token_to_idx = property(lambda self: self._token_to_idx, doc="A dict from tokens to indices.")
    idx_to_token = property(lambda self: self._idx_to_token, doc="The tokens in the order of their indices.")
    unknown_token = property(lambda self: self._unknown_token, doc="What stands for tokens without an index.")
    reserved_tokens = property(lambda self: self._reserved_tokens, doc="The tokens indexed in any case; None if there are none.")

    def to_indices(self, tokens: str | list[str]) -> int | list[int]:
        """Return the index of a token, or the indices of a list of tokens; that of the unknown token for those not indexed."""
        if not isinstance(tokens, list):
            return self._token_to_idx.get(tokens, UNKNOWN)
        return [self._token_to_idx.get(t, UNKNOWN) for t in tokens]

    def to_tokens(self, indices: int | list[int]) -> str | list[str]:
        """Return the token of an index, or the tokens of a list of indices.

        Raises
        ------
        ValueError
            If an index is no integer or too large.
        """
        tokens = []
        for i in indices if isinstance(indices, list) else [indices]:
            if not isinstance(i, int) or i >= len(self):
                raise ValueError(f"Token index {i} in the provided `indices` is invalid: there are {len(self)} tokens")
            tokens.append(self._idx_to_token[i])
        return tokens if isinstance(indices, list) else tokens[0]
