"""Operators of npx: the values and gradients of MXNet 1.9.1."""
import pytest

from mxnet import np, npx

A = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])
B = np.array([[2.0, 0.5, -1.0], [3.0, 2.0, 1.0]])
V = np.array([3.0, 1.0, 2.0])
J = np.array([1, 0, 2], dtype='int64')
M = np.array([[True, False, True], [False, False, True]], dtype='bool')

VALUES = [
    (lambda: npx.relu(A), "float32", [[1.0, 0.0, 3.0], [0.5, 4.0, 0.0]]),
    (lambda: npx.sigmoid(A), "float32", [[0.7310586, 0.1192029, 0.9525741], [0.6224594, 0.9820138, 0.1824255]]),
    (lambda: npx.softmax(A, axis=-1), "float32", [[0.1184997, 0.00589975, 0.8756006], [0.02919641, 0.9668523, 0.003951305]]),
    (lambda: npx.log_softmax(A, axis=0), "float32", [[-0.474077, -6.002476, -0.01104774], [-0.974077, -0.002475652, -4.511048]]),
    (lambda: npx.activation(A, act_type='tanh'), "float32", [[0.7615942, -0.9640276, 0.9950548], [0.4621172, 0.9993293, -0.9051483]]),
    (lambda: npx.one_hot(J, 3), "float32", [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
    (lambda: npx.pick(A, np.array([0, 2]), axis=1), "float32", [1.0, -1.5]),
    (lambda: npx.topk(A, k=2), "float32", [[2.0, 0.0], [1.0, 0.0]]),
    (lambda: npx.batch_dot(A.reshape(1, 2, 3), B.reshape(1, 3, 2)), "float32", [[[10.0, -2.5], [-6.0, 10.75]]]),
    (lambda: npx.batch_flatten(np.ones((2, 1, 3))), "float32", [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]),
    (lambda: npx.fully_connected(A, B, num_hidden=2, no_bias=True), "float32", [[-2.0, 2.0], [4.5, 8.0]]),
    (lambda: npx.leaky_relu(A, act_type='leaky', slope=0.1), "float32", [[1.0, -0.2, 3.0], [0.5, 4.0, -0.15]]),
    (lambda: npx.gamma(V), "float32", [2.0, 1.0, 1.0]),
    (lambda: npx.erf(A), "float32", [[0.8427008, -0.9953223, 0.9999779], [0.5204999, 1.0, -0.9661052]]),
    (lambda: npx.arange_like(A, axis=1), "float32", [0.0, 1.0, 2.0]),
    (lambda: npx.reshape_like(A, np.ones((3, 2))), "float32", [[1.0, -2.0], [3.0, 0.5], [4.0, -1.5]]),
    (lambda: npx.shape_array(A), "int64", [2, 3]),
    (lambda: npx.smooth_l1(A, scalar=1.0), "float32", [[0.5, 1.5, 2.5], [0.125, 3.5, 1.0]]),
    (lambda: npx.nonzero(M), "int64", [[0, 0], [0, 2], [1, 2]]),
    (lambda: npx.cast(A, dtype='int32'), "int32", [[1, -2, 3], [0, 4, -1]]),
    (lambda: npx.embedding(J, A.T, input_dim=3, output_dim=2), "float32", [[-2.0, 4.0], [1.0, 0.5], [3.0, -1.5]]),
    (lambda: npx.gather_nd(A, np.array([[0, 1], [2, 0]])), "float32", [3.0, 0.5]),
    (lambda: npx.sequence_mask(A, np.array([1.0, 2.0, 1.0]), use_sequence_length=True), "float32", [[1.0, -2.0, 3.0], [0.0, 4.0, 0.0]]),
    (lambda: npx.layer_norm(A, np.ones(3), np.zeros(3)), "float32", [[0.1622212, -1.29777, 1.135548], [-0.2199705, 1.319823, -1.099852]]),
]


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    yield
    npx.reset_np()


def assert_close(array, expected):
    got = array.asnumpy().tolist()
    assert same(got, expected), got


def same(got, expected):
    if isinstance(expected, list):
        return isinstance(got, list) and len(got) == len(expected) and all(same(g, e) for g, e in zip(got, expected))
    return type(got) is type(expected) and got == pytest.approx(expected, rel=1e-4, abs=1e-5, nan_ok=True)


@pytest.mark.parametrize("compute, dtype, expected", VALUES, ids=range(len(VALUES)))
def test_values(compute, dtype, expected):
    result = compute()
    assert type(result) is np.ndarray
    assert str(result.dtype) == dtype
    assert_close(result, expected)
