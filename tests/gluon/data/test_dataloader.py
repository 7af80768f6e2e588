import gc
import multiprocessing
import os
import pathlib
import random
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.data import ArrayDataset, BatchSampler, DataLoader, Dataset, SequentialSampler, SimpleDataset
from mxnet.gluon.data.dataloader import _as_in_context, _MultiWorkerIter, default_batchify_fn, default_mp_batchify_fn

WAYS = [{}, {"num_workers": 2}, {"num_workers": 2, "thread_pool": True}]


class Numbers(Dataset):
    """Large enough samples for batches to go through shared memory."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        return np.full((3, 100, 100), i, "float32"), i


class Failing(Dataset):
    def __init__(self, action):
        self.action = action

    def __len__(self):
        return 4

    def __getitem__(self, i):
        if i == 2:
            self.action()
        return i


@pytest.mark.parametrize("way", WAYS)
def test_batches_come_in_order(way):
    loader = DataLoader(Numbers(), 4, **way)
    assert len(loader) == 3
    for _ in range(2):
        batches = list(loader)
        assert [label.asnumpy().tolist() for _, label in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
        assert [data.shape for data, _ in batches] == [(4, 3, 100, 100), (4, 3, 100, 100), (2, 3, 100, 100)]
        for data, label in batches:
            assert (data.asnumpy() == label.asnumpy()[:, None, None, None]).all()
            assert data.dtype == np.float32
            assert label.dtype == np.int64


@pytest.mark.parametrize(("way", "context"), [
    ({}, "cpu(0)"), ({"num_workers": 1}, "cpu_shared(0)"), ({"num_workers": 1, "thread_pool": True}, "cpu_shared(0)"),
    ({"pin_memory": True}, "cpu_pinned(0)"), ({"num_workers": 1, "pin_memory": True}, "cpu_pinned(0)")])
def test_context_of_batches(way, context):
    data, label = next(iter(DataLoader(Numbers(), 2, **way)))
    assert (str(data.context), str(label.context)) == (context, context)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("options", "expected"), [
    ({"last_batch": "discard"}, [[0, 1, 2]]), ({"sampler": SequentialSampler(4, 1)}, [[1, 2, 3], [4]])])
def test_samplers(way, options, expected):
    loader = DataLoader(SimpleDataset([0, 1, 2, 3, 4]), 3, **options, **way)
    assert [batch.asnumpy().tolist() for batch in loader] == expected


def test_batch_sampler_and_shuffle():
    dataset = SimpleDataset(list(range(8)))
    loader = DataLoader(dataset, batch_sampler=BatchSampler(SequentialSampler(4), 3))
    assert [batch.asnumpy().tolist() for batch in loader] == [[0, 1, 2], [3]]
    np.random.seed(7)
    assert next(iter(DataLoader(dataset, 8, shuffle=True))).asnumpy().tolist() == [2, 5, 0, 6, 3, 1, 4, 7]


@pytest.mark.parametrize(("options", "text"), [
    ({}, "batch_size or batch_sampler expected, received neither"),
    ({"batch_size": 2, "shuffle": True, "sampler": SequentialSampler(2)}, "either shuffle or sampler expected, received both"),
    ({"batch_size": 2, "batch_sampler": BatchSampler(SequentialSampler(2), 2)}, "batch_sampler makes whole batches; leave out batch_size"),
])
def test_contradicting_arguments(options, text):
    with pytest.raises(ValueError, match=text):
        DataLoader(SimpleDataset([1, 2]), **options)


def test_timeout_must_be_positive():
    with pytest.raises(AssertionError, match="timeout must be positive, given 0"):
        DataLoader(SimpleDataset([1, 2]), 1, timeout=0)


@pytest.mark.parametrize("batchify", [default_batchify_fn, default_mp_batchify_fn])
def test_batchify(batchify):
    assert batchify([1, 2]).dtype == np.int64
    assert batchify([1.5, 2]).dtype == np.float64
    assert batchify([np.float32(1), np.float32(2)]).dtype == np.float32
    stacked = batchify([mx.nd.array([1, 2], dtype="int8"), mx.nd.array([3, 4], dtype="int8")])
    assert stacked.asnumpy().tolist() == [[1, 2], [3, 4]]
    assert stacked.dtype == np.int8
    data, label = batchify([([1, 2], 0), ([3, 4], 1)])
    assert data.asnumpy().tolist() == [[1, 2], [3, 4]]
    assert label.asnumpy().tolist() == [0, 1]
    with pytest.raises(KeyError, match="samples of type str .* pass a `batchify_fn`"):
        batchify(["a", "b"])


def test_as_in_context():
    moved = _as_in_context((mx.nd.ones(2), [mx.nd.zeros(1), "text"]), mx.cpu(1))
    assert [str(moved[0].context), str(moved[1][0].context), moved[1][1]] == ["cpu(1)", "cpu(1)", "text"]


@pytest.mark.parametrize("way", WAYS)
def test_functions_need_not_be_picklable(way):
    offset = 100
    loader = DataLoader(SimpleDataset([1, 2, 3]).transform(lambda x: x + offset), 2, batchify_fn=lambda samples: {"sum": sum(samples)}, **way)
    assert list(loader) == [{"sum": 203}, {"sum": 103}]


def test_batches_of_many_kinds_pass():
    large = np.arange(100000, dtype="int32")

    def batchify(samples):
        half = mx.nd.array(np.arange(50000), dtype="float16")
        return [half, mx.nd.array([[7]]), large, {"text": "x" * 200000}, half[10:20]]

    half, small, array, rest, part = next(iter(DataLoader(SimpleDataset([0]), 1, batchify_fn=batchify, num_workers=1)))
    assert half.dtype == np.float16
    assert half.asnumpy()[-1] == 49984  # 49999 in half precision
    assert small.asnumpy().tolist() == [[7]]
    assert isinstance(array, np.ndarray)
    assert (array == large).all()
    assert rest["text"] == "x" * 200000
    assert part.asnumpy().tolist() == list(range(10, 20))
    part[:] = 1  # memory of its own
    assert half.asnumpy()[10] == 10


@pytest.mark.parametrize("way", WAYS)
def test_errors_of_the_dataset_arrive_as_they_are(way):
    def fail():
        raise KeyError("bad item")

    loader = DataLoader(Failing(fail), 2, **way)
    batches = iter(loader)
    assert next(batches).asnumpy().tolist() == [0, 1]
    with pytest.raises(KeyError, match="bad item") as caught:
        next(batches)
    if way == {"num_workers": 2}:
        assert "in fail" in str(caught.value.__cause__)


def test_errors_that_cannot_be_pickled():
    class Strange(Exception):
        pass

    def fail():
        raise Strange("odd")

    with pytest.raises(mx.MXNetError, match="Strange: odd"):
        list(DataLoader(Failing(fail), 2, num_workers=1))


def test_a_loader_works_on_after_an_error():
    def fail():
        raise OSError("once")

    loader = DataLoader(Failing(fail), 2, num_workers=1)
    for _ in range(2):
        batches = iter(loader)
        next(batches)
        with pytest.raises(OSError, match="once"):
            next(batches)


def test_a_killed_worker_is_named():
    loader = DataLoader(Failing(lambda: os.kill(os.getpid(), 9)), 2, num_workers=1)
    with pytest.raises(mx.MXNetError, match=r"DataLoader worker \(pid \d+\) was killed by signal 9 \(SIGKILL\); .* out of memory"):
        list(loader)
    with pytest.raises(mx.MXNetError, match="all workers of the DataLoader died"):
        list(loader)


@pytest.mark.parametrize("thread_pool", [False, True])
def test_timeout(thread_pool):
    loader = DataLoader(Failing(lambda: time.sleep(1)), 2, num_workers=1, timeout=0.2, thread_pool=thread_pool)
    with pytest.raises(multiprocessing.TimeoutError, match="0.2 seconds; raise the DataLoader's `timeout`"):
        list(loader)


def test_nothing_is_left_behind():
    def state():
        gc.collect()
        return len(os.listdir("/proc/self/fd")), len(multiprocessing.active_children())

    before = state()
    for _ in range(3):
        loader = DataLoader(Numbers(), 2, num_workers=2)
        for _ in loader:
            break
        kept = next(iter(loader))
        del loader
    assert state() == before
    assert kept[0].asnumpy()[1].max() == 1  # a batch outlives its loader
    assert not [name for name in os.listdir("/dev/shm") if str(os.getpid()) in name]


def test_batches_hold_no_descriptors():
    loader = DataLoader(Numbers(), 1, num_workers=1)
    batches = iter(loader)
    kept = [next(batches)]
    before = len(os.listdir("/proc/self/fd"))
    kept += list(batches)
    assert len(os.listdir("/proc/self/fd")) <= before
    assert [int(data.asnumpy().mean()) for data, _ in kept] == list(range(10))


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_workers_end_with_their_parent():
    program = textwrap.dedent("""
        import os, sys
        from mxnet.gluon.data import DataLoader
        loaders = [DataLoader([1, 2, 3], 1, num_workers=2) for _ in range(2)]
        list(loaders[0])
        print(*(w.process.pid for l in loaders for w in l._worker_pool._workers), flush=True)
        os.kill(os.getpid(), 9)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    pids = done.stdout.split()
    assert len(pids) == 4, done.stderr
    deadline = time.time() + 10
    while alive := [pid for pid in pids if runs(pid)]:
        assert time.time() < deadline, f"workers {alive} live on"
        time.sleep(0.05)


