import copy
import pickle

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


def test_errors():
    x = mx.sym.var("x")
    with pytest.raises(NotImplementedForSymbol, match="needs values"):
        bool(x)
    with pytest.raises(NotImplementedForSymbol):
        x.asnumpy()
    with pytest.raises(TypeError, match="must be a string, received"):
        mx.sym.var(3)
    with pytest.raises(TypeError, match="list of symbols"):
        mx.sym.Group([])
    with pytest.raises(ValueError, match="no output is named 'foo'; the outputs are"):
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
        other._set_attr(__mood__="changed")
        assert net.attr("__mood__") is None
