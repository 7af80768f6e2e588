import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.ops import get
from mxnet.symbol import inference


def convnet():
    net = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="c", no_bias=True, pad=[1, 1])
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="bn", fix_gamma=False), act_type="relu")
    halves = mx.sym.SliceChannel(net, num_outputs=2, name="s")
    net = mx.sym.Concat(halves[0], halves[1] + 1.5, dim=1)
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=3), name="softmax")


def test_shapes():
    net = convnet()
    assert net.infer_shape(data=(2, 3, 8, 8)) == ([(2, 3, 8, 8), (4, 3, 3, 3), (4,), (4,), (3, 256), (3,), (2,)], [(2, 3)], [(4,), (4,)])
    with pytest.warns(UserWarning, match="data: \\(\\)"):
        assert net.infer_shape() == (None, None, None)
    with pytest.raises(mx.MXNetError, match=r"Error in operator c \(Convolution\)"):
        net.infer_shape(data=(2, 3))
    with pytest.raises(mx.MXNetError, match="argument name foo not found; candidates: data, c_weight"):
        net.infer_shape(foo=(2,))
    with pytest.raises(ValueError, match="either by positional or kwargs"):
        net.infer_shape((2,), data=(2,))


def test_shapes_are_found_backwards_too():
    a, b = mx.sym.var("a", shape=(0, 10)), mx.sym.var("b", shape=(12, 0))
    assert (a + b).infer_shape()[0] == [(12, 10), (12, 10)]
    x = mx.sym.var("x")
    hidden = mx.sym.FullyConnected(x, num_hidden=4, name="fc") + mx.sym.zeros((0, 4))
    assert hidden.infer_shape(x=(7, 2))[1] == [(7, 4)]


def test_types():
    args, outs, aux = convnet().infer_type(data="float16")
    half, full = np.float16, np.float32
    assert args == [half, half, full, full, half, half, half] and outs == [half] and aux == [full, full]


def test_sizes_of_zero_are_unknown_except_with_the_semantics_of_numpy():
    assert inference.from_user((2, 0)) == (2, -1) and inference.to_user((2, -1)) == (2, 0)
    assert inference.from_user(None) is None and inference.from_user(()) is None and inference.to_user(None) == ()
    with mx.np_shape():
        assert inference.from_user((2, 0)) == (2, 0) and inference.from_user(()) == ()
        assert inference.to_user(None) is None


def test_what_is_known_of_the_outputs_says_something_about_the_inputs():
    total = (mx.sym.var("a") + mx.sym.var("b"))._outputs
    shapes, nodes = inference.infer_shapes(total, {}, results=[(3, 4)])
    assert [shapes[id(n), 0] for n in nodes] == [(3, 4)] * 3


def test_operators_run_without_data():
    assert inference.run_on_meta(get("dot"), [(2, 3), (3, 4)], {}) == [(2, 4)]
    assert inference.run_on_meta(get("SliceChannel"), [(2, 6)], {"num_outputs": 3}) == [(2, 2)] * 3
    assert inference.run_on_meta(get("_contrib_boolean_mask"), [(2, 6), (2,)], {}) is None  # its shape depends on values


def test_types_go_both_ways_and_stop_at_casts():
    a, b = mx.sym.var("a"), mx.sym.var("b", dtype="float64")
    types, nodes = inference.infer_types((a + b)._outputs, {})
    assert [types[id(n), 0] for n in nodes] == [torch.float64] * 3
    assert mx.sym.cast(a, dtype="int32").infer_type(a="float16")[1] == [np.int32]
    with pytest.raises(mx.MXNetError, match=r"^Error in operator sum \(broadcast_add\)|^Error in operator"):
        (mx.sym.var("x", shape=(2,)) + mx.sym.var("y", shape=(3,))).infer_shape()


@pytest.mark.parametrize("make, message", [
    (lambda x: mx.sym.col2im(x, output_size=(4, 5), kernel=(0, 2), name="wide"), "Error in operator wide .col2im."),
    (lambda x: x + mx.symbol.functions.operator_function("_npi_eye")(N=-2**64, name="wide"), "Error in operator wide ._npi_eye."),
    (lambda x: mx.sym.broadcast_add(x, mx.sym._internal._set_value(src=2.5, shape=(-2, -3), name="wide")), "Error in operator wide ._set_value.")])
def test_whatever_an_operator_raises_names_its_node(make, message):
    with pytest.raises(mx.MXNetError, match=message):
        make(mx.sym.var("x")).infer_shape(x=(1, 4, 6))


def test_what_products_of_matrices_refuse_is_refused_before_they_run():
    a, b = mx.sym.var("a", shape=(2, 3)), mx.sym.var("b", shape=(2, 3))
    with pytest.raises(mx.MXNetError, match=r"as many columns of A \(3\) as rows of B \(2\) expected"):
        mx.sym.linalg.gemm2(a, b).infer_shape()
    with pytest.raises(mx.MXNetError, match=r"arrays of 2 axes expected, received shape \(4,\)"):
        mx.sym.np.concatenate([a.as_np_ndarray(), mx.sym.var("c", shape=(4,)).as_np_ndarray()]).infer_shape()
