import numpy as onp
import pytest

import mxnet as mx

xp = mx.np.array_api


def matrices(*shape):
    return onp.random.RandomState(0).randn(*shape)


def test_products_of_integers_are_exact():
    a = xp.asarray([[2**40, 1], [3, 4]])
    assert xp.matmul(a, a).tolist() == [[(2**80 + 3) % 2**64, 2**40 + 4], [3 * 2**40 + 12, 19]]
    b = xp.asarray([[1, 65535]], dtype=xp.uint16)
    assert xp.matmul(b, xp.matrix_transpose(b)).tolist() == [[2]] and xp.vecdot(b, b).tolist() == [2]
    assert xp.linalg.outer(b[0], b[0]).tolist() == [[1, 65535], [65535, 1]]
    assert xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0])).tolist() == [0, 0, 1]


def test_contractions_as_in_numpy():
    a, b = matrices(2, 3, 4), matrices(4, 3, 5)
    for axes in (1, ((1, 2), (1, 0)), 0):
        onp.testing.assert_allclose(xp.tensordot(xp.asarray(a), xp.asarray(b), axes=axes).asnumpy(), onp.tensordot(a, b, axes), rtol=1e-12)
    onp.testing.assert_allclose(xp.vecdot(xp.asarray([1j, 2.0]), xp.asarray([1j, 1.0])).item(), 3)
    with pytest.raises(ValueError, match="tensordot: the axes .* must have the same sizes"):
        xp.tensordot(xp.ones((2, 3)), xp.ones((2, 3)), axes=1)


def test_decompositions():
    a = matrices(2, 4, 3)
    x = xp.asarray(a)
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    onp.testing.assert_allclose((u.asnumpy() * s.asnumpy()[:, None]) @ vh.asnumpy(), a, atol=1e-12)
    q, r = xp.linalg.qr(x)
    onp.testing.assert_allclose(q.asnumpy() @ r.asnumpy(), a, atol=1e-12)
    onp.testing.assert_allclose(xp.linalg.svdvals(x).asnumpy(), onp.linalg.svd(a, compute_uv=False))
    square = a[:, :3] @ a[:, :3].swapaxes(1, 2) + onp.eye(3)
    values, vectors = xp.linalg.eigh(xp.asarray(square))
    onp.testing.assert_allclose(square @ vectors.asnumpy(), vectors.asnumpy() * values.asnumpy()[:, None], atol=1e-10)
    lower = xp.linalg.cholesky(xp.asarray(square)).asnumpy()
    onp.testing.assert_allclose(lower @ lower.swapaxes(1, 2), square, rtol=1e-10)
    sign, log = xp.linalg.slogdet(xp.asarray(square))
    onp.testing.assert_allclose(sign.asnumpy() * onp.exp(log.asnumpy()), onp.linalg.det(square), rtol=1e-10)


def test_systems():
    a, b = matrices(3, 3), matrices(2, 3, 2)
    onp.testing.assert_allclose(a @ xp.linalg.solve(xp.asarray(a), xp.asarray(b)).asnumpy(), b, atol=1e-10)
    onp.testing.assert_allclose(a @ xp.linalg.solve(xp.asarray(a), xp.asarray(b[0, :, 0])).asnumpy(), b[0, :, 0], atol=1e-10)
    onp.testing.assert_allclose(xp.linalg.inv(xp.asarray(a)).asnumpy() @ a, onp.eye(3), atol=1e-10)
    onp.testing.assert_allclose(xp.linalg.pinv(xp.asarray(b[0])).asnumpy(), onp.linalg.pinv(b[0]), rtol=1e-9)
    assert xp.linalg.matrix_rank(xp.asarray([[1.0, 2.0], [2.0, 4.0]])).item() == 1
    assert xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3).tolist() == [[1, 3], [0, 1]]
    with pytest.raises(mx.MXNetError, match="singular"):
        xp.linalg.inv(xp.zeros((2, 2)))


@pytest.mark.parametrize("ord", [1, 2, -1, onp.inf, -onp.inf, "fro", "nuc"])
def test_norms_of_matrices(ord):
    a = matrices(3, 2)
    onp.testing.assert_allclose(xp.linalg.matrix_norm(xp.asarray(a), ord=ord).item(), onp.linalg.norm(a, ord), rtol=1e-12)


@pytest.mark.parametrize("ord", [0, 1, 2, 3.5, onp.inf, -onp.inf])
def test_norms_of_vectors(ord):
    a = matrices(3, 2)
    onp.testing.assert_allclose(xp.linalg.vector_norm(xp.asarray(a), ord=ord).item(), onp.linalg.norm(a.ravel(), ord), rtol=1e-12)
    onp.testing.assert_allclose(xp.linalg.vector_norm(xp.asarray(a), axis=0, ord=ord).asnumpy(), onp.linalg.norm(a, ord, 0), rtol=1e-12)


def test_diagonals():
    x = xp.asarray([[[1, 2], [3, 4]]], dtype=xp.uint8)
    assert xp.linalg.diagonal(x, offset=1).tolist() == [[2]] and xp.linalg.trace(x).tolist() == [5] and xp.linalg.trace(x).dtype == xp.uint64
