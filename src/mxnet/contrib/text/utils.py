"""Counting tokens."""
from __future__ import annotations

import collections
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter


def count_tokens_from_str(source_str: str, token_delim: str = " ", seq_delim: str = "\n", to_lower: bool = False,
                          counter_to_update: Counter[str] | None = None) -> Counter[str]:
    """Count the tokens of a text.

    Parameters
    ----------
    source_str : str
    token_delim, seq_delim : str
        The separators of tokens and of sequences: regular expressions.
    to_lower : bool
        Count ``The`` and ``the`` as one.
    counter_to_update : collections.Counter, optional
        A counter to which the counts are added.

    Returns
    -------
    collections.Counter
        `counter_to_update`, or a new one.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.contrib.text.utils.count_tokens_from_str('a rose is a rose')['rose']
    2
    """
    tokens = [t.lower() if to_lower else t for t in re.split(f"{token_delim}|{seq_delim}", source_str) if t]
    counter = collections.Counter() if counter_to_update is None else counter_to_update
    counter.update(tokens)
    return counter
