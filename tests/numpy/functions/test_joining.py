"""Functions that join and split: the values and gradients of MXNet 1.9.1."""
import pytest

from mxnet import np
from numpy_checks import check_gradients, check_value

A = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])
B = np.array([[2.0, 0.5, -1.0], [3.0, 2.0, 1.0]])
V = np.array([3.0, 1.0, 2.0])

VALUES = [
    (lambda: np.concatenate([A, B], axis=1), "float32", [[1.0, -2.0, 3.0, 2.0, 0.5, -1.0], [0.5, 4.0, -1.5, 3.0, 2.0, 1.0]]),
    (lambda: np.concatenate([A, B], axis=None), "float32", [1.0, -2.0, 3.0, 0.5, 4.0, -1.5, 2.0, 0.5, -1.0, 3.0, 2.0, 1.0]),
    (lambda: np.append(A, B), "float32", [1.0, -2.0, 3.0, 0.5, 4.0, -1.5, 2.0, 0.5, -1.0, 3.0, 2.0, 1.0]),
    (lambda: np.stack([V, V], axis=1), "float32", [[3.0, 3.0], [1.0, 1.0], [2.0, 2.0]]),
    (lambda: np.vstack([V, A]), "float32", [[3.0, 1.0, 2.0], [1.0, -2.0, 3.0], [0.5, 4.0, -1.5]]),
    (lambda: np.hstack([V, V]), "float32", [3.0, 1.0, 2.0, 3.0, 1.0, 2.0]),
    (lambda: np.dstack([V, V]), "float32", [[[3.0, 3.0], [1.0, 1.0], [2.0, 2.0]]]),
    (lambda: np.column_stack([V, V]), "float32", [[3.0, 3.0], [1.0, 1.0], [2.0, 2.0]]),
    (lambda: np.row_stack([V, V]), "float32", [[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]),
    (lambda: np.split(A, 3, axis=1)[2], "float32", [[3.0], [-1.5]]),
    (lambda: np.split(V, [1])[1], "float32", [1.0, 2.0]),
    (lambda: np.array_split(V, 2)[0], "float32", [3.0, 1.0]),
    (lambda: np.hsplit(A, [1])[1], "float32", [[-2.0, 3.0], [4.0, -1.5]]),
    (lambda: np.vsplit(A, 2)[0], "float32", [[1.0, -2.0, 3.0]]),
    (lambda: np.dsplit(np.ones((1, 2, 2)), 2)[1], "float32", [[[1.0], [1.0]]]),
]
# What to differentiate, its arguments, and their gradients.
GRADIENTS = [
    (lambda x, y: np.concatenate([x, y, x]), A, B, [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]], [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]),
    (lambda x, y: np.split(x, 3)[1] * 5, V, None, [0.0, 5.0, 0.0], None),
]


@pytest.mark.parametrize("compute, dtype, expected", VALUES, ids=range(len(VALUES)))
def test_values(compute, dtype, expected):
    check_value(compute, dtype, expected)


@pytest.mark.parametrize("compute, x, y, x_grad, y_grad", GRADIENTS, ids=range(len(GRADIENTS)))
def test_gradients(compute, x, y, x_grad, y_grad):
    check_gradients(compute, x, y, x_grad, y_grad)
