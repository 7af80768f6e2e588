import logging
import subprocess

import numpy as np
import pytest

import mxnet as mx
from forked import python
from mxnet import autograd
from mxnet.ndarray.sparse import dispatch

W = np.arange(8).reshape(4, 2) / 4


def rows(values=W):
    return mx.nd.array(values).tostype("row_sparse")


def matrix():
    return mx.nd.array([[0, 1, 0, 2], [0, 0, 0, 3]]).tostype("csr")


def test_the_first_call_on_a_sparse_array_finds_its_kernel():
    # In a process of its own: this one has imported the kernels.
    program = "import mxnet as mx; x = mx.nd.array([[0, 3]]).tostype('csr'); print(mx.nd.dot(x, mx.nd.ones((2, 1))).asnumpy().tolist())"
    result = subprocess.run([*python(), "-c", program], capture_output=True, text=True, timeout=120)
    assert result.stdout.strip() == "[[3.0]]", result.stderr


def test_the_way_over_dense_is_said_once_for_each_kind(caplog, monkeypatch):
    monkeypatch.delenv("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", raising=False)
    dispatch._announced.clear()
    with caplog.at_level(logging.WARNING, "mxnet"):
        mx.nd.exp(rows())
        mx.nd.exp(rows())
        mx.nd.exp(matrix())
        mx.nd.square(rows())
    assert [r.message.split(";")[0] for r in caplog.records] == [
        "Storage type fallback: exp has no sparse form for inputs stored as ['row_sparse']",
        "Storage type fallback: exp has no sparse form for inputs stored as ['csr']"]
    caplog.clear()
    dispatch._announced.clear()
    monkeypatch.setenv("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0")
    mx.nd.exp(rows())
    assert not caplog.records


def test_results_stay_sparse_while_recording_and_gradients_follow():
    a, b = rows(), rows(W * 2)
    a.attach_grad()
    b.attach_grad()
    with autograd.record():
        y = mx.nd.square(a * b + a)
        mx.nd.sum(y).backward()
    assert (y.stype, a.grad.stype, b.grad.stype) == ("row_sparse",) * 3
    np.testing.assert_allclose(a.grad.asnumpy(), 2 * (2 * W * W + W) * (4 * W / 2 + 1), 1e-6)
    np.testing.assert_allclose(b.grad.asnumpy(), 2 * (2 * W * W + W) * W, 1e-6)


def test_gradients_go_through_tostype_and_retain():
    x = mx.nd.array(W)
    x.attach_grad()
    with autograd.record():
        y = x.tostype("row_sparse")
        z = mx.nd.square(mx.nd.sparse.retain(y, mx.nd.array([1, 3])))
    z.backward()
    assert (y.stype, z.stype) == ("row_sparse", "row_sparse")
    assert z.asnumpy().tolist() == [[0, 0], [.25, .5625], [0, 0], [2.25, 3.0625]]
    assert x.grad.asnumpy().tolist() == [[0, 0], [1, 1.5], [0, 0], [3, 3.5]]


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
@pytest.mark.parametrize("grad_stype", ["default", "row_sparse"])
def test_a_lookup_with_sparse_grad_has_a_gradient_of_few_rows(stype, grad_stype):
    for request, factor in (("write", 1), ("add", 2)):
        w = mx.nd.array(W).tostype(stype)
        w.attach_grad(request, stype=grad_stype)
        for _ in range(2):
            with autograd.record():
                y = mx.nd.Embedding(mx.nd.array([3, 1, 3]), w, input_dim=4, output_dim=2, sparse_grad=True)
            y.backward()
        assert w.grad.stype == grad_stype
        assert w.grad.asnumpy().tolist() == [[0, 0], [factor] * 2, [0, 0], [2 * factor] * 2]
        if grad_stype == "row_sparse":
            assert w.grad.indices.asnumpy().tolist() == [1, 3]


def test_errors_of_kernels_name_operator_and_inputs():
    with pytest.raises(mx.MXNetError, match=r"elemwise_mul: .*\[inputs: row_sparse\(4, 2\), default\(4, 3\)\]|elemwise_mul"):
        mx.nd.elemwise_mul(rows(), mx.nd.ones((4, 3)))
    with pytest.raises(mx.MXNetError, match="input `rhs` must be an NDArray, received 3"):
        mx.nd.elemwise_mul(rows(), 3)


def test_out_is_written_as_it_is_stored():
    dense, sparse = mx.nd.zeros((4, 2)), mx.nd.sparse.zeros("row_sparse", (4, 2))
    assert mx.nd.square(rows(), out=dense) is dense
    assert mx.nd.square(rows(), out=sparse) is sparse
    assert dense.asnumpy().tolist() == sparse.asnumpy().tolist() == (W * W).tolist()
    with pytest.raises(mx.MXNetError, match="`out` holds 2 arrays, the operator returns 1"):
        mx.nd.square(rows(), out=[dense, dense])
    with pytest.raises(TypeError, match="`out` must be an NDArray, received int"):
        mx.nd.square(rows(), out=3)
