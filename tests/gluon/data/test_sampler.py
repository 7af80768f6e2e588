import numpy as np
import pytest

from mxnet.gluon.data import BatchSampler, FilterSampler, RandomSampler, Sampler, SequentialSampler


def test_sequential_sampler():
    assert list(SequentialSampler(3)) == [0, 1, 2]
    assert list(SequentialSampler(3, start=5)) == [5, 6, 7]
    assert len(SequentialSampler(3, 5)) == 3


def test_random_sampler_gives_mxnets_order_for_a_seed():
    np.random.seed(7)
    assert list(RandomSampler(8)) == [2, 5, 0, 6, 3, 1, 4, 7]


def test_filter_sampler():
    sampler = FilterSampler(lambda x: x > 2, [1, 5, 2, 3])
    assert list(sampler) == [1, 3]
    assert len(sampler) == 2


@pytest.mark.parametrize(("last_batch", "first", "second", "length"), [
    ("keep", [[0, 1, 2, 3], [4, 5]], [[0, 1, 2, 3], [4, 5]], 2),
    ("discard", [[0, 1, 2, 3]], [[0, 1, 2, 3]], 1),
    ("rollover", [[0, 1, 2, 3]], [[4, 5, 0, 1], [2, 3, 4, 5]], 1),
])
def test_batch_sampler(last_batch, first, second, length):
    sampler = BatchSampler(SequentialSampler(6), 4, last_batch)
    assert len(sampler) == length
    assert list(sampler) == first
    assert list(sampler) == second


def test_length_counts_what_rolled_over():
    sampler = BatchSampler(SequentialSampler(6), 4, "rollover")
    list(sampler)
    assert len(sampler) == 2


def test_batch_sampler_refuses_other_last_batch():
    with pytest.raises(ValueError, match="last_batch must be 'keep', 'discard' or 'rollover', received 'drop'"):
        BatchSampler(SequentialSampler(3), 2, "drop")


def test_the_base_is_abstract():
    with pytest.raises(NotImplementedError):
        iter(Sampler())
    with pytest.raises(NotImplementedError):
        len(Sampler())
