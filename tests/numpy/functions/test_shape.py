"""Functions that change shapes: the values and gradients of MXNet 1.9.1."""
import pytest

from mxnet import np, npx
from numpy_checks import check_gradients, check_value

A = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])
V = np.array([3.0, 1.0, 2.0])
S = np.array([[4.0, 1.0], [1.0, 3.0]])

VALUES = [
    (lambda: np.reshape(A, (3, -1)), "float32", [[1.0, -2.0], [3.0, 0.5], [4.0, -1.5]]),
    (lambda: np.ravel(A), "float32", [1.0, -2.0, 3.0, 0.5, 4.0, -1.5]),
    (lambda: np.squeeze(np.ones((1, 2, 1))), "float32", [1.0, 1.0]),
    (lambda: np.transpose(A), "float32", [[1.0, 0.5], [-2.0, 4.0], [3.0, -1.5]]),
    (lambda: np.moveaxis(np.ones((2, 3, 4)), 0, -1).sum(axis=(0, 1)), "float32", [12.0, 12.0]),
    (lambda: np.swapaxes(A, 0, 1), "float32", [[1.0, 0.5], [-2.0, 4.0], [3.0, -1.5]]),
    (lambda: np.expand_dims(V, 0), "float32", [[3.0, 1.0, 2.0]]),
    (lambda: np.broadcast_to(V, (2, 3)), "float32", [[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]),
    (lambda: np.roll(A, 1), "float32", [[-1.5, 1.0, -2.0], [3.0, 0.5, 4.0]]),
    (lambda: np.roll(A, (1, -1), axis=(0, 1)), "float32", [[4.0, -1.5, 0.5], [-2.0, 3.0, 1.0]]),
    (lambda: np.flip(A, 1), "float32", [[3.0, -2.0, 1.0], [-1.5, 4.0, 0.5]]),
    (lambda: np.flipud(A), "float32", [[0.5, 4.0, -1.5], [1.0, -2.0, 3.0]]),
    (lambda: np.rot90(A), "float32", [[3.0, -1.5], [-2.0, 4.0], [1.0, 0.5]]),
    (lambda: np.tile(V, (2, 2)), "float32", [[3.0, 1.0, 2.0, 3.0, 1.0, 2.0], [3.0, 1.0, 2.0, 3.0, 1.0, 2.0]]),
    (lambda: np.repeat(A, 2, axis=1), "float32", [[1.0, 1.0, -2.0, -2.0, 3.0, 3.0], [0.5, 0.5, 4.0, 4.0, -1.5, -1.5]]),
    (lambda: np.diagonal(A, offset=1), "float32", [-2.0, -1.5]),
    (lambda: np.trace(S), "float32", 7.0),
    (lambda: np.atleast_3d(V), "float32", [[[3.0], [1.0], [2.0]]]),
    (lambda: np.pad(V, (1, 2), mode='edge'), "float32", [3.0, 3.0, 1.0, 2.0, 2.0, 2.0]),
    (lambda: np.pad(A, ((0, 1), (1, 0)), mode='reflect'), "float32", [[-2.0, 1.0, -2.0, 3.0], [4.0, 0.5, 4.0, -1.5], [-2.0, 1.0, -2.0,
        3.0]]),
    (lambda: np.diff(A, axis=0), "float32", [[-0.5, 6.0, -4.5]]),
    (lambda: np.ediff1d(V, to_begin=1, to_end=np.array([8.0, 9.0])), "float32", [1.0, -2.0, 1.0, 8.0, 9.0]),
    (lambda: np.resize(V, (2, 4)), "float32", [[3.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 1.0]]),
    (lambda: npx.reshape(np.ones((2, 3, 4)), (-5, -2)).sum(axis=0), "float32", [6.0, 6.0, 6.0, 6.0]),
    (lambda: npx.reshape(np.ones((6, 4)), (-6, 2, -1, -4)).sum(axis=(0, 1)), "float32", [6.0, 6.0, 6.0, 6.0]),
    (lambda: npx.reshape(np.ones((2, 1, 3)), (-2, -3, -2)).sum(axis=0), "float32", [2.0, 2.0, 2.0]),
]
# What to differentiate, its arguments, and their gradients.
GRADIENTS = [
    (lambda x, y: np.tile(x, 2), V, None, [2.0, 2.0, 2.0], None),
    (lambda x, y: np.flip(x) * V, V, None, [2.0, 1.0, 3.0], None),
    (lambda x, y: np.diff(x), V, None, [-1.0, 0.0, 1.0], None),
    (lambda x, y: np.repeat(x, 2), V, None, [2.0, 2.0, 2.0], None),
]


@pytest.mark.parametrize("compute, dtype, expected", VALUES, ids=range(len(VALUES)))
def test_values(compute, dtype, expected):
    check_value(compute, dtype, expected)


@pytest.mark.parametrize("compute, x, y, x_grad, y_grad", GRADIENTS, ids=range(len(GRADIENTS)))
def test_gradients(compute, x, y, x_grad, y_grad):
    check_gradients(compute, x, y, x_grad, y_grad)
