import copy
import pickle

import numpy as np
import pytest

import mxnet as mx
from mxnet.base import NotImplementedForSymbol


@pytest.fixture(autouse=True)
def fresh_names():
    with mx.name.NameManager():
        yield


def convnet():
    data = mx.sym.var("data")
    net = mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, name="c", no_bias=True, pad=[1, 1])
    net = mx.sym.BatchNorm(net, name="bn", fix_gamma=False)
    net = mx.sym.Activation(net, act_type="relu")
    halves = mx.sym.SliceChannel(net, num_outputs=2, name="s")
    net = mx.sym.Concat(halves[0], halves[1] + 1.5, dim=1)
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=3)
    return mx.sym.SoftmaxOutput(net, name="softmax")


def test_names_and_lists():
    net = convnet()
    assert net.list_arguments() == ["data", "c_weight", "bn_gamma", "bn_beta", "fullyconnected0_weight", "fullyconnected0_bias", "softmax_label"]
    assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert net.list_outputs() == ["softmax_output"]
    assert net.get_internals().list_outputs()[6:13] == ["bn_moving_var", "bn_output", "activation0_output", "s_output0", "s_output1",
                                                       "_plusscalar0_output", "concat0_output"]
    assert net.name == "softmax" and mx.sym.Group([net, mx.sym.var("x")]).name is None
    assert repr(mx.sym.Group([net, mx.sym.var("x")])) == "<Symbol group [softmax, x]>"


# What MXNet 1.9.1 calls them: (operator in JSON, name, attributes).
@pytest.mark.parametrize(("make", "expected"), [
    (lambda a, b: a + b, ("elemwise_add", "_plus0", {})),
    (lambda a, b: 2 - a, ("_rminus_scalar", "_rminusscalar0", {"scalar": "2"})),
    (lambda a, b: 2 ** a, ("_rpower_scalar", "_rpower_scalar0", {"scalar": "2"})),
    (lambda a, b: -a, ("_mul_scalar", "_mulscalar0", {"scalar": "-1.0"})),
    (lambda a, b: a > 1, ("_greater_scalar", "_greater_scalar0", {"scalar": "1"})),
    (lambda a, b: mx.sym.maximum(a, 2), ("_maximum_scalar", "_maximumscalar0", {"scalar": "2"})),
    (lambda a, b: mx.sym.split(a, num_outputs=2), ("SliceChannel", "split0", {"num_outputs": "2"})),
    (lambda a, b: mx.sym.concat(a, b), ("Concat", "concat0", {"num_args": "2"})),
    (lambda a, b: mx.sym.swapaxes(a, 0, 1), ("SwapAxis", "swapaxes0", {"dim1": "0", "dim2": "1"})),
    (lambda a, b: mx.sym.cast(a, dtype=np.float16), ("Cast", "cast0", {"dtype": "float16"})),
    (lambda a, b: mx.sym.linalg.gemm2(a, b), ("_linalg_gemm2", "gemm20", {})),
    (lambda a, b: mx.sym.zeros((2,)), ("_zeros", "_zeros0", {"dtype": "float32", "shape": "(2,)"})),
    (lambda a, b: a.sum(axis=1), ("sum", "sum0", {"axis": "1"})),
])
def test_operators_and_generated_names(make, expected):
    node = make(mx.sym.var("a"), mx.sym.var("b"))._outputs[0][0]
    assert (node.op.name, node.name, node.attrs) == expected


def test_attributes_reach_the_variables_an_operator_makes():
    with mx.AttrScope(ctx_group="dev1"):
        net = mx.sym.Convolution(mx.sym.var("data"), kernel=(1, 1), num_filter=1, name="conv", lr_mult=1)
    attrs = net.attr_dict()
    assert attrs["conv"] == {"kernel": "(1, 1)", "num_filter": "1", "__ctx_group__": "dev1", "ctx_group": "dev1", "__lr_mult__": "1", "lr_mult": "1"}
    assert attrs["conv_weight"] == attrs["conv"]
    assert net.attr("kernel") == "(1, 1)" and net.attr("nothing") is None
    v = mx.sym.var("v", shape=(2, 0), lr_mult=2, dtype="float16", init=mx.init.One())
    assert v.list_attr() == {"__shape__": "(2, 0)", "__lr_mult__": "2", "lr_mult": "2", "__dtype__": "2", "__init__": '["one", {}]'}


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


def test_composition():
    inner = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=10, name="fc1")
    outer = mx.sym.FullyConnected(name="fc3", num_hidden=10)
    net = outer(fc3_data=inner, name="composed")
    assert net.list_arguments() == ["data", "fc1_weight", "fc1_bias", "fc3_weight", "fc3_bias"]
    assert outer.list_arguments() == ["fc3_data", "fc3_weight", "fc3_bias"]
    with pytest.raises(mx.MXNetError, match="argument name nothing not found"):
        outer(nothing=inner)


def test_errors():
    x = mx.sym.var("x")
    with pytest.raises(NotImplementedForSymbol, match="needs values"):
        bool(x)
    with pytest.raises(NotImplementedForSymbol):
        x.asnumpy()
    with pytest.raises(TypeError, match="Expect a string"):
        mx.sym.var(3)
    with pytest.raises(TypeError, match="list of symbols"):
        mx.sym.Group([])
    with pytest.raises(ValueError, match='Cannot find output that matches name "foo"'):
        convnet()["foo"]
    with pytest.raises(IndexError):
        x[1]
    with pytest.raises(mx.MXNetError, match="input `data` must be a Symbol, received 3"):
        mx.sym.FullyConnected(3, num_hidden=2)
    with pytest.raises(mx.MXNetError, match="must be a single output, received a group of 2"):
        mx.sym.FullyConnected(mx.sym.split(x, num_outputs=2), num_hidden=2)
    with pytest.raises(mx.MXNetError, match="required argument `num_hidden`"):
        mx.sym.FullyConnected(x)
    with pytest.raises(TypeError, match="not supported"):
        x + "a"


def test_copies_are_independent():
    net = convnet()
    for other in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other.tojson() == net.tojson()
        other._set_attr(mood="changed")
        assert net.attr("mood") is None


def test_deep_graphs_do_not_exhaust_the_stack():
    x = mx.sym.var("x")
    for _ in range(5000):
        x = x + 1
    assert len(x.get_internals()) == 5001
    assert mx.sym.load_json(x.tojson()).eval(x=mx.nd.zeros((1,)))[0].asscalar() == 5000
