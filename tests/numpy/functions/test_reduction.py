"""Functions that reduce: the values and gradients of MXNet 1.9.1."""
import pytest

from mxnet import autograd, np
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


@pytest.mark.parametrize("function, result, gradient", [
    (lambda x: np.sum(x, dtype="int8"), 5, [1.0, 1.0, 1.0]),
    (lambda x: np.mean(x, dtype="int32"), 1, [0.33333334] * 3),
    (lambda x: np.sum(x, axis=(), dtype="int32"), [1, 1, 2], [1.0, 1.0, 1.0]),
    (lambda x: np.cumsum(x, dtype="int32"), [1, 2, 4], [3.0, 2.0, 1.0]),
])
def test_fractions_are_truncated_last_and_gradients_pass(function, result, gradient):
    x = np.array([1.5, 1.5, 2.75])
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    assert y.tolist() == result
    assert x.grad.tolist() == pytest.approx(gradient)


def test_products_of_fractions_as_integers():
    assert np.prod(np.array([1.5, 1.5, 2.75]), dtype="int32").item() == 6


def test_running_sums_of_float16_are_rounded_at_each_step():
    x = np.array([2048.0, 1.0, 1.0, 1.0], dtype="float16")
    x.attach_grad()
    with autograd.record():
        y = np.cumsum(x)
    y.backward()
    assert y.dtype == "float16" and y.tolist() == [2048.0, 2048.0, 2048.0, 2048.0]
    assert x.grad.dtype == "float16" and x.grad.tolist() == [4.0, 3.0, 2.0, 1.0]
    assert np.cumsum(x, dtype="float32").tolist() == [2048.0, 2049.0, 2050.0, 2051.0]
    assert np.cumsum(x.reshape(2, 2), axis=0).tolist() == [[2048.0, 1.0], [2048.0, 2.0]]


def test_means_as_integers_add_in_that_type():
    x = np.array([100, 100, 100, -3, 5, 127], dtype="int8")
    assert [np.mean(x, dtype=t).item() for t in ("int8", "int32", "float32")] == [-13, 71, 71.5]
    assert np.mean(x.reshape(2, 3), axis=0, dtype="int8").tolist() == [48, 52, -14]
    assert np.mean(np.array([2**30, 2**30, 2**30, 3], dtype="int32"), dtype="int32").item() == -268435455


def test_medians_and_masks():
    x = np.array([[1.0, 5.0, 2.0, 8.0], [4.0, 0.0, 9.0, 1.0]])
    assert np.median(x).item() == 3 and np.median(x, axis=1).tolist() == [3.5, 2.5] and np.median(x, axis=0, keepdims=True).shape == (1, 4)
    assert np.sum(x, axis=1, where=x > 3).tolist() == [13, 13]
    assert np.var(x, axis=1, correction=1).tolist() == np.var(x, axis=1, ddof=1).tolist()
    assert np.argmax(x, axis=1, keepdims=True).tolist() == [[3], [2]] and np.sort(x, descending=True)[0].tolist() == [8, 5, 2, 1]
    assert np.argsort(x, descending=True)[1].tolist() == [2, 0, 3, 1] and np.cumprod(x, axis=1)[0].tolist() == [1, 5, 10, 80]
