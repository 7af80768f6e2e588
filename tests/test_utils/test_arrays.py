import numpy as np
import pytest

import mxnet as mx
from mxnet import test_utils as tu


def test_random_arrays():
    one = tu.random_arrays((2, 3))
    assert one.shape == (2, 3) and one.dtype == np.float32
    assert [a.shape for a in tu.random_arrays((2,), ())] == [(2,), ()]
    uniform, = tu.random_uniform_arrays((50,), low=2, high=3, dtype="float64")
    assert uniform.min() >= 2 and uniform.max() <= 3 and uniform.dtype == np.float64
    with pytest.raises(TypeError, match="Got unexpected argument/s : foo"):
        tu.random_uniform_arrays((2,), foo=1)
    assert sorted(tu.random_sample([1, 2, 3], 3)) == [1, 2, 3]
    with pytest.raises(ValueError, match="4 elements can't be taken from 3"):
        tu.random_sample([1, 2, 3], 4)


def test_shapes():
    np.random.seed(0)
    assert {tu.rand_shape_nd(3, dim=2) for _ in range(60)} == set(np.ndindex(3, 3, 3)) - {s for s in np.ndindex(3, 3, 3) if 0 in s}
    assert (0, 0) in {tu.rand_shape_2d(1, 1, allow_zero_size=True) for _ in range(60)}
    assert len(tu.rand_shape_3d()) == 3 and all(isinstance(s, int) for s in tu.rand_shape_3d())
    x, y = tu.rand_coord_2d(1, 3, 5, 7)
    assert 1 <= x < 3 and 5 <= y < 7


@pytest.mark.parametrize("stype", ["default", "row_sparse", "csr"])
def test_rand_ndarray(stype):
    array = tu.rand_ndarray((6, 5), stype, density=0.5, dtype="float64", ctx=mx.cpu(1))
    assert (array.shape, array.stype, array.dtype, array.context) == ((6, 5), stype, np.float64, mx.cpu(1))


def test_sparse_parts():
    array, (values, rows) = tu.rand_sparse_ndarray((6, 2), "row_sparse", rsp_indices=np.array([1, 4]), data_init=3)
    assert rows.tolist() == [1, 4] and array.asnumpy()[[1, 4]].tolist() == values.tolist() == [[3, 3], [3, 3]]
    doubled, (values, _) = tu.rand_sparse_ndarray((6, 2), "row_sparse", density=1, data_init=2, modifier_func=lambda v: v * 2)
    assert (doubled.asnumpy() == 4).all()
    empty, _ = tu.rand_sparse_ndarray((6, 2), "row_sparse", density=0)
    assert not empty.asnumpy().any()
    matrix, (indptr, indices, data) = tu.rand_sparse_ndarray((8, 10), "csr", density=0.25, data_init=1)
    assert data.shape == (20,) and indptr.shape == (9,) and matrix.asnumpy().sum() == 20
    matrix.check_format()


def test_powerlaw():
    matrix, _ = tu.rand_sparse_ndarray((4, 16), "csr", density=0.4, distribution="powerlaw")
    assert (matrix.asnumpy() != 0).sum(axis=1).tolist() == [2, 4, 8, 11]
    with pytest.raises(ValueError, match="not supported for this density: 0.1"):
        tu.rand_sparse_ndarray((4, 16), "csr", density=0.1, distribution="powerlaw")


@pytest.mark.parametrize("args, kwargs, message", [
    (((2, 2), "dense"), {}, "unknown storage type 'dense'"), (((2, 2, 2), "csr"), {}, "a csr matrix has two axes"),
    (((2, 2), "csr"), {"density": 2}, "density has to be between 0 and 1"), (((2, 2), "csr"), {"distribution": "x"}, "distribution 'x'"),
    (((2, 2), "row_sparse"), {"distribution": "powerlaw"}, "'powerlaw' is not supported for row_sparse"),
    (((2, 2), "row_sparse"), {"rsp_indices": np.arange(3)}, "3 rows were given for an array of 2")])
