import pytest

import mxnet as mx
from mxnet import graph
from mxnet.graph import backends


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
    del backends._backends["test_dividing"]


def test_backends_that_come_with_it():
    assert {"native", "openvino", "inductor", "tensorrt"} <= set(backends._backends)


def test_a_backend_may_divide_and_prepare_graphs(dividing):
    x = mx.sym.var("x")
    assert graph.partition(x, "test_dividing").name == "divided"
    assert graph.optimize(x, "test_dividing", precision="float16").name == "float16"


@pytest.mark.parametrize("function", [graph.partition, graph.optimize])
def test_native_takes_a_graph_whole(function):
    x = mx.sym.var("x")
    assert function(x, "native") is x
    with pytest.raises(mx.MXNetError, match="no backend is called 'warp'"):
        function(x, "warp")
