import collections

import pytest

import mxnet as mx
from mxnet.contrib.text import vocab

COUNTS = collections.Counter({"b": 4, "a": 4, "c": 2, "d": 1, "<unk>": 9})


def test_order_of_tokens():
    v = vocab.Vocabulary(COUNTS, reserved_tokens=["<pad>", "d"])
    assert v.idx_to_token == ["<unk>", "<pad>", "d", "a", "b", "c"] and len(v) == 6
    assert v.token_to_idx["b"] == 4 and v.unknown_token == "<unk>" and v.reserved_tokens == ["<pad>", "d"]
    assert vocab.Vocabulary(COUNTS, most_freq_count=2).idx_to_token == ["<unk>", "a", "b"]
    assert vocab.Vocabulary(COUNTS, min_freq=2, unknown_token="?").idx_to_token == ["?", "<unk>", "a", "b", "c"]
    assert vocab.Vocabulary().idx_to_token == ["<unk>"]


def test_conversions():
    v = vocab.Vocabulary(COUNTS)
    assert v.to_indices("a") == 1 and v.to_indices(["c", "nothing"]) == [3, 0]
    assert v.to_tokens(1) == "a" and v.to_tokens([0, 3]) == ["<unk>", "c"]
    for index in (100, "a"):
        with pytest.raises(ValueError, match=f"Token index {index} in the provided `indices` is invalid: there are 5 tokens"):
            v.to_tokens([index])


@pytest.mark.parametrize("arguments, match", [({"min_freq": 0}, "`min_freq` must be above 0, received 0"),
                                              ({"reserved_tokens": ["<unk>"]}, "'<unk>', which is the unknown token"),
                                              ({"reserved_tokens": ["x", "x"]}, "must be different from each other"),
                                              ({"counter": {"a": 1}}, "must be an instance of collections.Counter")])
def test_mistakes(arguments, match):
    with pytest.raises(AssertionError, match=match):
        mx.contrib.text.vocab.Vocabulary(**arguments)
