"""Linear algebra: the values and gradients of MXNet 1.9.1."""
import numpy as onp
import pytest

from mxnet import np
from mxnet.base import MXNetError
from numpy_checks import check_gradients, check_value

A = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])
B = np.array([[2.0, 0.5, -1.0], [3.0, 2.0, 1.0]])
V = np.array([3.0, 1.0, 2.0])
N = np.array([[7, -3, 2], [0, 5, 4]], dtype='int32')
S = np.array([[4.0, 1.0], [1.0, 3.0]])
Z = np.array(2.5)

VALUES = [
    (lambda: np.dot(A, V), "float32", [7.0, 2.5]),
    (lambda: np.dot(V, V), "float32", 14.0),
    (lambda: np.dot(Z, A), "float32", [[2.5, -5.0, 7.5], [1.25, 10.0, -3.75]]),
    (lambda: np.tensordot(A, B, ([1], [1])), "float32", [[-2.0, 2.0], [4.5, 8.0]]),
    (lambda: np.inner(A, V), "float32", [7.0, 2.5]),
    (lambda: np.outer(V, V), "float32", [[9.0, 3.0, 6.0], [3.0, 1.0, 2.0], [6.0, 2.0, 4.0]]),
    (lambda: np.vdot(A, B), "float32", 6.0),
    (lambda: np.einsum('ij,kj->ik', A, B), "float32", [[-2.0, 2.0], [4.5, 8.0]]),
    (lambda: np.einsum('ii', S), "float32", 7.0),
    (lambda: np.einsum('ij->j', N), "int32", [7, 2, 6]),
    (lambda: np.linalg.norm(A), "float32", 5.700877),
    (lambda: np.linalg.norm(A, axis=1), "float32", [3.741657, 4.301163]),
    (lambda: np.linalg.norm(A, ord='inf', axis=(0, 1)), "float32", 6.0),
    (lambda: np.linalg.norm(A, ord=1, axis=(0, 1)), "float32", 6.0),
    (lambda: np.linalg.norm(S, ord='nuc', axis=(0, 1)), "float32", 7.0),
    (lambda: np.linalg.norm(A, ord=3, axis=0, keepdims=True), "float32", [[1.040042, 4.160168, 3.120126]]),
    (lambda: np.linalg.det(S), "float32", 11.0),
    (lambda: np.linalg.slogdet(S)[1], "float32", 2.397895),
    (lambda: np.linalg.inv(S), "float32", [[0.2727273, -0.09090909], [-0.09090909, 0.3636364]]),
    (lambda: np.linalg.cholesky(S), "float32", [[2.0, 0.0], [0.5, 1.658312]]),
    (lambda: np.linalg.solve(S, np.array([1.0, 2.0])), "float32", [0.09090909, 0.6363636]),
    (lambda: np.linalg.eigvalsh(S), "float32", [2.381966, 4.618034]),
    (lambda: np.linalg.eigh(S)[0], "float32", [2.381966, 4.618034]),
    (lambda: np.linalg.svd(S)[1], "float32", [4.618034, 2.381966]),
    (lambda: np.linalg.pinv(A), "float32", [[0.2130435, 0.1652174], [0.09565221, 0.2782609], [0.3260869, 0.1304348]]),
    (lambda: np.linalg.tensorinv(S.reshape(2, 1, 2), ind=2), "float32", [[[0.2727273], [-0.09090909]], [[-0.09090909], [0.3636364]]]),
    (lambda: np.linalg.tensorsolve(S, np.array([1.0, 2.0])), "float32", [0.09090909, 0.6363636]),
]
# What to differentiate, its arguments, and their gradients.
GRADIENTS = [
    (lambda x, y: np.dot(x, y.T), A, B, [[5.0, 2.5, 0.0], [5.0, 2.5, 0.0]], [[1.5, 2.0, 1.5], [1.5, 2.0, 1.5]]),
    (lambda x, y: np.linalg.inv(x), S, None, [[-0.03305785, -0.04958678], [-0.04958678, -0.07438017]], None),
    (lambda x, y: np.linalg.det(x), S, None, [[3.0, -1.0], [-1.0, 4.0]], None),
    (lambda x, y: np.linalg.norm(x), A, None, [[0.1754116, -0.3508232, 0.5262348], [0.0877058, 0.7016464, -0.2631174]], None),
    (lambda x, y: np.einsum("ij,ij->i", x, y), A, B, [[2.0, 0.5, -1.0], [3.0, 2.0, 1.0]], [[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]]),
    (lambda x, y: np.linalg.cholesky(x), S, None, [[0.2063445, 0.1746222], [0.1746222, 0.3015113]], None),
    (lambda x, y: np.linalg.svd(x)[1], S, None, [[1.0, 7.914483e-09], [1.681639e-08, 0.9999999]], None),
]


@pytest.mark.parametrize("compute, dtype, expected", VALUES, ids=range(len(VALUES)))
def test_values(compute, dtype, expected):
    check_value(compute, dtype, expected)


