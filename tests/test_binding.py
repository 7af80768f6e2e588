"""What is checked and made before there is an executor."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import nd, sym

X, Y = sym.var("x"), sym.var("y")


def test_arrays_by_position_and_by_name():
    for args in ([nd.array([1]), nd.array([2])], {"y": nd.array([2]), "x": nd.array([1])}):
        executor = (X - Y).bind(mx.cpu(), args)
        assert executor.forward()[0].asscalar() == -1 and executor.grad_arrays == [None, None]


@pytest.mark.parametrize("given, error, text", [
    ([nd.ones(1)], ValueError, r"args: 2 arrays expected \(x, y\), received 1"), ({"x": nd.ones(1)}, ValueError, "`y` is missing in `args`"),
    ("xy", TypeError, "args: .*received str"), ([nd.ones(1), np.ones(1)], TypeError, "args: NDArrays expected, received an entry of type ndarray")])
def test_arrays_that_do_not_fit(given, error, text):
    with pytest.raises(error, match=text):
        (X + Y).bind(mx.cpu(), given)


def test_gradients_are_made_only_where_asked_for():
    executor = (X * Y).simple_bind(mx.cpu(), grad_req={"x": "add"}, x=(2,), y=(2,))
    assert executor.grad_dict["x"].asnumpy().tolist() == [0, 0] and executor.grad_dict["y"] is None
    executor = (X * Y).simple_bind(mx.cpu(), grad_req=["null", "write"], x=(2,), y=(2,))
    assert executor.grad_dict["x"] is None and executor.grad_dict["y"].shape == (2,)
    executor = (X * Y).bind(mx.cpu(), [nd.ones(1)] * 2, args_grad={"y": nd.zeros(1)})
    assert executor.grad_dict["x"] is None
    with pytest.raises(ValueError, match="grad_req has 1 entries for 2 arguments"):
        (X * Y).simple_bind(mx.cpu(), grad_req=["write"], x=(2,), y=(2,))
    with pytest.raises(ValueError, match="grad_req must be in"):
        (X * Y).simple_bind(mx.cpu(), grad_req=3, x=(2,), y=(2,))


def test_wrong_shapes_are_found_when_binding():
    dot = sym.FullyConnected(X, weight=Y, num_hidden=2, no_bias=True)
    with pytest.raises(mx.MXNetError, match="FullyConnected"):
        dot.bind(mx.cpu(), [nd.ones((2, 3)), nd.ones((2, 4))])
    with pytest.raises(mx.MXNetError, match="simple_bind: the shape of x must be a tuple, received 3"):
        dot.simple_bind(mx.cpu(), x=3)
    with pytest.raises(mx.MXNetError, match=r"Shapes cannot be decided for: x: \(\), y: \(\)"):
        dot.simple_bind(mx.cpu())


def test_contexts_and_executors_are_asked_for():
    for call in (lambda: X.bind("cpu", [nd.ones(1)]), lambda: X.simple_bind(None, x=(1,))):
        with pytest.raises(TypeError, match="needs a Context such as"):
            call()
    with pytest.raises(TypeError, match="shared_exec must be an Executor"):
        X.bind(mx.cpu(), [nd.ones(1)], shared_exec=3)


def test_types_follow_what_is_given():
    executor = sym.FullyConnected(X, num_hidden=2, name="fc").simple_bind(mx.cpu(), type_dict={"x": "float64"}, x=(1, 3))
    assert {n: a.dtype for n, a in executor.arg_dict.items()} == {n: np.float64 for n in ("x", "fc_weight", "fc_bias")}
    assert executor.grad_dict["fc_weight"].dtype == np.float64


def test_arrays_are_shared_with_another_executor():
    net = sym.FullyConnected(X, num_hidden=2, name="fc")
    first = net.simple_bind(mx.cpu(), x=(1, 3))
    second = net.simple_bind(mx.cpu(), shared_arg_names=["fc_weight"], shared_exec=first, x=(4, 3))
    assert second.arg_dict["fc_weight"] is first.arg_dict["fc_weight"] and second.grad_dict["fc_weight"] is first.grad_dict["fc_weight"]
    assert second.arg_dict["fc_bias"] is not first.arg_dict["fc_bias"]
    with pytest.raises(mx.MXNetError, match=r"shared argument fc_weight is \(2, 3\) of float32, this graph needs \(2, 5\) of float32"):
        net.simple_bind(mx.cpu(), shared_arg_names=["fc_weight"], shared_exec=first, x=(1, 5))


def test_a_buffer_is_used_again_where_it_is_large_enough():
    buffer = {}
    large = (X + Y).simple_bind(mx.cpu(), shared_buffer=buffer, x=(4, 3), y=(4, 3))
    small = (X + Y).simple_bind(mx.cpu(), shared_buffer=buffer, x=(2, 3), y=(2, 3))
    assert sorted(buffer) == ["x", "y"] and large.arg_dict["x"] is buffer["x"]
    small.arg_dict["x"][:] = 7
    assert large.arg_dict["x"].asnumpy().tolist() == [[7] * 3] * 2 + [[0] * 3] * 2
    larger = (X + Y).simple_bind(mx.cpu(), shared_buffer=buffer, x=(5, 3), y=(5, 3))
    assert buffer["x"] is larger.arg_dict["x"]


def test_an_operator_without_a_gradient_is_refused_where_one_is_asked_for():
    net = sym.argmax_channel(X, name="best")
    net.simple_bind(mx.cpu(), grad_req="null", x=(3, 6))
    sym.Group([sym.stop_gradient(net), X]).simple_bind(mx.cpu(), x=(3, 6))
    with pytest.raises(mx.MXNetError, match="'best': operator argmax_channel has no gradient"):
        net.simple_bind(mx.cpu(), x=(3, 6))


def test_groups_are_placed():
    with mx.AttrScope(ctx_group="far"):
        w = sym.var("w")
    executor = (X + w).simple_bind(mx.cpu(), group2ctx={"far": mx.cpu(1)}, x=(1,), w=(1,))
    assert executor.arg_dict["w"].context == mx.cpu(1) and executor.arg_dict["x"].context == mx.cpu(0)


def test_how_arrays_and_gradients_are_stored():
    w = sym.var("w", stype="row_sparse")
    net = sym.dot(X, w)
    executor = net.simple_bind(mx.cpu(), stype_dict={"x": "csr"}, x=(2, 4), w=(4, 3))
    assert [executor.arg_dict[n].stype for n in "xw"] == ["csr", "row_sparse"] and executor.grad_dict["w"].stype == "row_sparse"
    lookup = sym.Embedding(X, sym.var("v"), input_dim=4, output_dim=2, sparse_grad=True)
    executor = lookup.simple_bind(mx.cpu(), x=(3,), v=(4, 2))
    assert executor.arg_dict["v"].stype == "default" and executor.grad_dict["v"].stype == "row_sparse"


def test_simple_bind_says_what_it_ignores_as_mxnet_does():
    y = mx.sym.var("x") * 2
    with pytest.warns(UserWarning, match="simple_bind: `args_grad` is no argument of the Symbol and no shape, and has no effect"):
        executor = y.simple_bind(mx.cpu(), x=(2,), args_grad=[mx.nd.zeros((2,))])
    assert executor.forward(x=mx.nd.ones((2,)))[0].asnumpy().tolist() == [2, 2]
