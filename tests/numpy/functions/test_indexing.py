"""Functions that select, find and insert: the values and gradients of MXNet 1.9.1."""
import pytest

from mxnet import np, npx
from numpy_checks import check_gradients, check_value

A = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])
B = np.array([[2.0, 0.5, -1.0], [3.0, 2.0, 1.0]])
V = np.array([3.0, 1.0, 2.0])
J = np.array([1, 0, 2], dtype='int64')
M = np.array([[True, False, True], [False, False, True]], dtype='bool')
S = np.array([[4.0, 1.0], [1.0, 3.0]])
Z = np.array(2.5)

VALUES = [
    (lambda: np.take(V, J), "float32", [1.0, 3.0, 2.0]),
    (lambda: np.take(A, J, axis=1, mode='clip'), "float32", [[-2.0, 1.0, 3.0], [4.0, 0.5, -1.5]]),
    (lambda: np.take(A, np.array(1, dtype='int32')), "float32", -2.0),
    (lambda: np.where(M, A, B), "float32", [[1.0, 0.5, 3.0], [3.0, 2.0, -1.5]]),
    (lambda: np.where(M, 1, A), "float32", [[1.0, -2.0, 1.0], [0.5, 4.0, 1.0]]),
    (lambda: np.where(M, A, 2), "float32", [[1.0, 2.0, 3.0], [2.0, 2.0, -1.5]]),
    (lambda: np.where(M, 1, 2), "float32", [[1.0, 2.0, 1.0], [2.0, 2.0, 1.0]]),
    (lambda: np.nonzero(M)[1], "int64", [0, 2, 2]),
    (lambda: np.unique(J * J), "int64", [0, 1, 4]),
    (lambda: np.unique(np.array([3.0, 1.0, 3.0]), return_index=True, return_inverse=True, return_counts=True)[1], "int64", [1, 0]),
    (lambda: np.unique(np.array([3.0, 1.0, 3.0]), return_index=True, return_inverse=True, return_counts=True)[2], "int64", [1, 0, 1]),
    (lambda: np.unique(np.array([3.0, 1.0, 3.0]), return_index=True, return_inverse=True, return_counts=True)[3], "int64", [1, 2]),
    (lambda: np.argsort(V), "int64", [1, 2, 0]), (lambda: np.argsort(V, 0, True), "int64", [0, 2, 1]),
    (lambda: np.sort(V, 0, False), "float32", [1.0, 2.0, 3.0]),
    (lambda: np.sort(A, axis=0), "float32", [[0.5, -2.0, -1.5], [1.0, 4.0, 3.0]]),
    (lambda: np.delete(V, 1), "float32", [3.0, 2.0]),
    (lambda: np.delete(A, slice(0, 2), axis=1), "float32", [[3.0], [-1.5]]),
    (lambda: np.delete(V, np.array([0, 2], dtype='int64')), "float32", [1.0]),
    (lambda: np.insert(V, 1, 9), "float32", [3.0, 9.0, 1.0, 2.0]),
    (lambda: np.insert(A, 1, V, axis=0), "float32", [[1.0, -2.0, 3.0], [3.0, 1.0, 2.0], [0.5, 4.0, -1.5]]),
    (lambda: np.insert(V, slice(0, 2), np.array([8.0, 9.0])), "float32", [8.0, 3.0, 9.0, 1.0, 2.0]),
    (lambda: np.unravel_index(J + 2, (2, 3))[0], "int64", [1, 0, 1]),
    (lambda: np.diag_indices_from(S)[0], "int64", [0, 1]),
    (lambda: A[1], "float32", [0.5, 4.0, -1.5]),
    (lambda: A[:, 1], "float32", [-2.0, 4.0]),
    (lambda: A[0, 2], "float32", 3.0),
    (lambda: A[::-1, 1:], "float32", [[4.0, -1.5], [-2.0, 3.0]]),
    (lambda: A[M], "float32", [1.0, 3.0, -1.5]),
    (lambda: A[J % 2], "float32", [[0.5, 4.0, -1.5], [1.0, -2.0, 3.0], [1.0, -2.0, 3.0]]),
    (lambda: A[None, 1, ..., None], "float32", [[[0.5], [4.0], [-1.5]]]),
    (lambda: A[[1, 0], [2, 0]], "float32", [-1.5, 1.0]),
    (lambda: A[True], "float32", [[[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]]]),
    (lambda: A[M.any(axis=1), 1], "float32", [-2.0, 4.0]),
    (lambda: Z[()], "float32", 2.5),
]
# What to differentiate, its arguments, and their gradients.
GRADIENTS = [
    (lambda x, y: x[M] * 2, A, None, [[2.0, 0.0, 2.0], [0.0, 0.0, 2.0]], None),
    (lambda x, y: x[:, 1] * 3, A, None, [[0.0, 3.0, 0.0], [0.0, 3.0, 0.0]], None),
    (lambda x, y: np.where(M, x, y), A, B, [[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]], [[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]),
    (lambda x, y: np.take(x, J % 2, axis=0), A, None, [[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]], None),
    (lambda x, y: x[[0, 0]], V, None, [2.0, 0.0, 0.0], None),
    (lambda x, y: np.sort(x) * V, V, None, [2.0, 3.0, 1.0], None),
]


@pytest.mark.parametrize("compute, dtype, expected", VALUES, ids=range(len(VALUES)))
def test_values(compute, dtype, expected):
    check_value(compute, dtype, expected)


@pytest.mark.parametrize("compute, x, y, x_grad, y_grad", GRADIENTS, ids=range(len(GRADIENTS)))
def test_gradients(compute, x, y, x_grad, y_grad):
    check_gradients(compute, x, y, x_grad, y_grad)


def test_nonzero_takes_a_number_for_an_array_of_one():
    assert npx.nonzero(np.array(5.0)).tolist() == [[0]]
    assert npx.nonzero(np.array(0.0)).shape == (0, 1)
    assert [i.tolist() for i in np.nonzero(np.array(5.0))] == [[0]]
