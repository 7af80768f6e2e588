import numpy as np
import pytest

import mxnet as mx
from mxnet.ndarray import sparse


def test_parts_of_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="3 rows need 4 entries in indptr, received 3"):
        sparse.csr_matrix(([1, 2], [0, 2], [0, 1, 2]), shape=(3, 3))
    with pytest.raises(ValueError, match=r"data of shape \(2, 2\) and \(2,\) indices do not make an array of shape \(3, 3\)"):
        sparse.row_sparse_array(([[1, 2], [3, 4]], [2, 1]), shape=(3, 3))
    with pytest.raises(ValueError, match=r"only an array of 2 axes can be stored as csr, received shape \(3,\)"):
        mx.nd.array([1, 2, 3]).tostype("csr")


def test_a_scipy_matrix_is_brought_into_order():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    source = scipy_sparse.csr_matrix((np.array([1., 2, 3, 4, 5, 6, 1]), [0, 2, 2, 0, 1, 2, 1], [0, 2, 3, 7]), shape=(3, 3))
    a = sparse.csr_matrix(source, dtype="float32")
    assert a.data.asnumpy().tolist() == [1, 2, 3, 4, 6, 6] and a.indices.asnumpy().tolist() == [0, 2, 2, 0, 1, 2]
    assert source.data.tolist() == [1, 2, 3, 4, 5, 6, 1]  # the source is left alone


def test_a_matrix_from_coordinates_sums_what_falls_together():
    a = sparse.csr_matrix(([1, 2, 3], ([1, 0, 1], [2, 1, 2])))
    assert a.shape == (2, 3) and a.asnumpy().tolist() == [[0, 2, 0], [0, 0, 4]]
    assert a.data.asnumpy().tolist() == [2, 4] and a.indptr.asnumpy().tolist() == [0, 1, 2]


def test_shapes_and_types():
    a = sparse.csr_matrix(([1, 2], [0, 4], [0, 1, 2]))
    assert a.shape == (2, 5) and a.dtype == np.float32  # of lists
    assert sparse.csr_matrix((np.array([1, 2]), [0, 4], [0, 1, 2])).dtype == np.int64
    assert sparse.row_sparse_array((np.ones((1, 2), "float16"), [3])).dtype == np.float16
    assert sparse.row_sparse_array(([[1, 2]], [3]), dtype="float64").shape == (4, 2)
    with pytest.raises(ValueError, match="invalid shape: it cannot be found from an empty list of indices"):
        sparse.csr_matrix(([], [], [0, 0]))
    with pytest.raises(ValueError, match=r"Shape mismatch detected. \(3, 3\) v.s. \(2, 2\)"):
        sparse.csr_matrix((2, 2), shape=(3, 3))
    with pytest.raises(ValueError, match="Unexpected length of input tuple: 4"):
        sparse.csr_matrix((1, 2, 3, 4))


@pytest.mark.parametrize("stype", ["csr", "row_sparse", "default"])
def test_zeros(stype):
    a = sparse.zeros(stype, (2, 3), dtype="float16")
    assert (a.stype, a.shape, a.dtype) == (stype, (2, 3), np.float16) and a.asnumpy().tolist() == [[0, 0, 0], [0, 0, 0]]


def test_zeros_of_other_kinds_and_shapes_are_refused():
    with pytest.raises(mx.MXNetError, match=r"a csr array has 2 axes, received shape \(3,\)"):
        sparse.zeros("csr", 3)
    with pytest.raises(ValueError, match="unknown storage type 'coo'; expected 'default', 'csr' or 'row_sparse'"):
        sparse.empty("coo", (2, 2))
    with pytest.raises(TypeError, match=r"zeros got unexpected arguments \['order'\]"):
        sparse.zeros("csr", (2, 2), order="C")


def test_array_keeps_the_kind_of_its_source():
    source = mx.nd.array([[0, 1], [0, 0]])
    for stype in ("csr", "row_sparse"):
        a = sparse.array(source.tostype(stype), dtype="float64")
        assert (a.stype, a.dtype) == (stype, np.float64) and a.asnumpy().tolist() == [[0, 1], [0, 0]]
    with pytest.raises(ValueError, match="a sparse NDArray or a scipy matrix expected, received .*NDArray"):
        sparse.array(source)
    with pytest.raises(ValueError, match="dense sources belong to mx.nd.array"):
        sparse.array([[1]])


@pytest.mark.parametrize("values, dtype", [([1, 2], "int64"), ([1.0, 2.0], "float64"), (np.array([1, 2], "float16"), "float32"),
                                           (mx.nd.array([1, 2]), "float32")])
def test_coordinates_have_the_types_that_scipy_gives(values, dtype):
    a = sparse.csr_matrix((values, ([0, 1], [1, 0])), shape=(2, 2))
    assert np.dtype(a.dtype).name == dtype and a.asnumpy().tolist() == [[0, 1], [2, 0]]


@pytest.mark.parametrize("values, rows, columns, shape, words", [
    ([1, 2], [0, 1, 1], [0, 1], (2, 2), r"of one axis and one length expected, received shapes \(2,\), \(3,\), \(2,\)"),
    ([[1, 2]], [[0, 1]], [[0, 1]], (2, 2), "of one axis and one length expected"),
    ([1, 2], [0, -1], [0, 1], None, "row numbers must be at least 0, received -1 to 0"),
    ([1, 2], [0, 1], [0, 7], (2, 2), "column numbers must be at least 0 and below 2, received 0 to 7"),
    ([], [], [], None, "invalid shape: it cannot be found from empty lists of rows and columns")])
def test_coordinates_are_checked(values, rows, columns, shape, words):
    with pytest.raises(ValueError, match=words):
        sparse.csr_matrix((values, (rows, columns)), shape=shape)


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_types_that_sparse_arrays_do_not_hold(dtype):
    for create in (sparse.csr_matrix, sparse.row_sparse_array):
        with pytest.raises(TypeError, match=f"sparse arrays hold no {dtype}"):
            create(np.ones((2, 2), dtype))
