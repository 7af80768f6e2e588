import sys

import pytest

import mxnet as mx
from mxnet import graph
from mxnet.graph.backends import registry


class Dividing:
    name, specializes, trains = "test_dividing", False, False

    def compile(self, program):
        return program.module.forward

    def partition(self, symbol):
        return mx.sym.exp(symbol, name="divided")

    def optimize(self, symbol, precision="float32"):
        return mx.sym.exp(symbol, name=precision)


@pytest.fixture
def dividing():
    graph.register_backend(Dividing())
    yield
    del registry.BACKENDS["test_dividing"]


def test_backends_that_come_with_it():
    assert {"native", "openvino", "inductor", "tensorrt"} <= set(registry.BACKENDS)


def test_a_backend_may_divide_and_prepare_graphs(dividing):
    x = mx.sym.var("x")
    assert graph.partition(x, "test_dividing").name == "divided"
    assert graph.optimize(x, "test_dividing", precision="float16").name == "float16"


@pytest.mark.parametrize("function", [graph.partition, graph.optimize])
def test_native_takes_a_graph_whole(function):
    x = mx.sym.var("x")
    assert function(x, "native") is x


def test_a_backend_that_is_not_available(caplog, monkeypatch):
    x = mx.sym.var("x")
    with pytest.raises(mx.MXNetError, match="no backend is called 'warp'"):
        graph.partition(x, "warp")
    assert graph.optimize(x, "warp") is x and "Error optimizing for backend 'warp': no backend is called 'warp'" in caplog.text
    monkeypatch.setitem(sys.modules, "openvino", None)
    assert graph.optimize(x, "openvino") is x and "backend 'openvino' needs the package openvino" in caplog.text
    net = mx.gluon.nn.Dense(2, in_units=3, weight_initializer="ones")
    net.initialize()
    for prepare in (lambda: net.hybridize(backend="warp", speed=9), lambda: net.optimize_for(mx.nd.ones((1, 3)), backend="warp"),
                    lambda: net.hybridize(backend="openvino")):
        caplog.clear()
        prepare()
        assert net(mx.nd.ones((1, 3))).asnumpy().tolist() == [[3, 3]] and "the graph runs without it" in caplog.text
