"""NumPy operators of linear algebra; values from MXNet 1.9.1 where nothing else is said."""
import pytest

import mxnet as mx
from mxnet import np
from numpy_checks import call, ruled

pytestmark = pytest.mark.usefixtures("numpy_mode")


def test_matrix_norms_of_batches():
    norms = np.linalg.norm(np.arange(12).reshape(2, 2, 3), ord=2)
    assert norms.asnumpy().tolist() == pytest.approx([7.3484693, 21.23394])


def near(array, values):
    return array.asnumpy().reshape(-1).tolist() == pytest.approx(values, abs=1e-5)


def test_the_largest_element_of_each_right_singular_vector_is_positive():
    ut, values, v = np.linalg.svd(np.array([[1.0, 2, 0], [-3, 1, 1]]))
    assert near(ut, [0.1601823, 0.9870874, -0.9870874, 0.1601823])
    assert near(values, [3.3409996, 2.1994824])
    assert near(v, [0.9342846, -0.1995579, -0.2954467, 0.2302999, 0.9703907, 0.0728273])


@pytest.mark.parametrize("half", "LU")
def test_the_largest_element_of_each_eigenvector_is_positive(half):
    values, vectors = np.linalg.eigh(np.array([[4.0, 1], [1, 2]]), half)
    assert near(values, [1.5857865, 4.4142137])
    assert near(vectors, [-0.3826834, 0.9238795, 0.9238795, 0.3826834])


@pytest.mark.parametrize("name", ["eig", "eigh", "eigvals", "eigvalsh"])
@pytest.mark.parametrize("dtype, expected", [("float32", "float32"), ("int32", "float64"), ("uint8", "float64"), ("float64", "float64")])
def test_eigenvalues_of_integers_are_float64(name, dtype, expected):
    found = getattr(np.linalg, name)(np.array([[2, 0], [0, 5]], dtype=dtype))
    assert {a.dtype.name for a in (found if isinstance(found, tuple | list) else [found])} == {expected}


@pytest.mark.parametrize("first, second, expected", [("float32", "float32", "float32"), ("float32", "float64", "float64"),
                                                     ("int32", "int32", "float64"), ("uint8", "float32", "float64")])
def test_systems_of_equations_are_solved_in_float64_unless_both_sides_are_float32(first, second, expected):
    x = np.linalg.solve(np.array([[4, 1], [1, 3]], dtype=first), np.array([1, 2], dtype=second))
    assert x.dtype == expected and near(x, [0.0909091, 0.6363636])
    x = np.linalg.tensorsolve(np.array([[[4, 0], [0, 2]]], dtype=first), np.array([[1, 3]], dtype=second))
    assert x.dtype == expected and near(x, [0.25, 1.5])
    a, b = (mx.sym.var(n).as_np_ndarray() for n in "ab")
    assert mx.sym.np.linalg.solve(a, b).infer_type(a=first, b=second)[1][0].__name__ == expected


def test_systems_of_equations_in_half_precision_are_refused():
    with pytest.raises(mx.base.MXNetError, match="_npi_solve: float16 is not supported; convert with astype"):
        np.linalg.solve(np.eye(2, dtype="float16"), np.ones(2, dtype="float16")).wait_to_read()


def test_cholesky_gives_the_lower_triangle_or_the_upper():
    a = np.array([[4.0, 1], [1, 3]])
    assert call("_npi_cholesky", a) == [pytest.approx([2, 0]), pytest.approx([0.5, 1.6583124])]
    assert call("_npi_cholesky", a, lower=False) == [pytest.approx([2, 0.5]), pytest.approx([0, 1.6583124])]


def test_pseudo_inverse_does_not_look_at_hermitian():
    a = np.array([[4.0, 1], [2, 3]])
    expected = [pytest.approx([0.3, -0.1], abs=1e-5), pytest.approx([-0.2, 0.4], abs=1e-5)]
    assert call("_npi_pinv_scalar_rcond", a, rcond=1e-5, hermitian=True) == expected
    assert call("_npi_pinv", a, np.array(1e-5), hermitian=True) == expected


