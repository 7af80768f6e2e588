import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check

X, Y = mx.sym.var("x").as_np_ndarray(), mx.sym.var("y").as_np_ndarray()


def real(*shape):
    return np.random.default_rng(4).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((4,), (4,)), ((2, 3, 4), (4,)), ((2, 3, 4), (6, 4, 5))])
def test_dot(shapes):
    check(mx.sym.np.dot(X, Y), {"x": real(*shapes[0]), "y": real(*shapes[1])}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((6, 1, 3, 4), (2, 4, 5)), ((4,), (4,))])
def test_matmul(shapes):
    check(mx.sym.np.matmul(X, Y), {"x": real(*shapes[0]), "y": real(*shapes[1])}, rtol=1e-4, atol=1e-5)


def test_sums_of_products():
    inputs = {"x": real(2, 3, 4), "y": real(4, 3, 5)}
    check(mx.sym.np.tensordot(X, Y, ((1, 2), (1, 0))), inputs, rtol=1e-4, atol=1e-5)
    check(mx.sym.np.tensordot(X, Y, 1), inputs, rtol=1e-4, atol=1e-5)
    check(mx.sym.np.einsum("ijk,kjl->il", X, Y), inputs, rtol=1e-4, atol=1e-5)
