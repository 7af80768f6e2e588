"""Quantized Gluon networks."""
import pytest

import mxnet as mx
from mxnet import gluon, nd
from mxnet.contrib import quantization
from mxnet.gluon import nn


@pytest.fixture
def trained():
    """A network, data, and what it makes of them."""
    mx.random.seed(2)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), nn.Dense(4))
    net.initialize(mx.init.Normal(.5))
    data = nd.random.uniform(shape=(8, 3, 8, 8))
    return net, data, net(data).asnumpy()


def loader(data):
    return gluon.data.DataLoader(gluon.data.ArrayDataset(data, nd.zeros(len(data))), batch_size=4)


def error(net, data, expected):
    return abs(net(data).asnumpy() - expected).max() / abs(expected).max()


@pytest.mark.parametrize("mode", ["naive", "entropy"])
def test_results_stay(trained, mode):
    net, data, expected = trained
    made = quantization.quantize_net_v2(net, calib_data=loader(data), calib_mode=mode)
    assert isinstance(made, gluon.SymbolBlock) and error(made, data, expected) < (.25 if mode == "entropy" else .04)
    assert {str(p.dtype) for p in made.collect_params().values()} >= {"<class 'numpy.int8'>"}


def test_the_older_form_warns_and_takes_shapes(trained):
    net, data, expected = trained
    with pytest.warns(UserWarning, match="quantize_net_v2, which is to be called instead"):
        made = quantization.quantize_net(net, data_shapes=[mx.io.DataDesc("data", (8, 3, 8, 8))], exclude_layers_match=["batchnorm"])
    assert error(made, data, expected) < .04


def test_exported_and_read(trained, tmp_path):
    net, data, expected = trained
    made = quantization.quantize_net_v2(net, calib_data=loader(data), calib_mode="naive")
    found = made(data).asnumpy()
    made.hybridize()
    made(data)
    made.export(str(tmp_path / "net"))
    read = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    assert (read(data).asnumpy() == found).all()


def test_recurrent_layers():
    layer = gluon.rnn.LSTM(6, input_size=4)
    layer.initialize(mx.init.Uniform(.5))
    data = nd.random.uniform(-1, 1, (5, 3, 4))
    with pytest.raises(ValueError, match="the network's graph takes data0, data1, data2, the data are 1; a recurrent layer whose states are inputs"):
        quantization.quantize_net_v2(layer, calib_data=[data], calib_mode="naive")
    net = nn.HybridSequential()
    net.add(layer)
    expected = net(data).asnumpy()
    made = quantization.quantize_net_v2(net, calib_data=[data], calib_mode="naive")
    assert error(made, data, expected) < .01
    made.hybridize(static_alloc=True, static_shape=True)
    assert error(made, data, expected) < .01 and "openvino: the whole graph" in str(made.explain())


def test_wrong_data(trained):
    net, data, _ = trained
    with pytest.raises(ValueError, match="`data_shapes` must be given where there is no `calib_data`"):
        quantization.quantize_net_v2(net)
    with pytest.raises(ValueError, match="`calib_data` must be given when calib_mode=naive"):
        quantization.quantize_net_v2(net, data_shapes=[("data", data.shape)], calib_mode="naive")
    with pytest.raises(TypeError, match="`calib_data` is not a valid iterator"):
        quantization.quantize_net_v2(net, calib_data=3, calib_mode="naive")
    with pytest.raises(mx.MXNetError, match="calibration: at least one batch expected, received none"):
        quantization.quantize_net_v2(net, calib_data=[], calib_mode="naive")