def test_wrong_sparse_arguments(args, kwargs, message):
    with pytest.raises(ValueError, match=message):
        tu.rand_sparse_ndarray(*args, **kwargs)


def test_create_sparse_array():
    assert tu.create_sparse_array((5, 2), "row_sparse", data_init=1, rsp_indices=[3, 1]).asnumpy().sum(axis=1).tolist() == [0, 2, 0, 2, 0]
    assert not tu.create_sparse_array_zd((5, 2), "row_sparse", density=1).asnumpy().any()
    assert tu.create_sparse_array_zd((5, 2), "csr", density=1, data_init=1).asnumpy().all()


def test_elementwise_functions():
    assert tu.assign_each(np.array([[1, 2]]), lambda v: v + 1).tolist() == [[2, 3]]
    assert tu.assign_each(np.array([1]), None).tolist() == [1] and tu.assign_each(np.zeros((0, 2)), abs).shape == (0, 2)
    assert tu.assign_each2(np.array([1, 2]), np.array([3, 4]), lambda a, b: a * b).tolist() == [3, 8]
    with pytest.raises(ValueError, match="arrays of one shape"):
        tu.assign_each2(np.ones(2), np.ones(3), max)


def test_reductions():
    x = np.arange(24).reshape(2, 3, 4)
    assert tu.np_reduce(x, (0, 2), True, np.sum).tolist() == x.sum(axis=(0, 2), keepdims=True).tolist()
    assert tu.np_reduce(x, None, False, np.max) == 23 and tu.np_reduce(x, 1, False, np.sum).shape == (2, 4)
    assert tu.collapse_sum_like(x, (3, 1)).tolist() == [[60], [92], [124]]
    assert tu.collapse_sum_like(x, (0, 4)).shape == (0, 4)
    with pytest.raises(ValueError, match="can't be broadcast"):
        tu.collapse_sum_like(x, (2, 4))
    with pytest.raises(ValueError, match="has more axes"):
        tu.collapse_sum_like(x, (1, 2, 3, 4))


def test_special_arrays():
    assert tu.create_2d_tensor(2, 3).asnumpy().tolist() == [[0, 0, 0], [1, 1, 1]] and tu.create_2d_tensor(2, 3).dtype == np.int64
    assert tu.create_vector(3, dtype=np.float32).asnumpy().tolist() == [0, 1, 2]
    assert (tu.get_identity_mat_batch(3).asnumpy() == tu.get_identity_mat(3).asnumpy()).all()
    q = tu.new_orthonormal_matrix_2d(4)
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-9)
    for make in (tu.new_matrix_with_real_eigvals_nd, tu.new_sym_matrix_with_real_eigvals_nd):
        many = make((2, 3, 3))
        assert many.shape == (2, 3, 3) and np.abs(np.linalg.eigvals(many).imag).max() < 1e-6
    np.testing.assert_allclose(many, many.transpose(0, 2, 1), atol=1e-9)


def test_shuffled_columns():
    from scipy import sparse
    matrix = sparse.csr_matrix(np.ones((3, 20)))
    tu.shuffle_csr_column_indices(matrix)
    assert not np.array_equal(matrix.indices[:20], np.arange(20)) and sorted(matrix.indices[:20]) == list(range(20))


def test_csr_matrices_of_a_density():
    uniform = mx.test_utils._get_uniform_dataset_csr(10, 10, 0.2, data_init=2.0)
    assert (uniform.asnumpy() == 2).sum() == 20
    power = mx.test_utils._get_powerlaw_dataset_csr(4, 16, 0.4, dtype="float32")
    assert (power.asnumpy() != 0).sum(1).tolist() == [2, 4, 8, 11]
    check = mx.test_utils._validate_csr_generation_inputs
    check(10, 10, 0.3, "powerlaw")
    for arguments, message in (((1, 1, 2.0), "density must be from 0 to 1, received 2.0"), ((0, 1, 0.5), r"received \(0, 1\)"),
                               ((10, 10, 0.1, "powerlaw"), "not supported for this density")):
        with pytest.raises(ValueError, match=message):
            check(*arguments)
