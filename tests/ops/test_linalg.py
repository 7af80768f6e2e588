"""Errors and partial shapes of the linalg family; values and gradients are compared in test_arrays_against_oracle.py."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError


def zeros(*shape):
    return mx.nd.zeros(shape)


@pytest.mark.parametrize("call, message", [
    (lambda: mx.nd.dot(zeros(2, 3, 4), zeros(3, 2)), r"dot shape error: \(2, 3, 4\) X \(3, 2\).* sizes 4 and 3"),
    (lambda: mx.nd.dot(zeros(3), zeros(3), transpose_a=True), "cannot transpose vectors"),
    (lambda: mx.nd.dot(zeros(2, 3), zeros(2, 3)), r"dot: .*float32\(2, 3\)"),
    (lambda: mx.nd.batch_dot(zeros(2, 3), zeros(3, 2)), "both inputs must be N-D"),
    (lambda: mx.nd.batch_dot(zeros(2, 2, 3), zeros(1, 3, 2)), "equal leading axes"),
    (lambda: mx.nd.linalg.gemm2(zeros(2, 3), zeros(3)), "equally many axes, at least 2"),
    (lambda: mx.nd.linalg.gemm2(zeros(2, 3), zeros(3, 2), axis=1), "cannot be the last axis"),
    (lambda: mx.nd.linalg.gemm2(zeros(2, 2, 3), zeros(3, 3, 2)), "batches of A and B .* must be equal, received"),
    (lambda: mx.nd.linalg.potrf(zeros(2, 3)), r"must form square matrices, received shape \(2, 3\)"),
    (lambda: mx.nd.linalg.potrf(-mx.nd.ones((2, 2))), "not positive-definite"),
    (lambda: mx.nd.linalg.inverse(zeros(2, 2)), "singular"),
    (lambda: mx.nd.linalg.gelqf(zeros(3, 2)), "the last axis must not be smaller"),
    (lambda: mx.nd.linalg.extractdiag(zeros(2, 2), offset=2), "illegal offset 2 for matrices of size 2"),
    (lambda: mx.nd.linalg.maketrian(zeros(2)), r"must hold n \(n \+ 1\) / 2 elements, received 2"),
    (lambda: mx.nd.khatri_rao(zeros(2, 2), zeros(2, 3)), "equally many columns expected, received 2 and 3"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call()


@pytest.mark.parametrize("symbol, given, outputs", [
    (mx.sym.dot, {"a": (0, 3, 4), "b": (4, 5)}, [(0, 3, 5)]),
    (mx.sym.batch_dot, {"a": (0, 3, 4), "b": (0, 4, 5)}, [(0, 3, 5)]),
    (mx.sym.batch_dot, {"a": (0, 3, 4), "b": (0, 0, 5)}, [()]),
    (mx.sym.linalg.gemm2, {"a": (0, 2, 3), "b": (0, 3, 1)}, [(0, 2, 1)]),
])
def test_partial_shapes(symbol, given, outputs):
    assert symbol(mx.sym.var("a"), mx.sym.var("b")).infer_shape_partial(**given)[1] == outputs


def test_results_of_one_matrix_have_one_axis():
    eye = mx.nd.array([[2, 0], [0, 3]])
    assert mx.nd.linalg.det(eye).shape == (1,) and abs(mx.nd.linalg.det(eye).asscalar() - 6) < 1e-6
    assert [o.shape for o in mx.nd.linalg.slogdet(eye)] == [(1,), (1,)]
    assert mx.nd.linalg.sumlogdiag(eye).shape == mx.nd.dot(eye[0], eye[1]).shape == (1,)


def test_the_gradient_of_slogdet_is_zero_for_a_singular_matrix_and_through_the_sign():
    a = mx.nd.array([[[1, 2], [2, 4]], [[1, 2], [3, 4]]])
    a.attach_grad()
    for heads, expected in (((1,), [[[0, 0], [0, 0]], [[-2, 1.5], [1, -0.5]]]), ((0,), np.zeros((2, 2, 2)))):
        with mx.autograd.record():
            out = mx.nd.linalg.slogdet(a)
        mx.autograd.backward([out[i] for i in heads])
        np.testing.assert_allclose(a.grad.asnumpy(), expected, rtol=1e-5)


def test_output_names():
    a = mx.sym.var("a")
    assert mx.sym.linalg.det(a, name="d").list_outputs() == ["d_output0"]
    assert mx.sym.linalg.slogdet(a, name="d").list_outputs() == ["d_output0", "d_output1"]
    assert mx.sym.linalg.potrf(a, name="d").list_outputs() == ["d_output"]


@pytest.mark.parametrize("name", ["trmm", "trsm"])
def test_triangular_products_do_not_broadcast(name):
    with pytest.raises(MXNetError, match=f"linalg_{name}: A must be square matrices that fit the rows of B.*\\(1, 3, 3\\) and \\(3, 5\\)"):
        getattr(mx.nd.linalg, name)(mx.nd.ones((1, 3, 3)), mx.nd.ones((3, 5)))
    with pytest.raises(MXNetError, match=f"linalg_{name}: A must be square matrices that fit the columns of B"):
        getattr(mx.nd.linalg, name)(mx.nd.ones((3, 3)), mx.nd.ones((3, 5)), rightside=True)
