"""Quantized networks compared layer by layer."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import nd, sym
from mxnet.contrib import quantization
from mxnet.gluon import nn


@pytest.fixture
def networks():
    """A network one of whose layers has a bad range, its quantized form, and data."""
    mx.random.seed(3)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(8, 3), nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(8, 3, in_channels=8), nn.Dense(4))
    net.initialize(mx.init.Normal(.5))
    data = nd.random.uniform(-1, 1, (4, 3, 8, 8))
    net(data)
    return net, data


def test_each_layer(networks):
    net, data = networks
    made = quantization.quantize_net_v2(net, calib_data=[data], calib_mode="naive")
    report = quantization.compare(net, made, data)
    assert [(one.name, len(one.nodes)) for one in report] == [
        ("sg_mkldnn_conv_bn_act_0", 3), ("sg_mkldnn_conv_1", 1), ("sg_mkldnn_fully_connected_0", 1)]
    assert report[1].nodes == ("net_conv1_fwd",)
    assert all(0 < one.error < .04 for one in report) and all(one.own < one.error and one.clipped < .01 for one in report[:2])
    assert report[2].own is None and report[2].error == pytest.approx(
        np.linalg.norm(made(data).asnumpy() - net(data).asnumpy()) / np.linalg.norm(net(data).asnumpy()), rel=.2)
    lines = str(report).splitlines()
    assert lines[0].split() == ["layer", "error", "own", "clipped"] and lines[1].startswith("sg_mkldnn_conv_bn_act_0")


def test_a_bad_layer_is_found_and_excluded(networks):
    net, data = networks

    class Narrow:
        """Finds a range that is far too narrow for one layer."""

        def __init__(self):
            self.min_max_dict = {}

        def collect(self, name, array):
            top = .2 if name == "sg_mkldnn_conv_1_output" else abs(array.asnumpy()).max()
            self.min_max_dict[name] = -top, top

    made = quantization.quantize_net_v2(net, calib_data=[data], calib_mode="customize", LayerOutputCollector=Narrow())
    report = quantization.compare(net, made, data)
    bad, = report.worst()
    assert bad.name == "sg_mkldnn_conv_1" and bad.own > .5 and bad.clipped > .5 and report[-1].error > .5
    made = quantization.quantize_net_v2(net, exclude_layers=list(bad.nodes), calib_data=[data], calib_mode="naive")
    assert quantization.compare(net, made, data)[-1].error < .05


def test_symbols():
    fc = sym.FullyConnected(sym.Flatten(sym.var("x")), num_hidden=2, name="fc")
    net = sym.SoftmaxOutput(fc, name="out")
    args = {"fc_weight": nd.array([[1, 2], [-1, 3]]), "fc_bias": nd.array([0, 1])}
    data = nd.array([[1, -2], [.5, .25]])
    batches = mx.io.NDArrayIter({"x": data}, {"out_label": nd.zeros(2)}, 2)
    made = quantization.quantize_model(net, args, {}, ["x"], ["out_label"], calib_mode="naive", calib_data=batches)
    report = quantization.compare((net, args, {}), made, {"x": data})
    assert [one.name for one in report] == ["flatten0", "fc", "out"] or len(report) == 3
    assert report[1].error < .02 and report[0].error == 0


def test_what_cannot_be_compared(networks):
    net, data = networks
    with pytest.raises(mx.MXNetError, match="compare: the second network is not quantized"):
        quantization.compare(net, net, data)
    with pytest.raises(mx.MXNetError, match="compare: the networks have no layer in common, by name"):
        other = sym.contrib.quantized_flatten(sym.var("data"), sym.var("low"), sym.var("high"), name="quantized_flat")
        quantization.compare(net, (other, {}, {}), data)
