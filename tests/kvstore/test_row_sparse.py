import mxnet as mx
from mxnet.kvstore import row_sparse


def rows(values, numbers):
    return mx.nd.sparse.row_sparse_array((values, numbers), shape=(5, 2))


def test_rows_of_one_number_are_added_and_all_come_in_order():
    total = row_sparse.add([rows([[1, 2], [3, 4]], [4, 1]), rows([[10, 20], [30, 40]], [1, 2]), rows([[5, 5]], [1])])
    assert total.stype == "row_sparse" and total.shape == (5, 2)
    assert total.indices.asnumpy().tolist() == [1, 2, 4] and total.data.asnumpy().tolist() == [[18, 29], [30, 40], [1, 2]]


def test_one_array_is_returned_as_it_is():
    array = rows([[1, 2]], [3])
    assert row_sparse.add([array]) is array


def test_arrays_without_rows():
    empty = mx.nd.sparse.zeros("row_sparse", (5, 2))
    assert row_sparse.add([empty, empty]).indices.shape == (0,)
    assert row_sparse.add([empty, rows([[1, 2]], [3])]).asnumpy()[3].tolist() == [1, 2]
