import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.data import ArrayDataset, DataLoader, SimpleDataset, batchify


def values(batch):
    return [x.asnumpy().tolist() for x in batch]


def test_stack():
    stacked = batchify.Stack()([np.array([1, 2], "int32"), np.array([3, 4], "int32")])
    assert stacked.asnumpy().tolist() == [[1, 2], [3, 4]] and stacked.dtype == np.int32
    assert values(batchify.Stack()([(mx.nd.array([1]), 5), (mx.nd.array([2]), 6)])) == [[[1], [2]], [5, 6]]
    shared = batchify.Stack(use_shared_mem=True)([mx.nd.array([1]), mx.nd.array([2])])
    assert shared.asnumpy().tolist() == [[1], [2]] and shared.context.device_type == "cpu_shared"
    with mx.np_shape(True), mx.np_array(True):
        assert type(batchify.Stack()([1, 2])) is mx.np.ndarray


def test_pad():
    a, b = np.array([[1, 2, 3], [4, 5, 6]], "int8"), np.array([[7]], "int8")
    assert batchify.Pad(val=-1)([a, b]).asnumpy().tolist() == [[[1, 2, 3], [4, 5, 6]], [[7, -1, -1], [-1, -1, -1]]]
    padded = batchify.Pad(round_to=4, dtype="float32")([mx.nd.array([1]), mx.nd.array([2, 3, 4, 5, 6])])
    assert padded.shape == (2, 8) and padded.dtype == np.float32 and padded.asnumpy().sum() == 21
    assert batchify.Pad()([[1], []]).asnumpy().tolist() == [[1], [0]]
    with pytest.raises(AssertionError, match=r"arrays or lists of numbers expected, received <class 'tuple'>; of samples with parts .* Group\(Pad"):
        batchify.Pad()([(1, 2), (3, 4)])
    with pytest.raises(AssertionError, match=r"one number of axes expected, received shapes \(1, 1\), \(1,\)"):
        batchify.Pad()([np.ones(1), np.ones((1, 1))])


def test_append():
    assert [x.shape for x in batchify.Append()([[1, 2], [3]])] == [(1, 2), (1, 1)]
    assert [x.shape for x in batchify.Append(batch_axis=1)([mx.nd.ones(2)])] == [(2, 1)]
    assert [x.shape for x in batchify.Append(expand=False, use_shared_mem=True)([mx.nd.ones(2), np.ones(3)])] == [(2,), (3,)]


def test_group():
    samples = [([1, 2], 0, "a"), ([3], 1, "b")]
    words, labels, texts = batchify.Group(batchify.Pad(), batchify.Stack(), batchify.AsList())(samples)
    assert words.asnumpy().tolist() == [[1, 2], [3, 0]] and labels.asnumpy().tolist() == [0, 1] and texts == ["a", "b"]
    assert len(batchify.Group([batchify.Pad(), batchify.Stack()])([([1], 0)])) == 2
    with pytest.raises(AssertionError, match="either one list of functions expected or each as an argument"):
        batchify.Group([batchify.Pad()], batchify.Pad())
    with pytest.raises(AssertionError, match="functions expected, received 3"):
        batchify.Group(3)
    with pytest.raises(AssertionError, match="samples of 1 parts expected, one for each function, received 3"):
        batchify.Group(batchify.Pad())(samples)


@pytest.mark.parametrize("workers", [0, 2])
def test_in_a_loader(workers):
    dataset = SimpleDataset([([1] * n, n) for n in (1, 3, 2, 4)])
    batches = list(DataLoader(dataset, 2, batchify_fn=batchify.Group(batchify.Pad(), batchify.Stack()), num_workers=workers))
    assert [b[0].shape for b in batches] == [(2, 3), (2, 4)] and batches[1][1].asnumpy().tolist() == [2, 4]
    assert len(list(DataLoader(ArrayDataset([1, 2, 3]), 2, batchify_fn=batchify.Stack()))) == 2