@pytest.mark.parametrize("function", [np.linalg.eigvals, np.linalg.eig])
def test_eigenvalues_of_what_is_not_finite(function):
    """LAPACK would read beyond the matrix."""
    for value in (float("nan"), float("inf")):
        with pytest.raises(mx.MXNetError, match="finite numbers expected, received a matrix that holds infinity or NaN"):
            function(np.array([[2.9, -2, 0.5], [1, 7.9, -0.4], [value, value, 1]]))


@pytest.mark.parametrize("a, b, axes, shape", [
    ((2, 2, 4), (2, 2), (), (4,)), ((4, 2, 2), (2, 2), (0,), (4,)), ((2, 3, 6), (2, 3), (-1,), (6,)), ((6, 2, 3), (6,), (), (2, 3)),
    ((-1, 2, 4), (2, 2), (), (4,)), ((2, 2, -1), (-1, 2), (), (-1,)), ((2, 2, 3), (2, 2), (), None), ((2, 2, 4), (3,), (), None), (None, (2,),
    (), None)])
def test_shapes_of_solutions_of_tensor_equations(a, b, axes, shape):
    assert ruled("_npi_tensorsolve", a, b, a_axes=axes) == shape


def test_shapes_of_inverses():
    assert ruled("_npi_tensorinv", (6, 2, 3), ind=1) == (2, 3, 6) and ruled("_npi_tensorinv", (-1, 3, 6), ind=2) == (6, -1, 3)
    assert ruled("_npi_tensorinv", (4, 2, 3), ind=1) is None
    assert ruled("_npi_pinv_scalar_rcond", (5, -1, 3)) == (5, 3, -1) and ruled("_npi_pinv", (2, 3), (4,)) == (4, 3, 2)


@pytest.mark.parametrize("a, b, shape", [
    ((3, 3), (3,), (3,)), ((3, 3), (3, 2), (3, 2)), ((5, 3, 3), (5, 3), (5, 3)), ((5, 3, 3), (3,), (5, 3)), ((5, 1, 3, 3), (1, 4, 3, 2),
    (5, 4, 3, 2)),
    ((5, 1, 3, 3), (4, 3, 2), None), ((-1, 3), (3, -1), (3, -1)), ((-1, -1), (4,), (4,)), ((3, 3), (2,), None), ((2, 3), (3,), None)])
def test_shapes_of_systems_of_equations(a, b, shape):
    assert ruled("_npi_solve", a, b) == shape


def test_shapes_of_decompositions():
    assert ruled("_npi_svd", (5, 2, 3)) == [(5, 2, 2), (5, 2), (5, 2, 3)] and ruled("_npi_svd", (-1, 3)) == [(-1, -1), (-1,), (-1, 3)]
    assert ruled("_npi_svd", (3, 2)) == [None] * 3
    assert ruled("_npi_eigh", (5, -1, 3)) == [(5, 3),
    (5, 3, 3)] and ruled("_npi_eigvals", (-1, -1)) == (-1,) and ruled("_npi_eigvals", (2, 3)) is None
    assert ruled("_npi_cholesky", (3, -1)) == (3, 3) and ruled("_npi_cholesky", (3,)) is None


def test_shapes_of_norms():
    assert ruled("_npi_norm", (2, -1, 4)) == (2,) and ruled("_npi_norm", (2, -1, 4), flag=-2) == ()
    assert ruled("_npi_norm", (2, -1, 4), axis=(0,), keepdims=True) == (1, -1, 4)
    with pytest.raises(mx.MXNetError, match="the norm of a matrix .* has `ord` 1, -1, 2"):
        ruled("_npi_norm", (2, -1, 4), ord=3)
