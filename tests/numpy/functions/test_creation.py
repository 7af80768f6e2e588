"""Functions that make arrays: the values and gradients of MXNet 1.9.1."""
import numpy as onp
import pytest

from mxnet import np
from numpy_checks import check_value

A = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])
V = np.array([3.0, 1.0, 2.0])
N = np.array([[7, -3, 2], [0, 5, 4]], dtype='int32')
S = np.array([[4.0, 1.0], [1.0, 3.0]])
Z = np.array(2.5)
onp_ints = onp.array([1, 2])

VALUES = [
    (lambda: np.array([1, 2]), "float32", [1.0, 2.0]),
    (lambda: np.array(onp_ints), "int64", [1, 2]),
    (lambda: np.array(True), "float32", 1.0),
    (lambda: np.zeros((2, 0)), "float32", [[], []]),
    (lambda: np.zeros(2, dtype='int32'), "int32", [0, 0]),
    (lambda: np.ones(()), "float32", 1.0),
    (lambda: np.full((2,), 3), "float32", [3.0, 3.0]),
    (lambda: np.full((2,), True), "bool", [True, True]),
    (lambda: np.full((2,), 3.7, dtype='int32'), "int32", [3, 3]),
    (lambda: np.full((2,), Z), "float32", [2.5, 2.5]),
    (lambda: np.zeros_like(N), "int32", [[0, 0, 0], [0, 0, 0]]),
    (lambda: np.ones_like(A, dtype='float64'), "float64", [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]),
    (lambda: np.full_like(N, 2.9), "int32", [[2, 2, 2], [2, 2, 2]]),
    (lambda: np.arange(3), "float32", [0.0, 1.0, 2.0]),
    (lambda: np.arange(1, 6, 2, dtype='int64'), "int64", [1, 3, 5]),
    (lambda: np.arange(0), "float32", []),
    (lambda: np.linspace(0, 1, 5), "float32", [0.0, 0.25, 0.5, 0.75, 1.0]),
    (lambda: np.linspace(0, 1, 4, endpoint=False, dtype='float64'), "float64", [0.0, 0.25, 0.5, 0.75]),
    (lambda: np.logspace(0, 2, 3), "float32", [1.0, 10.0, 100.0]),
    (lambda: np.eye(2, 3, 1), "float32", [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (lambda: np.identity(2, dtype='int32'), "int32", [[1, 0], [0, 1]]),
    (lambda: np.indices((2, 2)), "int32", [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]),
    (lambda: np.hanning(4), "float32", [0.0, 0.75, 0.7499999, 0.0]),
    (lambda: np.hamming(4), "float32", [0.08000001, 0.77, 0.77, 0.08000001]),
    (lambda: np.blackman(4), "float32", [-1.490116e-08, 0.63, 0.6299999, -1.490116e-08]),
    (lambda: np.tril(A, -1), "float32", [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0]]),
    (lambda: np.diag(V, 1), "float32", [[0.0, 3.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0]]),
    (lambda: np.diag(S), "float32", [4.0, 3.0]),
    (lambda: np.diagflat(V), "float32", [[3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]),
    (lambda: np.meshgrid(V, Z.reshape(1))[0], "float32", [[3.0, 1.0, 2.0]]),
    (lambda: np.broadcast_arrays(V, A)[0], "float32", [[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]),
]


@pytest.mark.parametrize("compute, dtype, expected", VALUES, ids=range(len(VALUES)))
def test_values(compute, dtype, expected):
    check_value(compute, dtype, expected)


def test_triangles_as_in_numpy():
    for args in ((3,), (2, 1), (2, -1, 4), (3, 5)):
        for name in ("tril_indices", "triu_indices"):
            assert [i.tolist() for i in getattr(np, name)(*args)] == [i.tolist() for i in getattr(onp, name)(*args)]
    assert np.tri(2, 3, 1, dtype="int8").tolist() == onp.tri(2, 3, 1).tolist() and np.tri(2).dtype == onp.float32
