import inspect

import pytest
import torch

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.io.native import BatchSource, files_of, native_iterator, part_of


class Numbers(BatchSource):
    def __init__(self, count):
        self.count = count

    def epoch(self, state):
        for i in range(self.count):
            yield torch.full((2, 1), float(i)), torch.zeros(2), 0, None, None


@native_iterator
def NumbersIter(*, count: int, flag: bool = False):
    """Batches of a number."""
    return Numbers(count + 10 * flag)


def test_iterating():
    it = NumbersIter(count=3, data_name="x")
    assert isinstance(it, mx.io.MXDataIter)
    assert it.provide_data == [("x", (2, 1))] and it.provide_label == [("softmax_label", (2,))] and it.batch_size == 2
    for _ in range(2):
        assert [b.data[0].asnumpy()[0, 0] for b in it] == [0, 1, 2]
        with pytest.raises(StopIteration):
            next(it)
        it.reset()


def test_by_pieces():
    it = NumbersIter(count=2)
    assert it.iter_next() and it.getdata().asnumpy()[0, 0] == 0
    assert it.iter_next() and it.getdata().asnumpy()[0, 0] == 1 and it.getpad() == 0 and it.getindex() is None
    assert not it.iter_next()


def test_debug_skip_load():
    it = NumbersIter(count=2)
    it.debug_skip_load()
    assert [next(it).data[0].asnumpy()[0, 0] for _ in range(5)] == [0] * 5


def test_arguments_may_be_text():
    assert len(list(NumbersIter(count="3"))) == 3
    assert len(list(NumbersIter(count=1, flag="True"))) == 11


def test_wrong_arguments():
    with pytest.raises(TypeError, match="NumbersIter can only accept keyword arguments"):
        NumbersIter(3)
    with pytest.raises(MXNetError, match="NumbersIter: Required parameter count is not presented"):
        NumbersIter()
    with pytest.raises(MXNetError, match="Invalid Parameter format for count: expected an integer, received 'abc'"):
        NumbersIter(count="abc")
    with pytest.raises(MXNetError, match="Invalid Parameter format for flag: expected True or False, received 'maybe'"):
        NumbersIter(count=1, flag="maybe")
    with pytest.warns(UserWarning, match="NumbersIter has no parameter 'flags' and ignores it; did you mean 'flag'"):
        NumbersIter(count=1, flags=1)
    with pytest.raises(MXNetError, match="the data hold no batch"):
        NumbersIter(count=0)


def test_signature():
    assert list(inspect.signature(NumbersIter).parameters) == ["count", "flag", "data_name", "label_name", "kwargs"]


def test_parts():
    assert [part_of(10, i, 3) for i in range(3)] == [(0, 4), (4, 8), (8, 10)]
    assert [part_of(10, i, 3, alignment=3) for i in range(3)] == [(0, 6), (6, 10), (10, 10)]
    with pytest.raises(MXNetError, match="part_index must be from 0 to num_parts - 1, received part_index=3 and num_parts=3"):
        part_of(10, 3, 3)


def test_files(tmp_path):
    (tmp_path / "b").write_text("22")
    (tmp_path / "a").write_text("1")
    (tmp_path / "empty").write_text("")
    assert files_of(tmp_path) == [(str(tmp_path / "a"), 1), (str(tmp_path / "b"), 2)]
    assert files_of(f"{tmp_path}/b;{tmp_path}/a") == [(str(tmp_path / "b"), 2), (str(tmp_path / "a"), 1)]
    with pytest.raises(MXNetError, match="cannot read .*none: No such file"):
        files_of(str(tmp_path / "none"))
    with pytest.raises(MXNetError, match="cannot find any files"):
        files_of(str(tmp_path / "empty"))
