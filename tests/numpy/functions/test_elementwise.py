"""Element-wise functions: the values and gradients of MXNet 1.9.1."""
import pytest

from mxnet import np
from numpy_checks import check_gradients, check_value

A = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])
B = np.array([[2.0, 0.5, -1.0], [3.0, 2.0, 1.0]])
V = np.array([3.0, 1.0, 2.0])
N = np.array([[7, -3, 2], [0, 5, 4]], dtype='int32')
J = np.array([1, 0, 2], dtype='int64')
M = np.array([[True, False, True], [False, False, True]], dtype='bool')
Z = np.array(2.5)

VALUES = [
    (lambda: np.add(A, B), "float32", [[3.0, -1.5, 2.0], [3.5, 6.0, -0.5]]),
    (lambda: np.add(N, 2.7), "int32", [[9, -1, 4], [2, 7, 6]]),
    (lambda: np.subtract(5, N), "int32", [[-2, 8, 3], [5, 0, 1]]),
    (lambda: np.multiply(N, J), "int64", [[7, 0, 4], [0, 0, 8]]),
    (lambda: np.divide(N, 2), "float32", [[3.5, -1.5, 1.0], [0.0, 2.5, 2.0]]),
    (lambda: np.mod(A, B), "float32", [[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]),
    (lambda: np.mod(N, -3), "int32", [[-2, 0, -1], [0, -1, -2]]),
    (lambda: np.power(A, 2), "float32", [[1.0, 4.0, 9.0], [0.25, 16.0, 2.25]]),
    (lambda: np.power(2, V), "float32", [8.0, 2.0, 4.0]),
    (lambda: np.lcm(N, 4), "int32", [[28, 12, 4], [0, 20, 4]]),
    (lambda: np.maximum(A, B), "float32", [[2.0, 0.5, 3.0], [3.0, 4.0, 1.0]]),
    (lambda: np.minimum(A, 0), "float32", [[0.0, -2.0, 0.0], [0.0, 0.0, -1.5]]),
    (lambda: np.copysign(A, B), "float32", [[1.0, 2.0, -3.0], [0.5, 4.0, 1.5]]),
    (lambda: np.arctan2(A, B), "float32", [[0.4636476, -1.325818, 1.892547], [0.1651487, 1.107149, -0.9827937]]),
    (lambda: np.hypot(A, B), "float32", [[2.236068, 2.061553, 3.162278], [3.041381, 4.472136, 1.802776]]),
    (lambda: np.ldexp(V, 3), "float32", [24.0, 8.0, 16.0]),
    (lambda: np.bitwise_and(N, 6), "int32", [[6, 4, 2], [0, 4, 4]]),
    (lambda: np.bitwise_or(M, M), "bool", [[True, False, True], [False, False, True]]),
    (lambda: np.bitwise_xor(N, N), "int32", [[0, 0, 0], [0, 0, 0]]),
    (lambda: np.equal(A, B), "bool", [[False, False, False], [False, False, False]]),
    (lambda: np.not_equal(N, 2), "bool", [[True, True, False], [True, True, True]]),
    (lambda: np.greater(2, V), "bool", [False, True, False]),
    (lambda: np.less(A, B), "bool", [[True, True, False], [True, False, True]]),
    (lambda: np.greater_equal(V, 2.0), "bool", [True, False, True]),
    (lambda: np.less_equal(N, J.astype('int32')), "bool", [[False, True, True], [True, False, False]]),
    (lambda: np.abs(A), "float32", [[1.0, 2.0, 3.0], [0.5, 4.0, 1.5]]),
    (lambda: np.negative(N), "int32", [[-7, 3, -2], [0, -5, -4]]),
    (lambda: np.sign(A), "float32", [[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]]),
    (lambda: np.rint(A), "float32", [[1.0, -2.0, 3.0], [0.0, 4.0, -2.0]]),
    (lambda: np.ceil(A), "float32", [[1.0, -2.0, 3.0], [1.0, 4.0, -1.0]]),
    (lambda: np.floor(A), "float32", [[1.0, -2.0, 3.0], [0.0, 4.0, -2.0]]),
    (lambda: np.trunc(A), "float32", [[1.0, -2.0, 3.0], [0.0, 4.0, -1.0]]),
    (lambda: np.fix(A), "float32", [[1.0, -2.0, 3.0], [0.0, 4.0, -1.0]]),
    (lambda: np.square(N), "int32", [[49, 9, 4], [0, 25, 16]]),
    (lambda: np.sqrt(V), "float32", [1.732051, 1.0, 1.414214]),
    (lambda: np.cbrt(V), "float32", [1.44225, 1.0, 1.259921]),
    (lambda: np.reciprocal(V), "float32", [0.3333333, 1.0, 0.5]),
    (lambda: np.exp(V), "float32", [20.08554, 2.718282, 7.389056]),
    (lambda: np.expm1(V), "float32", [19.08554, 1.718282, 6.389056]),
    (lambda: np.log(V), "float32", [1.098612, 0.0, 0.6931472]),
    (lambda: np.log2(V), "float32", [1.584962, 0.0, 1.0]),
    (lambda: np.log10(V), "float32", [0.4771212, 0.0, 0.30103]),
    (lambda: np.log1p(V), "float32", [1.386294, 0.6931472, 1.098612]),
    (lambda: np.sin(A), "float32", [[0.841471, -0.9092974, 0.14112], [0.4794255, -0.7568025, -0.997495]]),
    (lambda: np.arccosh(V), "float32", [1.762747, 0.0, 1.316958]),
    (lambda: np.arctanh(V / 10), "float32", [0.3095196, 0.1003353, 0.2027325]),
    (lambda: np.degrees(V), "float32", [171.8873, 57.29578, 114.5916]),
    (lambda: np.radians(V), "float32", [0.05235988, 0.01745329, 0.03490658]),
    (lambda: np.logical_not(A), "bool", [[False, False, False], [False, False, False]]),
    (lambda: np.isnan(A / 0 * 0), "bool", [[True, True, True], [True, True, True]]),
    (lambda: np.isinf(A / 0), "bool", [[True, True, True], [True, True, True]]),
    (lambda: np.isfinite(A), "bool", [[True, True, True], [True, True, True]]),
    (lambda: np.isposinf(A / 0), "bool", [[True, False, True], [True, True, False]]),
    (lambda: np.isneginf(A / 0), "bool", [[False, True, False], [False, False, True]]),
    (lambda: np.invert(M), "bool", [[False, True, False], [True, True, False]]),
    (lambda: np.bitwise_not(N), "int32", [[-8, 2, -3], [-1, -6, -5]]),
    (lambda: np.around(A / 3, 2), "float32", [[0.33, -0.67, 1.0], [0.17, 1.33, -0.5]]),
    (lambda: np.nan_to_num(A / 0, posinf=9.0), "float32", [[9.0, -3.402823e+38, 9.0], [9.0, 9.0, -3.402823e+38]]),
    (lambda: np.clip(A, None, 1), "float32", [[1.0, -2.0, 1.0], [0.5, 1.0, -1.5]]),
    (lambda: np.clip(N, 0, 4), "int32", [[4, 0, 2], [0, 4, 4]]),
    (lambda: np.matmul(A, B.T), "float32", [[-2.0, 2.0], [4.5, 8.0]]),
]
# What to differentiate, its arguments, and their gradients.
GRADIENTS = [
    (lambda x, y: np.mod(x, y), A, B, [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], [[-0.0, 4.0, 3.0], [-0.0, -2.0, 2.0]]),
    (lambda x, y: np.maximum(x, y), A, A, [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
    (lambda x, y: np.power(x, y), V, V, [27.0, 1.0, 4.0], [29.66253, 0.0, 2.772589]),
    (lambda x, y: np.arctan2(x, y), A, B, [[0.4, 0.1176471, -0.1], [0.3243243, 0.1, 0.3076923]], [[-0.2, 0.4705882, -0.3],
        [-0.05405406, -0.2, 0.4615385]]),
    (lambda x, y: np.true_divide(x, y), A, B, [[0.5, 2.0, -1.0], [0.3333333, 0.5, 1.0]], [[-0.25, 8.0, -3.0], [-0.05555556, -1.0, 1.5]]),
    (lambda x, y: np.sqrt(x)*y, V, V, [0.8660254, 0.5, 0.7071068], [1.732051, 1.0, 1.414214]),
    (lambda x, y: np.clip(x, 1, 2)*y, V, V, [0.0, 1.0, 2.0], [2.0, 1.0, 2.0]),
    (lambda x, y: np.hypot(x, y), A, B, [[0.4472136, -0.9701425, 0.9486833], [0.164399, 0.8944272, -0.8320503]], [[0.8944272,
        0.2425356, -0.3162278], [0.9863939, 0.4472136, 0.5547002]]),
    (lambda x, y: np.around(x)*y, A, B, [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [[1.0, -2.0, 3.0], [0.0, 4.0, -2.0]]),
    (lambda x, y: np.matmul(x, y.T), A, B, [[5.0, 2.5, 0.0], [5.0, 2.5, 0.0]], [[1.5, 2.0, 1.5], [1.5, 2.0, 1.5]]),
    (lambda x, y: np.copysign(x, y), A, B, [[1.0, -1.0, -1.0], [1.0, 1.0, -1.0]], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
    (lambda x, y: np.add(x, Z)*y, A, V, [[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]], [6.5, 7.0, 6.5]),
    (lambda x, y: np.mod(x, y), N, N, [[0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]),
    (lambda x, y: x * y, N, N, [[7, -3, 2], [0, 5, 4]], [[7, -3, 2], [0, 5, 4]]),
]


@pytest.mark.parametrize("compute, dtype, expected", VALUES, ids=range(len(VALUES)))
def test_values(compute, dtype, expected):
    check_value(compute, dtype, expected)


@pytest.mark.parametrize("compute, x, y, x_grad, y_grad", GRADIENTS, ids=range(len(GRADIENTS)))
def test_gradients(compute, x, y, x_grad, y_grad):
    check_gradients(compute, x, y, x_grad, y_grad)
