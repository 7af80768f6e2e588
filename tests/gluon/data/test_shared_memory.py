import gc
import os

import numpy as np
import pytest
import torch

import mxnet as mx
from interrupt_checks import interrupt, interrupted, settle
from loader_checks import Numbers
from mxnet.gluon.data import DataLoader, Dataset, SimpleDataset, shared_memory
from mxnet.gluon.data.dataloader import default_mp_batchify_fn


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


def test_batches_hold_no_descriptors():
    loader = DataLoader(Numbers(), 1, num_workers=1)
    batches = iter(loader)
    kept = [next(batches)]
    before = len(os.listdir("/proc/self/fd"))
    kept += list(batches)
    assert len(os.listdir("/proc/self/fd")) <= before
    assert [int(data.asnumpy().mean()) for data, _ in kept] == list(range(10))


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


def test_memory_is_mapped_as_long_as_something_is_in_it():
    fd = shared_memory._anonymous_file(4096)
    memory, let_go = shared_memory.Memory(fd), []
    other = shared_memory.Memory(fd).tensor()
    os.close(fd)
    tensor = memory.tensor(64, lambda: let_go.append(True))
    assert memory.size == 4096 and tensor.shape == (4032,)
    tensor[:2] = torch.tensor([7, 8], dtype=torch.uint8)
    assert other[64:67].tolist() == [7, 8, 0]  # another mapping of the same memory
    part = tensor[1:2]
    del tensor, memory
    gc.collect()
    assert not let_go and part.tolist() == [8]
    del part
    gc.collect()
    assert let_go == [True]


def test_a_message_carries_arrays_of_all_kinds():
    large = mx.nd.arange(40000)
    message, descriptors = shared_memory.pack({"large": large, "small": mx.nd.array([1, 2]), "numpy": np.arange(3), "text": "x"})[:2]
    found = shared_memory.unpack(message, descriptors)
    assert found["large"].context == mx.Context("cpu_shared", 0) and found["large"].asnumpy()[-1] == 39999
    assert found["small"].asnumpy().tolist() == [1, 2] and found["numpy"].tolist() == [0, 1, 2] and found["text"] == "x"


def test_an_interrupt_while_memory_is_let_go_comes_afterwards():
    def let_go():
        interrupt()
        done.append(True)

    done = []
    fd = shared_memory._anonymous_file(4096)
    tensor = shared_memory.Memory(fd).tensor(64, let_go)
    os.close(fd)
    with interrupted():
        del tensor
        settle()
    assert done == [True]
