"""CachedOp: a graph called like an operator."""
import copy
import pickle

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.cached_op import CachedOp


def graph():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    return a * b + 1


def test_call_and_gradient():
    op = CachedOp(graph(), [("static_alloc", True)])
    a, b = mx.nd.array([2., 3.]), mx.nd.array([5., 7.])
    a.attach_grad()
    with mx.autograd.record():
        c = op(a, b)
    c.backward()
    assert c.asnumpy().tolist() == [11, 22] and a.grad.asnumpy().tolist() == [5, 7]
    assert not op(a, b)._data.requires_grad  # outside of record nothing is recorded


def test_recording_goes_through_several_calls():
    op, x = CachedOp(graph()), mx.nd.array([2.])
    x.attach_grad()
    with mx.autograd.record():
        y = op(op(x, x), x) * 3  # 3 (x (x² + 1) + 1)
    y.backward()
    assert (y.asscalar(), x.grad.asscalar()) == (33, 39)


def test_several_outputs_and_out():
    a = mx.sym.var("a")
    op = CachedOp(mx.sym.Group([a + 1, a * 2]))
    x, y, z = mx.nd.array([3.]), mx.nd.zeros((1,)), mx.nd.zeros((1,))
    assert [o.asscalar() for o in op(x)] == [4, 6]
    op(x, out=[y, z])
    assert (y.asscalar(), z.asscalar()) == (4, 6)
    with pytest.raises(mx.MXNetError, match="`out` holds 1 arrays, the graph has 2 outputs"):
        op(x, out=y)
    with pytest.raises(mx.MXNetError, match=r"`out` has shape \(2,\), the output \(1,\)"):
        op(x, out=[y, mx.nd.zeros((2,))])


def test_an_input_handed_on_is_copied():
    op, x = CachedOp(mx.sym.var("a")), mx.nd.array([1.])
    y = op(x)
    y[:] = 5
    assert x.asscalar() == 1


def test_training_mode_updates_running_statistics():
    op = CachedOp(mx.sym.BatchNorm(mx.sym.var("data"), fix_gamma=False, momentum=0.5, name="bn"))
    mean, var = mx.nd.zeros((1,)), mx.nd.ones((1,))
    args = (mx.nd.array([[1.], [3.]]), mx.nd.ones((1,)), mx.nd.zeros((1,)), mean, var)
    op(*args)
    assert mean.asscalar() == 0
    with mx.autograd.train_mode():
        op(*args)
    assert mean.asscalar() == 1


def test_a_graph_without_inputs():
    op = CachedOp(mx.sym.ones((2,)))
    assert op(default_ctx=mx.cpu(1)).context == mx.cpu(1)
    assert op().asnumpy().tolist() == [1, 1]


def test_errors():
    op, x = CachedOp(graph()), mx.nd.ones((1,))
    with pytest.raises(mx.MXNetError, match=r"the graph has 2 inputs \(a, b\), received 1"):
        op(x)
    with pytest.raises(mx.MXNetError, match=r"different contexts: a on cpu\(0\), b on cpu\(1\)"):
        op(x, mx.nd.ones((1,), ctx=mx.cpu(1)))
    with pytest.raises(mx.MXNetError, match="inputs must be NDArrays, received 3 of type int"):
        op(x, 3)
    with pytest.raises(mx.MXNetError, match="cannot find argument 'static_aloc'; possible arguments: .*static_alloc"):
        CachedOp(graph(), {"static_aloc": True})
    with pytest.raises(mx.MXNetError, match="'nope'"):
        CachedOp(graph(), backend="nope")


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda op: pickle.loads(pickle.dumps(op))])
def test_copies(duplicate):
    op = duplicate(CachedOp(graph(), {"inline_limit": 3}))
    assert op.flags == {"inline_limit": 3}
    assert op(mx.nd.array([2.]), mx.nd.array([4.])).asscalar() == 9


def test_hook_names():
    data = mx.sym.var("data")
    out = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=2, name="fc"), act_type="relu", name="act")
    op, seen = CachedOp(out), []
    op._register_op_hook(lambda name, operator, handle: seen.append((name, operator, mx.nd.NDArray(handle).shape)), True)
    op(mx.nd.ones((1, 3)), mx.nd.ones((2, 3)), mx.nd.zeros((2,)))
    assert seen == [("fc_data", "FullyConnected", (1, 3)), ("fc_weight", "FullyConnected", (2, 3)), ("fc_bias", "FullyConnected", (2,)),
                    ("fc_output", "FullyConnected", (1, 2)), ("act_input0", "Activation", (1, 2)), ("act_output", "Activation", (1, 2))]


def test_dtype_and_ctx_of_results():
    out = CachedOp(graph())(mx.nd.ones((1,), ctx=mx.cpu(1), dtype="float64"), mx.nd.ones((1,), ctx=mx.cpu(1), dtype="float64"))
    assert out.context == mx.cpu(1) and out.dtype == np.float64


def test_get_symbol_shows_the_graph():
    op, x = CachedOp(graph()), mx.nd.array([2.])
    x.attach_grad()
    with mx.autograd.record():
        y = op(x, x * 3) + 1
    recorded = mx.autograd.get_symbol(y)
    assert recorded.list_arguments() == ["var0"]
    assert recorded.eval(var0=x)[0].asscalar() == 14


def test_handle_and_kind_of_graph():
    op = mx.nd.CachedOp(mx.sym.var("x") + 1)
    assert op.handle.input_names == ["x"] and op.is_np_sym is False
    assert mx.nd.CachedOp(mx.sym.np.sin(mx.sym.var("x").as_np_ndarray())).is_np_sym is True


def test_sparse_inputs_stay_sparse():
    x = mx.nd.array([[0, 0], [1, 2]]).tostype("row_sparse")
    x.attach_grad()
    variable = mx.sym.var("x")
    op = mx.nd.CachedOp(mx.sym.Group([mx.sym.square(variable), variable]))
    with mx.autograd.record():
        squares, same = op(x)
    squares.backward()
    assert (squares.stype, same.stype, x.grad.stype) == ("row_sparse",) * 3 and same is not x
    assert x.grad.data.asnumpy().tolist() == [[2, 4]]
    assert op(x, out=[mx.nd.zeros((2, 2)), mx.nd.zeros((2, 2))])[0].asnumpy().tolist() == [[0, 0], [1, 4]]
