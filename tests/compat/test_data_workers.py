import multiprocessing
import queue
import subprocess

import numpy as np
import pytest

import mxnet as mx
from forked import python
from mxnet.gluon.data import BatchSampler, SequentialSampler, dataloader


class Squares:
    def __getitem__(self, i):
        return np.array([i * i], "float32")

    def __len__(self):
        return 5


def failing_worker(dataset, keys, answers, batchify):
    keys.get()


def test_batches_come_in_order():
    sampler = BatchSampler(SequentialSampler(5), 2, "keep")
    batches = dataloader._MultiWorkerIterV1(2, Squares(), dataloader.default_mp_batchify_fn, sampler)
    assert len(batches) == 3 and batches.next().asnumpy().tolist() == [[0], [1]]
    assert [b.asnumpy().tolist() for b in batches] == [[[4], [9]], [[16]]]
    assert not any(worker.is_alive() for worker in batches._workers) and list(batches) == []
    with pytest.raises(AssertionError, match="at least one worker expected, received 0"):
        dataloader._MultiWorkerIterV1(0, Squares(), None, sampler)


def test_a_worker_that_ends():
    batches = dataloader._MultiWorkerIterV1(1, Squares(), None, BatchSampler(SequentialSampler(5), 2, "keep"), worker_fn=failing_worker)
    with pytest.raises(mx.MXNetError, match="a worker has ended without making its batch"):
        next(batches)


def test_loops():
    keys, answers, batches = queue.Queue(), queue.Queue(), {}
    for item in ((0, [1, 2]), (1, [3]), (None, None)):
        keys.put(item)
    dataloader.worker_loop_v1(Squares(), keys, answers, dataloader.default_batchify_fn)
    answers.put((None, None))
    dataloader.fetcher_loop_v1(answers, batches)
    assert {k: v.asnumpy().tolist() for k, v in batches.items()} == {0: [[1], [4]], 1: [[9]]}


def test_arrays_pass_through_a_wrapped_connection():
    one, other = (dataloader.ConnectionWrapper(c) for c in multiprocessing.Pipe())
    one.send([mx.nd.array([1, 2]), "text"])
    array, text = other.recv()
    assert array.asnumpy().tolist() == [1, 2] and text == "text" and not other.closed
    one.close()
    other.close()


def test_workers_and_thread_end_with_the_iterator():
    batches = dataloader._MultiWorkerIterV1(2, Squares(), dataloader.default_mp_batchify_fn, BatchSampler(SequentialSampler(5), 2, "keep"))
    next(batches)
    workers, fetcher = batches._workers, batches._fetcher
    del batches
    assert not any(worker.is_alive() for worker in workers) and not fetcher.is_alive()


INTERRUPTED = """
import signal, mxnet as mx, numpy as np
from mxnet.gluon.data import BatchSampler, SequentialSampler, dataloader

batches = dataloader._MultiWorkerIterV1(1, list(np.arange(9.0)), dataloader.default_mp_batchify_fn, BatchSampler(SequentialSampler(9), 2, "keep"))
batches._fetcher.join = lambda join=batches._fetcher.join: (signal.raise_signal(signal.SIGINT), join())
try:
    del batches
    for _ in range(10):
        pass
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_while_they_end_is_not_lost():
    done = subprocess.run([*python(), "-c", INTERRUPTED], capture_output=True, text=True, timeout=100)
    assert done.stdout == "interrupted\n", done.stderr
