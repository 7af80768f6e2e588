"""Sentences as numbers and in buckets."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError


def test_new_words_get_numbers():
    coded, vocab = mx.rnn.encode_sentences([["a", "b"], ["b", "c"]], invalid_label=1, start_label=0)
    assert coded == [[0, 2], [2, 3]] and vocab == {"\n": 1, "a": 0, "b": 2, "c": 3}


def test_known_words_and_unknown_ones():
    vocab = {"a": 1, "b": 2, "c": 3}
    with pytest.raises(MXNetError, match="Unknown token d"):
        mx.rnn.encode_sentences([["a", "d"]], dict(vocab))
    coded, grown = mx.rnn.encode_sentences([["a", "d", "e"]], dict(vocab), start_label=0, unknown_token="UNK")
    assert coded == [[1, 0, 0]] and grown == {**vocab, "UNK": 0}


def test_batches_come_by_length(capsys):
    data = mx.rnn.BucketSentenceIter([[1, 2, 3], [4, 5], [6, 7], [8, 9, 1], [1, 2, 3, 4, 5]], 2, [2, 3], invalid_label=-1)
    assert capsys.readouterr().out == "WARNING: discarded 1 sentences longer than the largest bucket.\n"
    assert data.default_bucket_key == 3 and data.provide_data[0].shape == (2, 3)
    batches = {b.bucket_key: b for b in data}
    assert sorted(batches) == [2, 3]
    rows = sorted(zip(batches[2].data[0].asnumpy().tolist(), batches[2].label[0].asnumpy().tolist()))
    assert rows == [([4, 5], [5, -1]), ([6, 7], [7, -1])]
    assert batches[3].provide_label[0].shape == (2, 3)
    data.reset()
    assert len(list(data)) == 2


def test_time_first_and_padding():
    data = mx.rnn.BucketSentenceIter([[1, 2], [3]], 2, [3], invalid_label=0, layout="TN", dtype="int32")
    batch, = list(data)
    assert batch.data[0].shape == (3, 2) and batch.provide_data[0].layout == "TN" and batch.data[0].dtype == np.int32
    assert sorted(batch.data[0].asnumpy().T.tolist()) == [[1, 2, 0], [3, 0, 0]]


def test_buckets_by_default_and_errors():
    data = mx.rnn.BucketSentenceIter([[1, 2], [3, 4], [5]], 2)
    assert data.buckets == [2]
    with pytest.raises(ValueError, match="Invalid layout NTC"):
        mx.rnn.BucketSentenceIter([[1, 2]], 1, layout="NTC")
    with pytest.raises(MXNetError, match="no length is shared by 3 sentences"):
        mx.rnn.BucketSentenceIter([[1, 2]], 3)


def test_the_buckets_of_the_program_stay_as_they_are():
    buckets = [3, 2]
    assert mx.rnn.BucketSentenceIter([[1, 2], [1, 2, 3]], 1, buckets=buckets).buckets == [2, 3] and buckets == [3, 2]
    assert mx.rnn.BucketSentenceIter([[1, 2], [1, 2, 3]], 1, buckets=(3, 2)).buckets == [2, 3]
