"""Functions that reduce: the values and gradients of MXNet 1.9.1."""
import pytest

from mxnet import np
from numpy_checks import check_gradients, check_value

A = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])
B = np.array([[2.0, 0.5, -1.0], [3.0, 2.0, 1.0]])
V = np.array([3.0, 1.0, 2.0])
N = np.array([[7, -3, 2], [0, 5, 4]], dtype='int32')
J = np.array([1, 0, 2], dtype='int64')
M = np.array([[True, False, True], [False, False, True]], dtype='bool')

VALUES = [
    (lambda: np.sum(A), "float32", 5.0),
    (lambda: np.sum(M), "int64", 3),
    (lambda: np.sum(A, axis=1), "float32", [2.0, 3.0]),
    (lambda: np.sum(A, axis=(0, 1), keepdims=True), "float32", [[5.0]]),
    (lambda: np.sum(N, dtype='float64'), "float64", 15.0),
    (lambda: np.prod(A, axis=0), "float32", [0.5, -8.0, -4.5]),
    (lambda: np.mean(N), "float32", 2.5),
    (lambda: np.mean(A, axis=-1, keepdims=True), "float32", [[0.6666667], [1.0]]),
    (lambda: np.mean(N, axis=0, dtype='int32'), "int32", [3, 1, 3]),
    (lambda: np.std(A), "float32", 2.173068),
    (lambda: np.var(A, axis=1, ddof=1), "float32", [6.333333, 7.75]),
    (lambda: np.std(N), "int32", 3),
    (lambda: np.max(A), "float32", 4.0),
    (lambda: np.amin(A, axis=1), "float32", [-2.0, -1.5]),
    (lambda: np.all(M, axis=0), "bool", [False, False, True]),
    (lambda: np.any(A), "bool", True),
    (lambda: np.argmax(A, axis=1), "int64", [2, 1]),
    (lambda: np.argmin(A), "int64", 1),
    (lambda: np.average(A), "float32", 0.8333333),
    (lambda: np.average(A, axis=1, weights=V), "float32", [1.166667, 0.4166667]),
    (lambda: np.cumsum(A), "float32", [1.0, -1.0, 2.0, 2.5, 6.5, 5.0]),
    (lambda: np.cumsum(N, axis=1, dtype='float32'), "float32", [[7.0, 4.0, 6.0], [0.0, 5.0, 9.0]]),
    (lambda: np.percentile(A, 30), "float32", -0.5),
    (lambda: np.percentile(A, V * 20, axis=1, interpolation='lower'), "float32", [[1.0, 0.5], [-2.0, -1.5], [-2.0, -1.5]]),
    (lambda: np.quantile(A, 0.5, axis=0, keepdims=True), "float32", [[0.75, 1.0, 0.75]]),
    (lambda: np.histogram(A, bins=4, range=(-2, 4))[0], "int64", [2, 1, 1, 2]),
    (lambda: np.bincount(J), "int64", [1, 1, 1]),
    (lambda: np.bincount(J, weights=V, minlength=5), "float32", [1.0, 3.0, 2.0, 0.0, 0.0]),
    (lambda: np.polyval(V, A), "float32", [[6.0, 12.0, 32.0], [3.25, 54.0, 7.25]]),
]
# What to differentiate, its arguments, and their gradients.
GRADIENTS = [
    (lambda x, y: np.sum(x, axis=0) * V, A, None, [[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]], None),
    (lambda x, y: np.max(x, axis=1), np.ones((2, 3)), None, [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], None),
    (lambda x, y: np.prod(x), A, None, [[18.0, -9.0, 6.0], [36.0, 4.5, -12.0]], None),
    (lambda x, y: np.mean(x, axis=1), A, None, [[0.3333333, 0.3333333, 0.3333333], [0.3333333, 0.3333333, 0.3333333]], None),
    (lambda x, y: np.average(x, weights=y), A, B, [[0.2666667, 0.06666667, -0.1333333], [0.4, 0.2666667, 0.1333333]], [[0.02666667,
        -0.3733333, 0.2933334], [-0.04, 0.4266667, -0.3066667]]),
    (lambda x, y: np.cumsum(x, axis=0), A, None, [[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]], None),
]


@pytest.mark.parametrize("compute, dtype, expected", VALUES, ids=range(len(VALUES)))
def test_values(compute, dtype, expected):
    check_value(compute, dtype, expected)


@pytest.mark.parametrize("compute, x, y, x_grad, y_grad", GRADIENTS, ids=range(len(GRADIENTS)))
def test_gradients(compute, x, y, x_grad, y_grad):
    check_gradients(compute, x, y, x_grad, y_grad)
