import pickle

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.data import ArrayDataset, Dataset, RecordFileDataset, SequentialSampler, SimpleDataset

ten = SimpleDataset(list(range(10)))


def elements(dataset):
    return [dataset[i] for i in range(len(dataset))]


def test_filter_take_sample():
    assert elements(ten.filter(lambda x: x % 3 == 0)) == [0, 3, 6, 9]
    assert elements(ten.take(3)) == [0, 1, 2]
    assert len(ten.take(None)) == len(ten.take(99)) == 10
    assert elements(ten.sample(SequentialSampler(2, 4))) == [4, 5]
    assert elements(ten.take(4).filter(lambda x: x % 2)) == [1, 3]


def test_shards_differ_by_one_at_most():
    assert [elements(ten.shard(3, i)) for i in range(3)] == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]


@pytest.mark.parametrize(("arguments", "text"), [
    ((3, 3), "Shard index of out bound: 3 out of 3"), ((3, -1), "Index must be non-negative"), ((0, 0), "0 out of 0")])
def test_shard_refuses(arguments, text):
    with pytest.raises(AssertionError, match=text):
        ten.shard(*arguments)
    with pytest.raises(mx.MXNetError, match=text):
        ten.shard(*arguments)


def test_sample_needs_a_sampler():
    with pytest.raises(TypeError, match="Invalid sampler type: <class 'list'>. Expected gluon.data.Sampler"):
        ten.sample([1, 2])


def test_transforms_are_computed_when_asked_for():
    calls = []

    def double(x):
        calls.append(x)
        return 2 * x

    lazy = ten.transform(double)
    assert calls == []
    assert (lazy[3], lazy[3], calls) == (6, 6, [3, 3])
    eager = ten.take(2).transform(double, lazy=False)
    assert calls == [3, 3, 0, 1]
    assert elements(eager) == [0, 2]


def test_transform_receives_the_parts_of_a_tuple():
    pairs = ArrayDataset([1, 2], [10, 20])
    assert elements(pairs.transform(lambda a, b: a + b)) == [11, 22]
    assert elements(pairs.transform_first(lambda a: -a)) == [(-1, 10), (-2, 20)]
    assert elements(ten.take(2).transform_first(lambda a: -a)) == [0, -1]


def test_transform_first_can_be_pickled():
    dataset = pickle.loads(pickle.dumps(SimpleDataset([1, -2]).transform_first(abs)))
    assert elements(dataset) == [1, 2]


def test_array_dataset():
    dataset = ArrayDataset(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([5, 6], dtype="int32"), "ab")
    data, label, letter = dataset[1]
    assert isinstance(data, mx.nd.NDArray)
    assert data.asnumpy().tolist() == [3, 4]
    assert (type(label), label, letter) == (np.int32, 6, "b")
    assert len(dataset) == 2
    assert ArrayDataset([7, 8])[0] == 7


def test_array_dataset_refuses():
    with pytest.raises(AssertionError, match="Needs at least 1 arrays, received none"):
        ArrayDataset()
    with pytest.raises(AssertionError, match="received 1 items in the first and 2 in array 1"):
        ArrayDataset([1], [1, 2])


def test_record_file_dataset(tmp_path):
    path = str(tmp_path / "a.rec")
    writer = mx.recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), path, "w")
    for i, content in enumerate([b"one", b"second", b""]):
        writer.write_idx(i, content)
    writer.close()
    dataset = RecordFileDataset(path)
    assert elements(dataset) == [b"one", b"second", b""]


def test_record_file_dataset_names_a_missing_file(tmp_path):
    with pytest.raises(mx.MXNetError, match="none.(rec|idx)"):
        RecordFileDataset(str(tmp_path / "none.rec"))


def test_the_base_is_abstract():
    with pytest.raises(NotImplementedError):
        Dataset()[0]
    with pytest.raises(NotImplementedError):
        len(Dataset())
