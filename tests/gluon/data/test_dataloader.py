import gc
import json
import multiprocessing
import os
import threading
import time

import numpy as np
import pytest

import mxnet as mx
from interrupt_checks import interrupt, interrupted, settle
from loader_checks import Failing, Numbers
from mxnet.gluon.data import ArrayDataset, BatchSampler, DataLoader, SequentialSampler, SimpleDataset
from mxnet.gluon.data import workers as data_workers
from mxnet.gluon.data.dataloader import _as_in_context, _MultiWorkerIter, default_batchify_fn, default_mp_batchify_fn

WAYS = [{}, {"num_workers": 2}, {"num_workers": 2, "thread_pool": True}]


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


@pytest.mark.parametrize("way", WAYS[1:])
def test_nothing_keeps_a_loader_alive(way):
    def fail():
        raise OSError("once")

    def work():
        loader = DataLoader(Failing(fail), 2, auto_reload=True, **way)
        with pytest.raises(OSError, match="once"):
            list(loader)
        assert [x.asscalar() for x in DataLoader(SimpleDataset([5]), 1, auto_reload=True, **way)] == [5]

    before = threading.active_count()
    gc.disable()  # they end with their last use, not when garbage is collected
    try:
        work()
        deadline = time.time() + 10
        while multiprocessing.active_children() or threading.active_count() > before:
            assert time.time() < deadline, (multiprocessing.active_children(), threading.enumerate())
            time.sleep(0.01)
    finally:
        gc.enable()


def test_an_interrupt_while_a_loader_ends_comes_afterwards(monkeypatch):
    end = data_workers.Worker.end

    def slow(worker):
        interrupt()
        end(worker)

    monkeypatch.setattr(data_workers.Worker, "end", slow)
    loader = DataLoader(Numbers(), 2, num_workers=2)
    next(iter(loader))
    with interrupted():
        del loader
        settle()
    assert not multiprocessing.active_children()


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


@pytest.mark.parametrize("options", [dict(), dict(num_workers=2), dict(num_workers=2, thread_pool=True), dict(last_batch="rollover")], ids=str)
def test_an_epoch_goes_on_where_its_state_was_asked_for(options):
    def loader():
        return DataLoader(list(range(23)), batch_size=4, **{"last_batch": "keep", **options}, sampler=mx.gluon.data.RandomSampler(23))

    first, seen, states = loader(), [], []
    states.append(first.state())
    assert states[0] == {"batches": None, "rolled_over": []}
    for _ in range(2):
        for batch in first:
            seen.append(batch.asnumpy().tolist())
            states.append(json.loads(json.dumps(first.state())))
        for place in range(1, len(states)):
            again = loader()
            again.load_state(states[place])
            assert [batch.asnumpy().tolist() for batch in again] == seen[place:]
        assert first.state()["batches"] is None
        seen.clear()
        del states[1:]


def test_a_state_that_is_none():
    with pytest.raises(mx.MXNetError, match=r"load_state: what `state\(\)` of a DataLoader returned is expected, received {'batches': 3}"):
        DataLoader([1, 2], batch_size=1).load_state({"batches": 3})


def test_try_nopython(tmp_path):
    import cv2
    T = mx.gluon.data.vision.transforms
    (tmp_path / "a").mkdir()
    cv2.imwrite(str(tmp_path / "a" / "1.png"), np.zeros((9, 9, 3), np.uint8))
    images = mx.gluon.data.vision.ImageFolderDataset(str(tmp_path))
    loader = DataLoader(images.transform_first(T.Compose([T.Resize(4), T.ToTensor()])), batch_size=1, num_workers=2, try_nopython=True)
    assert [data.shape for data, _ in loader] == [(1, 3, 4, 4)] and isinstance(loader._worker_pool, data_workers.WorkerThreads)
    for dataset, extra, reason in ((images.transform_first(lambda x: x), {}, "the transform <function .* is not a Compose"),
                                   ([1, 2], {}, "list does not read image files"), (images, {"batchify_fn": list}, "there is a batchify_fn")):
        with pytest.raises(RuntimeError, match=f"try_nopython=True needs work that runs without the interpreter, and {reason}"):
            DataLoader(dataset, batch_size=1, try_nopython=True, **extra)
    DataLoader([1, 2], batch_size=1, try_nopython=False)
