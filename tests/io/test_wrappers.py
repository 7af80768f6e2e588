import threading
import time

import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.io import DataBatch, DataDesc, DataIter, NDArrayIter, PrefetchingIter, ResizeIter


def values(it):
    return [b.data[0].asnumpy().tolist() for b in it]


def test_resize():
    it = ResizeIter(NDArrayIter(np.arange(5), batch_size=2), 4)
    assert values(it) == [[0, 1], [2, 3], [4, 0], [0, 1]]
    it.reset()
    assert values(it) == [[0, 1], [2, 3], [4, 0], [0, 1]]
    assert it.provide_data == [("data", (2,))] and it.batch_size == 2


def test_resize_goes_on():
    it = ResizeIter(NDArrayIter(np.arange(6), batch_size=2), 2, reset_internal=False)
    assert values(it) == [[0, 1], [2, 3]]
    it.reset()
    assert values(it) == [[4, 5], [0, 1]]


def test_resize_of_nothing():
    with pytest.raises(MXNetError, match="gives no batch, even after reset"):
        next(ResizeIter(NDArrayIter(np.arange(2), batch_size=3, last_batch_handle="discard"), 2))


def test_prefetching_joins_iterators():
    parts = [NDArrayIter({"a": np.arange(5)}, batch_size=2), NDArrayIter({"a": np.arange(5) * 2}, np.arange(5), batch_size=2)]
    it = PrefetchingIter(parts, rename_data=[{"a": "x"}, {"a": "y"}])
    assert [d.name for d in it.provide_data] == ["x", "y"] and it.provide_label == [("softmax_label", (2,))] and it.batch_size == 2
    for _ in range(3):
        assert [[x.asnumpy().tolist() for x in b.data + b.label] + [b.pad] for b in it] == [
            [[0, 1], [0, 2], [0, 1], 0], [[2, 3], [4, 6], [2, 3], 0], [[4, 0], [8, 0], [4, 0], 1]]
        it.reset()


def test_prefetching_by_pieces():
    it = PrefetchingIter(NDArrayIter(np.arange(5), np.arange(5), batch_size=3))
    assert it.iter_next() and it.getdata()[0].asnumpy().tolist() == [0, 1, 2] and it.getlabel()[0].shape == (3,)
    assert it.iter_next() and it.getpad() == 1 and it.getindex() is None
    assert not it.iter_next() and not it.iter_next()


def test_prefetching_after_a_reset_in_the_middle():
    it = PrefetchingIter(NDArrayIter(np.arange(6), batch_size=2))
    next(it)
    it.reset()
    assert values(it) == [[0, 1], [2, 3], [4, 5]]


def test_prefetching_of_different_lengths():
    with pytest.raises(MXNetError, match="number of entries mismatches between iterators: number 0 ended"):
        list(PrefetchingIter([NDArrayIter(np.arange(4), batch_size=2), NDArrayIter(np.arange(8), batch_size=2)]))
    with pytest.raises(MXNetError, match=r"filled up with \[1, 0\] examples"):
        list(PrefetchingIter([NDArrayIter(np.arange(3), batch_size=2), NDArrayIter(np.arange(4), batch_size=2)]))
    with pytest.raises(MXNetError, match="at least one iterator"):
        PrefetchingIter([])


class Failing(DataIter):
    provide_data, provide_label = [DataDesc("data", (1,))], []
    left = 2

    def next(self):
        self.left -= 1
        if self.left < 0:
            raise ZeroDivisionError("in the thread")
        return DataBatch([mx.nd.zeros((1,))], [], 0)


def test_errors_of_the_thread_reach_the_consumer():
    it = PrefetchingIter(Failing())
    next(it), next(it)
    with pytest.raises(ZeroDivisionError, match="in the thread"):
        next(it)
    with pytest.raises(StopIteration):
        next(it)


def test_threads_end_with_the_iterator():
    before = threading.active_count()
    it = PrefetchingIter([NDArrayIter(np.arange(60), batch_size=2) for _ in range(3)])
    next(it)
    assert threading.active_count() > before
    del it
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_threads_that_prefetch():
    it = PrefetchingIter([NDArrayIter({name: mx.nd.ones((4, 1))}, batch_size=2) for name in "ab"])
    assert len(it.prefetch_threads) == 2 and it.started
    assert len(list(it)) == 2
    for thread in it.prefetch_threads:
        thread.join(10)
    assert not it.started
    it.reset()
    assert it.started
    list(it)
