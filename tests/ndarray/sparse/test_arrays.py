import numpy as np
import pytest

import mxnet as mx
from mxnet.ndarray import sparse


@pytest.mark.parametrize("indices, indptr, words", [
    ([0, 2, 1], [0, 2, 2, 4], "indptr must go from 0 to the number of values, 3"),
    ([0, 2, 1], [1, 2, 2, 3], "indptr must go from 0"),
    ([0, 2, 1], [0, -2, 2, 3], "indptr must not decrease"),
    ([0, 2, 7], [0, 2, 2, 3], r"column indices must be in \[0, 3\)"),
    ([2, 1, 1], [0, 2, 2, 3], "column indices must increase within a row"),
])
def test_a_matrix_is_checked_when_asked_for(indices, indptr, words):
    a = sparse.csr_matrix(([7, 8, 9], indices, indptr), shape=(3, 3))
    a.check_format(full_check=False)
    with pytest.raises(mx.MXNetError, match=words):
        a.check_format()


@pytest.mark.parametrize("indices, words", [([1, 4], r"row indices must be in \[0, 3\)"), ([1, 0], "row indices must increase"),
                                            ([1, -2], r"row indices must be in \[0, 3\)")])
def test_rows_are_checked_when_asked_for(indices, words):
    a = sparse.row_sparse_array(([[1, 2], [3, 4]], indices), shape=(3, 2))
    a.check_format(full_check=False)
    with pytest.raises(mx.MXNetError, match=words):
        a.check_format()


def test_rows_keep_the_order_they_are_given_in():
    a = sparse.row_sparse_array(([[1, 2], [3, 4]], [2, 0]), shape=(3, 2))
    assert a.indices.asnumpy().tolist() == [2, 0] and a.data.asnumpy().tolist() == [[1, 2], [3, 4]]
    assert a.asnumpy().tolist() == [[3, 4], [0, 0], [1, 2]]
    assert (a + a).asnumpy().tolist() == [[6, 8], [0, 0], [2, 4]]
    assert sparse.retain(a, mx.nd.array([0])).asnumpy().tolist() == [[3, 4], [0, 0], [0, 0]]


def test_cast_storage_as_a_function():
    a = mx.nd.array([[1, 0], [0, 0], [0, 2]])
    assert [mx.nd.cast_storage(a, s).stype for s in ("csr", "row_sparse", "default")] == ["csr", "row_sparse", "default"]
    out = sparse.zeros("csr", (3, 2))
    assert sparse.cast_storage(data=a, stype="csr", out=out) is out and out.asnumpy().tolist() == [[1, 0], [0, 0], [0, 2]]
    rows = mx.nd.cast_storage(a.tostype("csr"), stype="row_sparse")
    assert rows.indices.asnumpy().tolist() == [0, 2] and rows.data.asnumpy().tolist() == [[1, 0], [0, 2]]
    with pytest.raises(mx.MXNetError, match="unknown storage type 'coo'"):
        mx.nd.cast_storage(a, stype="coo")
    with pytest.raises(mx.MXNetError, match="only an array of 2 axes"):
        mx.nd.cast_storage(mx.nd.ones(3), stype="csr")


def test_a_gradient_of_few_rows_is_taken_as_it_is():
    import torch
    buffer = sparse.zeros("row_sparse", (1 << 40, 2))
    gradient = torch.sparse_coo_tensor([[7, 3, 7]], [[1., 2], [3, 4], [10, 20]], buffer.shape, check_invariants=True)
    buffer._take_dense(gradient)
    assert buffer.indices.asnumpy().tolist() == [3, 7] and buffer.data.asnumpy().tolist() == [[3, 4], [11, 22]]
    buffer._take_dense(gradient, add=True)
    assert buffer.data.asnumpy().tolist() == [[6, 8], [22, 44]]


def test_names_that_programs_import():
    assert sparse.gs_retain is sparse.retain
    with pytest.raises(NotImplementedError, match="has no format to check"):
        sparse.BaseSparseNDArray.check_format(sparse.zeros("csr", (2, 2)))


def test_assignment_is_of_all_values():
    big = sparse.row_sparse_array(([[1, 2]], [5]), shape=(1 << 45, 2))
    big[:] = 0  # no dense array in between
    assert big.indices.shape == (0,)
    for stype in ("csr", "row_sparse"):
        a = mx.nd.array([[1, 2], [0, 0]]).tostype(stype)
        a[:] = 2
        assert a.stype == stype and a.asnumpy().tolist() == [[2, 2], [2, 2]]
        a[:] = np.array([[0, 0], [1, 0]])
        assert a.asnumpy().tolist() == [[0, 0], [1, 0]] and a.indices.asnumpy().tolist() == [0 if stype == "csr" else 1]
        with pytest.raises(TypeError, match=r"only supports \[:\] for assignment"):
            a[0] = 1
        with pytest.raises(TypeError, match="type <class 'str'> not supported"):
            a[:] = "x"


def test_sparse_bfloat16_as_numpy():
    rows = mx.nd.cast_storage(mx.nd.array([[1, 0], [0, 0]], dtype="bfloat16"), "row_sparse")
    assert rows.asnumpy().dtype == mx.nd.ones(1, dtype="bfloat16").asnumpy().dtype


@pytest.mark.parametrize("call, message", [(lambda x: mx.nd.cast_storage(None, "csr"), "`data` must be an NDArray, received NoneType"),
                                           (lambda x: mx.nd.cast_storage(x), "unknown storage type None"),
                                           (lambda x: mx.nd.cast_storage(x, "csr", out=[x, x]), "one array for the result expected in `out`")])
def test_cast_storage_refuses(call, message):
    with pytest.raises(mx.MXNetError, match=message):
        call(mx.nd.ones((2, 2)))


def test_parts_are_copies():
    matrix, rows = sparse.csr_matrix(([1.0, 2.0], [0, 1], [0, 1, 2]), shape=(2, 2)), sparse.row_sparse_array(([[1.0, 2.0]], [1]), shape=(3, 2))
    for part in (matrix.data, matrix.indices, matrix.indptr, rows.data, rows.indices):
        part[:] = 5
    matrix.asscipy().data[:] = 5
    assert matrix.asnumpy().tolist() == [[1, 0], [0, 2]] and rows.asnumpy().tolist() == [[0, 0], [1, 2], [0, 0]]


@pytest.mark.parametrize("numbers, wrong", [([-1], -1), ([0, 3], 3), ([1, -2], -2)])
def test_only_rows_that_there_are_can_be_retained(numbers, wrong):
    rows = sparse.row_sparse_array(([[1.0, 2.0]], [1]), shape=(3, 2))
    with pytest.raises(mx.base.MXNetError, match=f"retain: row numbers from 0 to 2 expected, received {wrong}"):
        sparse.retain(rows, mx.nd.array(numbers))
    with pytest.raises(mx.base.MXNetError, match=f"retain: row numbers from 0 to 2 expected, received {wrong}"):
        data, kept = mx.sym.Variable("data"), mx.sym.Variable("kept")
        mx.sym.sparse.retain(data, kept).eval(ctx=mx.cpu(), data=mx.nd.ones((3, 2)), kept=mx.nd.array(numbers))
