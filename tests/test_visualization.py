"""print_summary and plot_network; the table is MXNet 1.9.1's."""
import sys

import pytest

import mxnet as mx


def network():
    net = mx.sym.Convolution(mx.sym.var("data"), name="conv1", num_filter=8, kernel=(3, 3), stride=(2, 2))
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="bn1"), name="relu1", act_type="relu")
    pool = mx.sym.Pooling(net, name="mp1", kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = mx.sym.Convolution(pool, name="conv2", num_filter=8, kernel=(1, 1), no_bias=True, num_group=2)
    net = mx.sym.elemwise_add(net, pool, name="sum")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, name="fc1", num_hidden=10), name="softmax")


def test_summary_with_shapes(capsys):
    mx.viz.print_summary(network(), {"data": (1, 3, 16, 16)})
    lines = capsys.readouterr().out.splitlines()
    assert {len(line) for line in lines if not line.startswith("Total")} == {120}
    assert [line.split() for line in lines if not line.startswith(("_", "="))] == [
        ["Layer", "(type)", "Output", "Shape", "Param", "#", "Previous", "Layer"],
        ["data(null)", "3x16x16", "0"], ["conv1(Convolution)", "8x7x7", "224", "data"], ["bn1(BatchNorm)", "8x7x7", "16", "conv1"],
        ["relu1(Activation)", "8x7x7", "0", "bn1"], ["mp1(Pooling)", "8x3x3", "0", "relu1"], ["conv2(Convolution)", "8x3x3", "32", "mp1"],
        ["sum(elemwise_add)", "8x3x3", "0", "conv2"], ["mp1"], ["fc1(FullyConnected)", "10", "90", "sum"],
        ["softmax(SoftmaxOutput)", "10", "0", "fc1"], ["Total", "params:", "362"]]
    assert lines[3].index("3x16x16") == 52 and lines[0] == "_" * 120 and lines[2] == "=" * 120 and lines[-2] == "Total params: 362"


def test_summary_without_shapes(capsys):
    mx.viz.print_summary(network(), line_length=60)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Layer (type)              Output ShapeParam Previous Layer  "
    assert lines[5] == "conv1(Convolution)                    8     data            "
    assert lines[-2] == "Total params: 18"


def test_summary_errors():
    with pytest.raises(TypeError, match="symbol must be a Symbol, received int"):
        mx.viz.print_summary(3)


def test_drawing():
    pytest.importorskip("graphviz")
    source = mx.viz.plot_network(network(), shape={"data": (1, 3, 16, 16)}).source
    assert '"Convolution\n3x3/2x2, 8"' in source and "conv1_weight" not in source and "8x7x7" in source
    assert "conv1_weight" in mx.viz.plot_network(network(), hide_weights=False).source


def test_drawing_needs_graphviz(monkeypatch):
    monkeypatch.setitem(sys.modules, "graphviz", None)
    with pytest.raises(ImportError, match="requires graphviz library"):
        mx.viz.plot_network(network())
