import pytest
import torch

import mxnet as mx
from mxnet.graph.backends import registry
from residual import lowered, trained


@pytest.mark.parametrize("variable", ["MXNET_USE_FUSION", "MXNET_EXEC_BULK_EXEC_TRAIN"])
def test_the_passes_can_be_turned_off(monkeypatch, variable):
    monkeypatch.setenv(variable, "0")
    _, net = trained(True)
    assert net._cached_op.handle.reports[True, torch.device("cpu")] == []


def test_the_passes_say_what_they_did(monkeypatch, caplog):
    monkeypatch.setenv("MXNET_FUSION_VERBOSE", "1")
    trained(True)
    assert "fusion: 1 x batch norm + add + relu" in caplog.text


class Doubling:
    name, specializes, trains, devices = "test_twice", False, False, ("cpu",)

    def compile(self, program):
        return lambda x: (2 * x,)


@pytest.fixture
def doubling():
    yield registry.register(Doubling())
    del registry.BACKENDS["test_twice"]


def test_a_backend_is_found_by_name(doubling, monkeypatch):
    assert registry.get("test_twice") is doubling
    assert registry.get("TENSORRT").name == registry.get("TensorRT").name == "tensorrt"
    assert registry.get("NONE").name == registry.get("native").name == "native"
    assert [registry.get(n) for n in ("", "MKLDNN", "onednn", "auto", "default", None)] == [None] * 6
    monkeypatch.setenv("MXNET_SUBGRAPH_BACKEND", "test_twice")
    assert registry.get() is doubling
    with pytest.raises(mx.MXNetError, match="no backend is called 'warp'; there are inductor, kernels, native, openvino, tensorrt, test_twice, auto"):
        registry.get("warp")


@pytest.mark.parametrize("missing", ["name", "compile", "specializes", "trains"])
def test_a_backend_must_have_all_of_the_protocol(missing):
    half = type("Half", (), {k: None for k in ("name", "compile", "specializes", "trains") if k != missing})()
    with pytest.raises(mx.MXNetError, match=f"a backend needs `{missing}`; <.*Half object at .*> has none"):
        registry.register(half)


def test_a_symbol_carries_its_backend_through_json():
    symbol = mx.sym.relu(mx.sym.var("x"))
    marked = registry.mark(symbol, "native", {"precision": "fp16", "limit": 3})
    assert registry.marked(mx.sym.load_json(marked.tojson())) == ("native", {"precision": "fp16", "limit": 3})
    assert registry.marked(symbol) == (None, {})
    assert registry.marked(mx.sym.Group([marked, mx.sym.var("y") + 1])) == (None, {})


def test_a_backend_says_where_it_runs(doubling):
    registry.check_device(doubling, torch.device("cpu"))
    registry.check_device(registry.get("native"), torch.device("cuda"))
    with pytest.raises(mx.MXNetError, match=r"backend 'test_twice' runs on mx.cpu\(\) only, but the graph is on cuda; move the arrays with "
                                            r"as_in_context\(mx.cpu\(\)\), or take another backend"):
        registry.check_device(doubling, torch.device("cuda"))
    assert registry.can_run(doubling, torch.device("cpu")) and not registry.can_run(doubling, torch.device("cuda"))
    doubling.available = lambda: False
    assert not registry.can_run(doubling, torch.device("cpu"))


def test_a_module_may_be_prepared_without_fusion():
    x = mx.sym.Convolution(mx.sym.var("x"), kernel=(1, 1), num_filter=4)
    network = mx.sym.relu(mx.sym.BatchNorm(x))
    assert registry.prepare(lowered(network), torch.device("cpu"), fuse=False) == [
        "layout: 1 convolutions with channels last, 1 arrays reordered before and 1 after them"]
    assert registry.prepare(lowered(network), torch.device("cpu"))[1:] == ["fusion: 1 x batch norm + relu", "kernels: 1 x convolution"]
    assert registry.prepare(lowered(network), torch.device("meta")) == []