@pytest.mark.parametrize("compute, x, y, x_grad, y_grad", GRADIENTS, ids=range(len(GRADIENTS)))
def test_gradients(compute, x, y, x_grad, y_grad):
    check_gradients(compute, x, y, x_grad, y_grad)


@pytest.mark.parametrize("ord, expected", [
    (1, lambda m: abs(m).sum(0).max()), (-1, lambda m: abs(m).sum(0).min()), (float("inf"), lambda m: abs(m).sum(1).max()),
    (float("-inf"), lambda m: abs(m).sum(1).min()), ("fro", lambda m: (m ** 2).sum() ** 0.5), (None, lambda m: (m ** 2).sum() ** 0.5),
    (2, lambda m: onp.linalg.svd(m)[1].max()), (-2, lambda m: onp.linalg.svd(m)[1].min()), ("nuc", lambda m: onp.linalg.svd(m)[1].sum())])
@pytest.mark.parametrize("rows, columns", [(r, c) for r in range(-3, 3) for c in range(-3, 3) if r % 3 != c % 3])
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms_of_matrices_over_any_axes(ord, expected, rows, columns, keepdims):
    data = onp.sin(onp.arange(24.0)).reshape(2, 3, 4)
    matrices = onp.moveaxis(data, (rows, columns), (-2, -1))
    wanted = onp.array([expected(m) for m in matrices])
    if keepdims:
        wanted = onp.expand_dims(wanted, tuple(sorted((rows % 3, columns % 3))))
    out = np.linalg.norm(np.array(data), ord=ord, axis=(rows, columns), keepdims=keepdims)
    onp.testing.assert_allclose(out.asnumpy(), wanted, rtol=1e-5, atol=1e-6)
    assert out.shape == wanted.shape


def test_norms_without_axes_take_the_last_two_as_matrices():
    data = onp.sin(onp.arange(24.0)).reshape(2, 3, 4)
    for ord in (1, 2, "fro", "nuc", float("inf")):
        expected = np.linalg.norm(np.array(data), ord=ord, axis=(1, 2))
        onp.testing.assert_allclose(np.linalg.norm(np.array(data), ord=ord).asnumpy(), expected.asnumpy(), rtol=1e-6)
    assert np.linalg.norm(np.array([[3, 4], [0, 1]], dtype="int32")).asnumpy() == pytest.approx(26 ** 0.5)  # MXNet: 5, of integers


@pytest.mark.parametrize("ord, axis, message", [
    (3, (0, 1), "_npi_norm: the norm of a matrix (two axes) has `ord` 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', received 3"),
    (2, (0, 0), "_npi_norm: two different axes expected, received (0, 0) for data of 2 axes"),
    (1, (1, -1), "`axis` must not name an axis twice, received (1, -1)"), (None, (0, 1, 2), "_npi_norm: "),
    ("nuc", 0, "_npi_norm: two different axes expected, received 0"), (1, (), "linalg.norm: one or two axes expected, received ()"),
    ("bad", None, "linalg.norm: `ord` must be a number, 'inf', '-inf', 'fro' or 'nuc', received 'bad'")])
def test_norms_that_do_not_exist(ord, axis, message):
    with pytest.raises(MXNetError) as error:
        np.linalg.norm(np.ones((2, 3)), ord=ord, axis=axis)
    assert message in str(error.value)


def test_functions_of_matrices_as_in_mxnet_2():
    a = np.array([[3.0, 0.0], [4.0, 5.0]])
    onp.testing.assert_allclose(np.linalg.svdvals(a).asnumpy(), onp.linalg.svd(a.asnumpy(), compute_uv=False), rtol=1e-6)
    for ord in (0, 1, 2, 3, onp.inf, -onp.inf):
        onp.testing.assert_allclose(np.linalg.vector_norm(a, ord=ord).item(), onp.linalg.norm(a.asnumpy().ravel(), ord), rtol=1e-6)
        onp.testing.assert_allclose(np.linalg.vector_norm(a, ord=ord, axis=1).asnumpy(), onp.linalg.norm(a.asnumpy(), ord, 1), rtol=1e-6)
    assert np.linalg.matrix_norm(a, ord=1).item() == 7 and np.linalg.vecdot(a, a, axis=0).tolist() == [25, 25]
    assert np.linalg.vecdot(a, a).item() == 50
    assert np.linalg.trace(np.ones((3, 2, 2))).tolist() == [2, 2, 2]
    assert np.linalg.matrix_transpose(a).tolist() == a.T.tolist() == a.mT.tolist()
    assert np.linalg.cholesky(a @ a.T, upper=True).tolist() == np.linalg.cholesky(a @ a.T).T.tolist()
    with pytest.raises(ValueError, match="matrix_norm: axis must be a pair, received 1"):
        np.linalg.matrix_norm(a, axis=1)
    with pytest.raises(ValueError, match="vector_norm: ord must be a number, 'inf' or '-inf', received 'fro'"):
        np.linalg.vector_norm(a, ord="fro")
