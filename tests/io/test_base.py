import pickle

import pytest

import mxnet as mx
from mxnet.io import DataBatch, DataDesc, DataIter


def test_datadesc():
    desc = DataDesc("data", (2, 3), "int32", "NC")
    assert repr(desc) == "DataDesc[data,(2, 3),int32,NC]"
    assert desc == ("data", (2, 3)) and (desc.dtype, desc.layout) == ("int32", "NC")
    assert repr(DataDesc("data", (2, 3))) == "DataDesc[data,(2, 3),<class 'numpy.float32'>,NCHW]"
    assert repr(pickle.loads(pickle.dumps(desc))) == repr(desc)


def test_batch_axis():
    assert [DataDesc.get_batch_axis(layout) for layout in ("NCHW", "TNC", "CHW", None)] == [0, 1, -1, 0]


def test_get_list():
    assert DataDesc.get_list([("a", (1, 2))], [("a", "int32")])[0].dtype == "int32"
    assert str(DataDesc.get_list([("a", (1, 2))], None)) == "[DataDesc[a,(1, 2),<class 'numpy.float32'>,NCHW]]"


def test_databatch():
    batch = DataBatch([mx.nd.ones((2, 3)), mx.nd.ones((7, 8))], [mx.nd.ones((4, 5))])
    assert str(batch) == "DataBatch: data shapes: [(2, 3), (7, 8)] label shapes: [(4, 5)]"
    assert str(DataBatch([mx.nd.ones((2, 3))])) == "DataBatch: data shapes: [(2, 3)] label shapes: None"
    with pytest.raises(TypeError, match="data must be a list of NDArrays, received NDArray"):
        DataBatch(mx.nd.ones((2,)))
    with pytest.raises(TypeError, match="label must be a list"):
        DataBatch([mx.nd.ones((2,))], label=mx.nd.ones((2,)))


def test_dataiter_by_pieces():
    class Count(DataIter):
        at = 0

        def iter_next(self):
            self.at += 1
            return self.at <= 2

        def getdata(self):
            return [self.at]

        def getlabel(self):
            return [-self.at]

        def getpad(self):
            return 0

    assert [(b.data, b.label, b.pad, b.index) for b in Count(1)] == [([1], [-1], 0, None), ([2], [-2], 0, None)]
