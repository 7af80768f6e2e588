import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd


def grid():
    return nd.arange(12).reshape((3, 4))


def test_dtypes_follow_mxnet():
    assert nd.array([1, 2]).dtype is np.float32
    assert nd.array(np.array([1, 2])).dtype is np.float32
    assert nd.array(nd.array([1, 2], dtype="int32")).dtype is np.int32
    assert nd.array([1, 2], dtype="uint8").dtype is np.uint8
    assert (nd.array([1, 2]) > 1).dtype is np.float32
    assert nd.array(3).shape == ()


def test_repr_is_that_of_mxnet():
    assert repr(nd.array([[0, 1], [2, 3]])) == "\n[[0. 1.]\n [2. 3.]]\n<NDArray 2x2 @cpu(0)>"


def test_assignment():
    x = grid()
    x[0, 1:3] = [100, 200]
    x[[1, 2], 0] = nd.array([5, 6])
    assert x.asnumpy().tolist() == [[0, 100, 200, 3], [5, 5, 6, 7], [6, 9, 10, 11]]
    x[::2] = 0
    assert x.asnumpy().tolist() == [[0, 0, 0, 0], [5, 5, 6, 7], [0, 0, 0, 0]]
    x[1, ::-1] = np.array([1, 2, 3, 4])
    assert x.asnumpy()[1].tolist() == [4, 3, 2, 1]
    x[:] = nd.full((3, 4), 2)
    assert (x.asnumpy() == 2).all()


def test_bad_assignments():
    with pytest.raises(ValueError, match=r"cannot assign values of shape \(3,\) to a selection of shape \(4,\)"):
        grid()[0] = [1, 2, 3]
    with pytest.raises(TypeError, match="can be assigned to an NDArray, received"):
        grid()[0, 0] = "a"


def test_arithmetic_with_arrays_and_numbers():
    x = nd.array([1, 2, 4])
    assert (x + x).asnumpy().tolist() == [2, 4, 8]
    assert (1 - x).asnumpy().tolist() == [0, -1, -3]
    assert (8 / x).asnumpy().tolist() == [8, 4, 2]
    assert (2 ** x).asnumpy().tolist() == [2, 4, 16]
    assert (x % 3).asnumpy().tolist() == [1, 2, 1]
    assert (x >= 2).asnumpy().tolist() == [0, 1, 1]
    assert (-x).asnumpy().tolist() == [-1, -2, -4]
    assert (x == x).asnumpy().tolist() == [1, 1, 1]
    assert nd.maximum(x, 2).asnumpy().tolist() == [2, 2, 4]
    assert nd.power(2, x).asnumpy().tolist() == [2, 4, 16]
    assert (nd.array([[1], [2]]) * x).asnumpy().tolist() == [[1, 2, 4], [2, 4, 8]]


def test_inplace_arithmetic_keeps_the_memory_and_the_type():
    x = nd.array([1, 2], dtype="int32")
    alias = x[0:2]
    x += 1.9
    assert x.dtype is np.int32 and alias.asnumpy().tolist() == [2, 3]
    y = nd.array([1.0, 2.0])
    shared = y.as_torch()
    y *= nd.array([3.0, 4.0])
    assert shared.tolist() == [3, 8]


def test_errors_say_what_came():
    x = grid()
    with pytest.raises(mx.MXNetError, match=r"broadcast_add: .*inputs: lhs: float32\(3, 4\), rhs: float32\(5,\)"):
        x + nd.ones((5,))
    with pytest.raises(TypeError, match="type <class 'str'> not supported"):
        x + "a"
    with pytest.raises(TypeError, match="NoneType"):
        x == None  # noqa: E711
    with pytest.raises(mx.MXNetError, match="input `data` must be an NDArray, received 3 of type int"):
        nd.sum(3)
    with pytest.raises(mx.MXNetError, match="act_type.* must be one of .*received 'foo'"):
        nd.Activation(x, act_type="foo")
    with pytest.raises(mx.MXNetError, match="cannot find argument 'wrong'\nPossible arguments: inputs data; attributes:\n    act_type : "):
        nd.Activation(x, act_type="relu", wrong=1)
    with pytest.raises(mx.MXNetError, match="required argument `kernel`"):
        nd.Convolution(x)
    with pytest.raises(mx.MXNetError, match="FullyConnected expects 3 inputs"):
        nd.FullyConnected(x, num_hidden=3)
    with pytest.raises(ValueError, match="an array of one element expected, received 12"):
        x.asscalar()
    with pytest.raises(ValueError, match="12 elements has no truth value"):
        bool(x)
    with pytest.raises(AttributeError, match="no attribute 'no_such_operator'"):
        nd.no_such_operator
    with pytest.raises(mx.MXNetError, match=r"shape \(2, -1\) is not complete"):
        nd.zeros((2, -1))
    with pytest.raises(TypeError, match="array: numbers, and a type that arrays hold, expected"):
        nd.array([[1], [1, 2]])


def test_contexts():
    x = nd.ones((2,), ctx=mx.cpu(1))
    assert x.context == mx.cpu(1) and str(x.ctx) == "cpu(1)"
    assert (x * 2).context == mx.cpu(1)
    y = x.as_in_context(mx.cpu(0))
    y[:] = 5
    assert x.asnumpy().tolist() == [1, 1]
    assert x.as_in_context(mx.cpu(1)) is x
    assert nd.dot(x, y).context == mx.cpu(1)  # the names of host memory may be mixed, as in MXNet
    elsewhere = nd.NDArray._new(torch.ones(2), mx.gpu(0))
    with pytest.raises(mx.MXNetError, match=r"all inputs must be on one device, received cpu\(1\), gpu\(0\)"):
        nd.dot(x, elsewhere)
    with mx.Context("cpu", 1):
        assert nd.zeros((1,)).context == mx.cpu(1)
    with pytest.raises(mx.MXNetError, match="torch sees"):
        nd.zeros((1,), ctx=mx.gpu(99))


