import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd

W = np.arange(8).reshape(4, 2) / 4


def matrix():
    return mx.nd.array([[0, 1, 0, 2], [0, 0, 0, 3]]).tostype("csr")


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_the_gradient_of_the_dense_factor_has_the_rows_that_were_used(stype):
    w = mx.nd.array(W).tostype(stype)
    w.attach_grad(stype="row_sparse")
    with autograd.record():
        y = mx.nd.sparse.dot(matrix(), w)
    y.backward(mx.nd.array([[1, 2], [3, 4]]))
    assert y.asnumpy().tolist() == [[3.5, 4.25], [4.5, 5.25]]
    assert w.grad.indices.asnumpy().tolist() == [1, 3]
    assert w.grad.data.asnumpy().tolist() == [[1, 2], [11, 16]]


def test_autograd_grad_gives_rows_too():
    w = mx.nd.array(W)
    w.attach_grad()
    with autograd.record():
        y = mx.nd.dot(matrix(), w)
    g, = autograd.grad(y, [w])
    assert g.stype == "row_sparse" and g.data.asnumpy().tolist() == [[1, 1], [5, 5]]


def test_a_second_derivative_goes_through():
    w = mx.nd.array(W)
    w.attach_grad()
    with autograd.record():
        y = mx.nd.dot(matrix(), w * w)
        g, = autograd.grad(y, [w], create_graph=True)
    g.backward()
    assert w.grad.asnumpy().tolist() == [[0, 0], [2, 2], [0, 0], [10, 10]]


def test_transposed_while_recording_it_stays_by_rows():
    w = mx.nd.array(W[:2])
    w.attach_grad()
    with autograd.record():
        y = mx.nd.dot(matrix(), w, transpose_a=True)
    y.backward()
    assert y.stype == "row_sparse" and y.indices.asnumpy().tolist() == [1, 3]
    assert y.asnumpy().tolist() == [[0, 0], [0, .25], [0, 0], [1.5, 2.75]]
    assert w.grad.asnumpy().tolist() == [[3, 3], [3, 3]]


def test_a_vector_is_taken_too():
    assert mx.nd.dot(matrix(), mx.nd.array([1, 2, 3, 4])).asnumpy().tolist() == [10, 12]
    assert mx.nd.dot(matrix(), mx.nd.array([1, 2]), transpose_a=True).asnumpy().tolist() == [0, 1, 0, 8]


def test_sizes_must_match():
    with pytest.raises(mx.MXNetError, match=r"dot: shapes \(2, 4\) and \(3, 2\) do not match: axes of 4 and 3"):
        mx.nd.dot(matrix(), mx.nd.ones((3, 2)))
    with pytest.raises(mx.MXNetError, match=r"dot: shapes \(3, 3\) and \(2, 4\) do not match: axes of 3 and 2"):
        mx.nd.dot(mx.nd.ones((3, 3)), matrix())


def test_only_the_rows_asked_for_are_read():
    rows = 1 << 45
    c = mx.nd.sparse.csr_matrix(([1., 2.], [5, rows - 1], [0, 1, 2]), shape=(2, rows))
    r = mx.nd.sparse.row_sparse_array(([[1., 2.], [3., 4.]], [5, rows - 1]), shape=(rows, 2))
    assert mx.nd.dot(c, r).asnumpy().tolist() == [[1, 2], [6, 8]]
    t = mx.nd.dot(c, mx.nd.ones((2, 3)), transpose_a=True)
    assert (t.shape, t.indices.asnumpy().tolist()) == ((rows, 3), [5, rows - 1])