def test_ctrl_c_reaches_the_parent_only():
    program = textwrap.dedent("""
        import os, signal, threading, time
        from mxnet.gluon.data import DataLoader, SimpleDataset
        os.setpgrp()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with the signal ignored
        loader = DataLoader(SimpleDataset(list(range(1000))).transform(lambda x: time.sleep(0.01) or x), 1, num_workers=2)
        batches = iter(loader)
        next(batches)  # the workers run
        threading.Timer(0.2, lambda: os.killpg(0, signal.SIGINT)).start()
        try:
            list(batches)
        except KeyboardInterrupt:
            print("interrupted", len(next(iter(loader))))
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.stdout == "interrupted 1\n", done.stderr


def _draws():
    return np.random.randint(1 << 30), random.randrange(1 << 30), int(mx.nd.random.uniform(0, 1 << 20, shape=(1,)).asscalar())


@pytest.mark.parametrize("number", [0, 1, 2])
def test_samples_draw_different_numbers(number):
    loader = DataLoader(SimpleDataset(list(range(6))).transform(lambda _: _draws()[number]), 1, num_workers=2)
    drawn = [int(batch.asscalar()) for _ in range(2) for batch in loader]
    assert len(set(drawn)) == 12


def test_seeds_repeat_whatever_the_number_of_workers():
    def run(workers):
        np.random.seed(3)
        random.seed(4)
        mx.random.seed(5)
        loader = DataLoader(SimpleDataset(list(range(6))).transform(lambda _: _draws()), 2, num_workers=workers, prefetch=2)
        return [[int(v) for part in batch for v in part.asnumpy()] for _ in range(2) for batch in loader]

    assert run(1) == run(3)


def test_prefetch_begins_with_the_loader_if_asked_to(tmp_path):
    log = tmp_path / "log"

    def note(x):
        with open(log, "a") as f:
            f.write(f"{x} ")
        return x

    def read():
        return log.read_text().split() if log.exists() else []

    dataset = SimpleDataset([0, 1, 2]).transform(note)
    DataLoader(dataset, 1, num_workers=1)
    assert read() == []
    loader = DataLoader(dataset, 1, num_workers=1, auto_reload=True)
    deadline = time.time() + 10
    while read() != ["0", "1"]:
        assert time.time() < deadline, read()
        time.sleep(0.01)
    assert [int(batch.asscalar()) for batch in loader] == [0, 1, 2]
    loader.clean()
    assert [int(batch.asscalar()) for batch in loader] == [0, 1, 2]


def test_an_iterator_keeps_its_loader():
    batches = iter(DataLoader(mx.nd.ones(5), 2, batchify_fn=list, num_workers=1))
    gc.collect()
    assert [float(x.asscalar()) for x in next(batches)] == [1, 1]


def test_iterator_over_a_pool_of_multiprocessing(monkeypatch):
    # As GluonCV and GluonNLP do it: a pool of their own whose workers pickle batches themselves.
    with multiprocessing.get_context("fork").Pool(1, initializer=mx.gluon.data.dataloader._worker_initializer,
                                                  initargs=(Numbers(), False, False)) as pool:
        batches = list(_MultiWorkerIter(pool, default_mp_batchify_fn, BatchSampler(SequentialSampler(10), 5), worker_fn=_pickled_batch,
                                        prefetch=1))
    assert [label.asnumpy().tolist() for _, label in batches] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert [int(data.asnumpy()[-1].mean()) for data, _ in batches] == [4, 9]
    assert str(batches[0][0].context) == "cpu_shared(0)"


def _pickled_batch(samples, batchify_fn, dataset=None):
    import io
    import pickle
    from multiprocessing.reduction import ForkingPickler

    stream = io.BytesIO()
    ForkingPickler(stream, pickle.HIGHEST_PROTOCOL).dump(batchify_fn([mx.gluon.data.dataloader._worker_dataset[i] for i in samples]))
    return stream.getvalue()


def test_array_dataset_of_arrays():
    dataset = ArrayDataset(mx.nd.arange(12).reshape((6, 2)), mx.nd.arange(6))
    data, label = next(iter(DataLoader(dataset, 3, num_workers=1)))
    assert data.asnumpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    assert label.asnumpy().tolist() == [0, 1, 2]


class Marked(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, i):
        return np.full((20000,), i, "float32")


def test_memory_is_used_again_but_not_while_something_is_in_it():
    loader = DataLoader(Marked(), 2, num_workers=2)
    kept, addresses = [], set()
    for epoch in range(3):
        for number, batch in enumerate(loader):
            addresses.add(batch._data.data_ptr())
            if number % 10 == epoch:
                kept.append((number, batch[1:, 5:7] if epoch else batch))  # a view holds the memory, too
    assert len(kept) == 9
    for number, batch in kept:
        assert (batch.asnumpy()[-1] == 2 * number + 1).all()
    assert len(addresses) < 30  # of 90 batches


@pytest.mark.parametrize("sent", [False, True])
def test_a_worker_may_keep_arrays(sent):
    cache = {}

    def batchify(samples):
        if not cache:
            cache["first"] = default_mp_batchify_fn(samples)
        batch = default_mp_batchify_fn(samples)
        return [cache["first"] if sent else cache["first"].copy(), batch]

    loader = DataLoader(Marked(), 2, batchify_fn=batchify, num_workers=1)
    for number, (first, own) in enumerate(loader):
        assert (first.asnumpy()[:, 0].tolist(), own.asnumpy()[:, -1].tolist()) == ([0, 1], [2 * number, 2 * number + 1])


def test_batches_of_changing_sizes():
    loader = DataLoader(SimpleDataset([1, 50000, 3, 400000, 20000, 16384] * 10).transform(lambda n: np.full((n,), n, "float32")), 1, num_workers=2)
    assert [(batch.shape[1], batch.asnumpy().min()) for batch in loader] == [(n, n) for n in [1, 50000, 3, 400000, 20000, 16384] * 10]


def test_a_fork_gives_nothing_back():
    loader = DataLoader(Marked(), 2, num_workers=1)
    batches = iter(loader)
    first = next(batches)
    pid = os.fork()
    if pid == 0:
        del first
        gc.collect()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    for _ in batches:
        pass
    assert first.asnumpy()[:, 0].tolist() == [0, 1]
