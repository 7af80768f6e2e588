import subprocess

import numpy as np
import pytest

import mxnet as mx
from forked import python
from mxnet import numpy_op_fallback


def test_an_operator_over_numpy_is_offered_in_both_places():
    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], mx.np.array(np.multiply(in_data[0].asnumpy(), 2)))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @numpy_op_fallback.register("twice_fallback")
    class TwiceProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Twice()

    with mx.np_shape(True), mx.np_array(True):
        x = mx.np.array([1, 2])
        assert mx.nd.np._internal.twice_fallback(x).asnumpy().tolist() == [2, 4]
        graph = mx.sym.np._internal.twice_fallback(mx.sym.var("x").as_np_ndarray())
        assert graph.list_arguments() == ["x"]
    with pytest.raises(ValueError, match="has an operator twice_fallback already"):
        numpy_op_fallback.register("twice_fallback")(TwiceProp)
    for module in (mx.nd.np._internal, mx.sym.np._internal):
        del module.twice_fallback


@pytest.fixture
def numpy_semantics():
    with mx.np_shape(True), mx.np_array(True):
        yield


def test_operators_that_files_of_networks_hold(numpy_semantics):
    x = mx.np.arange(6).reshape(2, 3)
    empty = mx.nd.np._internal.empty_like_fallback(x, dtype="int32", order="C", subok=True, shape=None)
    assert (empty.shape, empty.dtype, type(empty)) == ((2, 3), np.int32, mx.np.ndarray)
    indices = mx.np.array([1, 5], dtype="int64")
    assert mx.nd.np._internal.unravel_index_fallback(indices, shape=(2, 3)).asnumpy().tolist() == [[0, 1], [1, 2]]
    assert mx.nd.Custom(x, op_type="resize_fallback", new_shape=(2, 2)).asnumpy().tolist() == [[0, 1], [2, 3]]
    assert mx.nd.Custom(x, op_type="resize_fallback", new_shape=8).asnumpy().tolist() == [0, 1, 2, 3, 4, 5, 0, 1]
    graph = mx.sym.np._internal.unravel_index_fallback(mx.sym.var("i").as_np_ndarray(), shape=(2, 3))
    assert graph.infer_shape(i=(4,))[1] == [(2, 4)]
    assert mx.sym.np._internal.empty_like_fallback(mx.sym.var("i").as_np_ndarray()).infer_shape(i=(4,))[1] == [(4,)]


def test_multivariate_normal(numpy_semantics):
    mx.random.seed(1)
    mean, cov = mx.np.array([3.0, -3.0]), mx.np.array([[1.0, 0.5], [0.5, 2.0]])
    draws = mx.nd.Custom(mean, cov, op_type="mvn_fallback", size=(4000,)).asnumpy()
    assert np.abs(draws.mean(0) - [3, -3]).max() < 0.1 and np.abs(np.cov(draws.T) - cov.asnumpy()).max() < 0.15
    with pytest.raises(mx.MXNetError, match=r"a mean \(..., n\) and a covariance \(..., n, n\) expected, received shapes \(2,\) and \(2, 3\)"):
        mx.nd.Custom(mean, mx.np.ones((2, 3)), op_type="mvn_fallback")


def test_there_are_no_gradients(numpy_semantics):
    x = mx.np.ones(3)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Custom(x, op_type="resize_fallback", new_shape=(2,))
    with pytest.raises(mx.MXNetError, match="Resize is computed by NumPy and has no gradient"):
        y.backward()


def test_files_of_networks_need_no_import():
    code = """if True:
        import mxnet as mx
        net = mx.sym.Custom(mx.sym.var("a"), op_type="resize_fallback", new_shape="(2, 3)", name="r")
        print(mx.sym.load_json(net.tojson()).eval(a=mx.nd.arange(4))[0].asnumpy().tolist())
    """
    done = subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "[[0.0, 1.0, 2.0], [3.0, 0.0, 1.0]]\n"
