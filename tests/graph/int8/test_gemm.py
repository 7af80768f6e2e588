"""Fused nodes on oneDNN's integers, beside the same nodes by torch's operators on the integers' values."""
import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd
from mxnet.contrib import quantization
from mxnet.gluon import nn
from mxnet.graph.int8 import gemm
from mxnet.ops.quantization.arithmetic import Quantized

pytestmark = pytest.mark.skipif(not gemm.available(), reason="torch lacks the kernels, or the processor VNNI")


class Residual(nn.HybridBlock):
    """relu(bn(conv(x)) + shortcut(x)), whose shortcut is x, or has a sign."""

    def __init__(self, signed):
        super().__init__()
        self.conv, self.norm = nn.Conv2D(4, 3, padding=1, in_channels=4), nn.BatchNorm(in_channels=4)
        self.shortcut = nn.Conv2D(4, 1, in_channels=4) if signed else nn.Activation("relu")

    def hybrid_forward(self, F, x):
        return F.relu(self.norm(self.conv(x)) + self.shortcut(x))


def chain(*blocks):
    net = nn.HybridSequential()
    net.add(*blocks)
    return net


NETWORKS = {
    "stride, groups": (lambda: chain(nn.Conv2D(8, 3, 2, 1, groups=2, in_channels=4)), True, 1),
    "depthwise": (lambda: chain(nn.Conv2D(4, 3, padding=1, groups=4, in_channels=4, activation="relu")), True, 1),
    "dilated, without bias": (lambda: chain(nn.Conv2D(5, (1, 3), dilation=(1, 2), in_channels=4, use_bias=False)), True, 1),
    "of what has no sign": (lambda: chain(nn.Conv2D(8, 3, in_channels=4, activation="relu")), False, 1),
    "clipped": (lambda: chain(nn.Conv2D(8, 3, in_channels=4), nn.HybridLambda(lambda F, x: F.clip(x, 0, 0.5))), True, 1),
    "batch norm": (lambda: chain(nn.Conv2D(8, 3, in_channels=4), nn.BatchNorm(in_channels=8), nn.Activation("relu")), True, 1),
    "adds its own type": (lambda: Residual(signed=False), False, 1),
    "adds another type": (lambda: Residual(signed=True), False, 2),
    "fully connected": (lambda: chain(nn.Dense(7, in_units=4 * 9 * 9, activation="relu")), True, 1),
    "fully connected, of each row": (lambda: chain(nn.Dense(7, in_units=9, flatten=False)), True, 1),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("granularity", ["tensor-wise", "channel-wise"])
def test_results_are_the_reference_operators(name, granularity, monkeypatch):
    make, signed, count = NETWORKS[name]
    mx.random.seed(3)
    net = make()
    net.initialize(mx.init.Normal(0.3))
    x = nd.random.uniform(-1 if signed else 0, 1, shape=(2, 4, 9, 9))
    exact = net(x).asnumpy()
    qnet = quantization.quantize_net_v2(net, calib_data=[x], calib_mode="naive", quantize_granularity=granularity)
    qnet.hybridize(backend="native")
    calls, product = [], gemm.Packed.product

    def counted(self, *args, **kwargs):
        calls.append(self)
        return product(self, *args, **kwargs)

    monkeypatch.setattr(gemm.Packed, "product", counted)
    found = [qnet(x).asnumpy() for _ in range(2)][1]
    assert len(calls) == 2 * count and len(set(map(id, calls))) == count  # and weights were made ready once
    monkeypatch.setattr(gemm, "available", lambda: False)
    expected = qnet(x).asnumpy()
    assert len(calls) == 2 * count
    step = np.abs(exact).max() / 127
    assert np.abs(found - expected).max() <= 1.01 * step * count and np.abs(found - exact).max() <= 6 * step


def test_weights_that_change_are_made_ready_again():
    net = chain(nn.Dense(1, in_units=2, use_bias=False))
    net.initialize(mx.init.One())
    x = nd.array([[1, 1]])
    qnet = quantization.quantize_net_v2(net, calib_data=[nd.array([[4, 4]])], calib_mode="naive", quantize_granularity="channel-wise")
    qnet.hybridize(backend="native")
    weight, = (p for name, p in qnet.collect_params().items() if name.endswith("weight"))

    def result():
        return round(float(qnet(x).asscalar()), 1)

    assert result() == 2
    weight.data()[:] = 2  # in place
    assert result() == 4
    weight.set_data(nd.full((1, 2), -1))
    assert result() == -2
    weight.data().as_torch().mul_(3)  # by torch, whose counter tells
    assert result() == -6


def test_each_range_of_the_data_has_its_own_weights():
    net = chain(nn.Dense(1, in_units=2))
    net.initialize(mx.init.One())
    qnet = quantization.quantize_net_v2(net, calib_mode="none", data_shapes=[("data", (1, 2))])  # ranges are looked for in each run
    qnet.hybridize(backend="native")
    assert [qnet(nd.array([[x, x]])).asscalar() for x in (1, 100, 0.01, 1)] == pytest.approx([2, 200, 0.02, 2], rel=0.005)


@pytest.mark.parametrize("dtype, low, high", [(torch.uint8, 0, 255.5), (torch.int8, -127.5, 127.5)])
def test_sums_of_more_than_16_bits(dtype, low, high):
    """Two products of 255 and 127 do not fit into 16 bits."""
    most = torch.iinfo(dtype).max
    data = Quantized(torch.full((1, 64, 2, 2), most, dtype=dtype), torch.tensor([float(low)]), torch.tensor([float(high)]))
    weight = torch.full((16, 64, 1, 1), 127, dtype=torch.int8)
    attributes = {"kernel": (1, 1), "stride": (), "pad": (), "dilate": (), "num_group": 1, "layout": None}
    packed = gemm.Packed([weight], attributes, data, weight, torch.ones(1), None)
    assert (packed.product(data.values) == 64 * most * 127).all()
    assert (packed.product(data.values, 64 * most, torch.int8) == 127).all()
    assert (packed.product(data.values, 64 * most, torch.uint8, relu=True) == 127).all()


def test_padding_stands_for_zero():
    data = Quantized(torch.full((1, 1, 1, 1), 5, dtype=torch.int8), torch.tensor([-127.5]), torch.tensor([127.5]))
    weight = torch.ones(1, 1, 3, 3, dtype=torch.int8)
    attributes = {"kernel": (3, 3), "stride": (), "pad": (1, 1), "dilate": (), "num_group": 1, "layout": None}
    packed = gemm.Packed([weight], attributes, data, weight, torch.ones(1), None)
    assert packed.product(data.values).item() == 5