def test_exchange_shares_memory():
    t = torch.zeros(3)
    x = nd.from_torch(t)
    x += 1
    assert t.tolist() == [1, 1, 1]
    assert x.as_torch().data_ptr() == t.data_ptr()
    y = nd.from_dlpack(x.to_dlpack_for_write())
    y[0] = 7
    assert t.tolist() == [7, 1, 1]
    assert torch.from_dlpack(x).data_ptr() == t.data_ptr()
    source = np.arange(3, dtype=np.float32)
    z = nd.from_numpy(source)
    z[1] = 9
    assert source.tolist() == [0, 9, 2]
    assert np.asarray(z).tolist() == [0, 9, 2]
    copy = x.asnumpy()
    copy[:] = 0
    assert x.asnumpy().tolist() == [7, 1, 1]


def test_out_receives_results():
    x, out = nd.array([1, 4]), nd.zeros((2,))
    assert nd.sqrt(x, out=out) is out
    assert out.asnumpy().tolist() == [1, 2]
    with pytest.raises(mx.MXNetError, match=r"`out` has shape \(3,\), the result has \(2,\)"):
        nd.sqrt(x, out=nd.zeros((3,)))


def test_the_callers_grad_mode_is_left_alone():
    x = nd.ones((2,))
    x.attach_grad()
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            y = x * 2
            assert torch.is_grad_enabled() is enabled
            assert not y.as_torch().requires_grad
            with mx.autograd.record():
                z = x * 2
            assert torch.is_grad_enabled() is enabled
        z.backward()
        assert x.grad.asnumpy().tolist() == [2, 2]


def test_operators_named_like_builtins_do_not_hide_them():
    assert nd.sparse.slice is not slice and nd.sum is not sum
    csr = nd.array([[0, 1], [2, 0]]).tostype("csr")
    assert csr[0:1].asnumpy().tolist() == [[0, 1]]


def test_what_shares_memory():
    x = grid()
    for shared in (x.reshape((4, 3)), x.expand_dims(0, inplace=True), x.flatten(inplace=True), x[0:2]):
        shared[:] = 5
        assert (x.asnumpy() == 5).any()
        x[:] = 0
    for copy in (nd.reshape(x, (4, 3)), x.expand_dims(0), x.flatten(), nd.squeeze(x), nd.Dropout(x), x.astype("float32"), x.transpose(1, 0),
                 nd.identity(x), nd.BlockGrad(x), x.slice_axis(axis=0, begin=0, end=3), x.broadcast_to((3, 4)), nd.concat(x, dim=0)):
        copy[:] = 5
        assert (x.asnumpy() == 0).all()


def test_reshape_to_less_is_refused():
    with pytest.raises(ValueError, match=r"reshape: \d+ entries expected, shape \(2, 2\) has 4"):
        grid().reshape((2, 2))


def test_files_of_empty_arrays_saved_without_numpys_shapes_are_read_without_them(tmp_path):
    name = str(tmp_path / "a.params")
    mx.nd.save(name, [mx.nd.array(np.zeros((0, 4)))])
    assert mx.nd.load(name)[0].shape == (0, 4)
    with mx.np_shape(True):
        with pytest.raises(mx.MXNetError, match=r"shape \(0, 4\) was saved without NumPy's shape semantics; load it inside mx.np_shape\(False\)"):
            mx.nd.load(name)
        mx.nd.save(name, [mx.nd.zeros((0, 4))])
        assert mx.nd.load(name)[0].shape == (0, 4)
    with pytest.raises(mx.MXNetError, match=r"shape \(0, 4\) was saved with NumPy's shape semantics; load it inside mx.np_shape\(True\)"):
        mx.nd.load(name)


def test_a_gradient_that_torch_left_out_is_zero():
    from mxnet.ndarray.dispatch import Marked
    buffer = mx.nd.ones(2)
    Marked(buffer, "add").deliver(torch.zeros(2, requires_grad=True))
    assert buffer.asnumpy().tolist() == [1, 1]
    Marked(buffer, "write").deliver(torch.zeros(2, requires_grad=True))
    assert buffer.asnumpy().tolist() == [0, 0]


def test_a_gradient_whose_memory_was_lent():
    from mxnet.ndarray.dispatch import Marked
    gradient = mx.nd.array([1, 2])
    mark = Marked(gradient, "write")
    assert mark.lend() is None  # no backward runs
    mark.reached = False
    memory = mark.lend()
    assert memory.tolist() == [1, 2] and mark.lend() is None
    mark.failed()
    assert gradient.asnumpy().tolist() == [0, 0]
    gradient[:] = 3
    mark.reached = False
    memory = mark.lend().fill_(4)
    mark.take(memory[:])  # not all of its storage's only use: copied
    assert gradient.asnumpy().tolist() == [4, 4] and memory.data_ptr() != torch.from_dlpack(gradient.to_dlpack_for_read()).data_ptr()



def test_sizes_that_numpy_does_not_take():
    with mx.np_shape(), pytest.raises(mx.MXNetError, match=r"asnumpy: NumPy holds no array of shape \(9223372036854775807, 0, 2\)"):
        mx.np.zeros((2**63 - 1, 0, 2)).asnumpy()
