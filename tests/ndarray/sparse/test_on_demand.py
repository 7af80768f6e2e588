import mxnet as mx
from mxnet import nd
from mxnet.ndarray.sparse import kernels  # noqa: F401  (registers itself)
from mxnet.ndarray.sparse.arrays import RowSparseNDArray
from mxnet.ndarray.sparse.dispatch import on_demand
from mxnet.ndarray.sparse.on_demand import RowsOnDemand, computed
from mxnet.ops.registry import get

WEIGHT = nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [0, 2]), shape=(4, 2))


def test_rows_are_computed_when_they_are_asked_for():
    made = on_demand(get("_square_sum"), [WEIGHT], {"axis": "1", "keepdims": "True"})
    assert isinstance(made, RowsOnDemand) and made.shape == (4, 1) and made._all is None
    assert made._rows(nd.array([2, 1], dtype="int64")._data).tolist() == [[25], [0]] and made._all is None
    assert made.asnumpy().tolist() == [[5], [0], [25], [0]] and made.indices.asnumpy().tolist() == [0, 2]


def test_others_are_not():
    assert on_demand(get("_square_sum"), [WEIGHT], {"axis": "0"}) is None
    assert on_demand(get("square"), [WEIGHT.tostype("default")], {}) is None and on_demand(get("exp"), [WEIGHT], {}) is None


def test_what_leaves_a_graph_is_computed():
    found = computed(on_demand(get("square"), [WEIGHT], {}))
    assert type(found) is RowSparseNDArray and found.data.asnumpy().tolist() == [[1, 4], [9, 16]] and computed(found) is found
    assert found.indices._data.data_ptr() != WEIGHT.indices._data.data_ptr()


def test_a_factorization_machine_touches_only_its_rows(monkeypatch):
    x, v = mx.sym.var("x", stype="csr"), mx.sym.var("v", stype="row_sparse", shape=(6, 2))
    squares = mx.sym.dot(mx.sym.square(x), mx.sym._internal._square_sum(v, axis=1, keepdims=True))
    out = mx.sym.MakeLoss(mx.sym.sum(mx.sym.square(mx.sym.dot(x, v)), axis=1, keepdims=True) - squares)
    data = nd.sparse.csr_matrix(([1, 2, 3], [0, 4, 0], [0, 2, 3]), shape=(2, 6))
    factors = nd.arange(1, 13).reshape((6, 2)).tostype("row_sparse")
    gradient = nd.sparse.zeros("row_sparse", (6, 2))
    exe = out.bind(mx.cpu(), {"x": data, "v": factors}, {"v": gradient}, {"x": "null", "v": "write"})

    def refuse(self, *_):
        raise AssertionError("the whole table was read")
    monkeypatch.setattr(RowSparseNDArray, "_dense", refuse)
    monkeypatch.setattr(RowsOnDemand, "_values", property(refuse))
    outputs = exe.forward(is_train=True)
    exe.backward()
    assert outputs[0].asnumpy().tolist() == [[116], [0]]
    assert exe.grad_dict["v"].indices.asnumpy().tolist() == [0, 4] and exe.grad_dict["v"].data.asnumpy().tolist() == [[36, 40], [4, 8]]


def test_what_is_made_of_it_is_an_ordinary_array():
    made = on_demand(get("square"), [WEIGHT], {})
    for array in (made.copyto(mx.cpu()), made.detach(), made.astype("float64"), nd.sparse.negative(made)):
        assert type(array) is RowSparseNDArray and abs(array.asnumpy()).tolist() == [[1, 4], [0, 0], [9, 16], [0, 0]]
