import mxnet as mx
from mxnet import nd


def test_data_loader_iter_fills_up_the_last_batch():
    pairs = mx.gluon.data.ArrayDataset(nd.arange(6).reshape((3, 2)), nd.array([7, 8, 9]))
    it = mx.contrib.io.DataLoaderIter(mx.gluon.data.DataLoader(pairs, batch_size=2), label_name="target", dtype="float16")
    assert [(d.name, d.shape) for d in it.provide_data + it.provide_label] == [("data", (2, 2)), ("target", (2,))]
    for _ in range(2):
        first, last = list(it)
        assert first.data[0].asnumpy().tolist() == [[0, 1], [2, 3]] and first.pad == 0
        assert last.data[0].asnumpy().tolist() == [[4, 5], [0, 0]] and last.label[0].asnumpy().tolist() == [9, 0] and last.pad == 1
        assert str(last.label[0].dtype).endswith("float16'>") and last.index is None
        it.reset()


def test_namespaces():
    assert mx.contrib.nd is mx.contrib.ndarray is mx.nd.contrib
    assert mx.contrib.sym is mx.contrib.symbol is mx.sym.contrib
    assert {"autograd", "io", "nd", "sym", "text"} <= set(dir(mx.contrib))
