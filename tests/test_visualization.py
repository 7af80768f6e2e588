"""print_summary and plot_network; the table is MXNet 1.9.1's."""
import math
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
        ["sum(elemwise_add)", "8x3x3", "0", "conv2"], ["mp1"], ["fc1(FullyConnected)", "10", "730", "sum"],
        ["softmax(SoftmaxOutput)", "10", "0", "fc1"], ["Total", "params:", "1002"]]
    assert lines[3].index("3x16x16") == 52 and lines[0] == "_" * 120 and lines[2] == "=" * 120 and lines[-2] == "Total params: 1002"


def test_summary_without_shapes(capsys):
    mx.viz.print_summary(network(), line_length=60)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Layer (type)              Output ShapeParam Previous Layer  "
    assert lines[5] == "conv1(Convolution)                    8     data            "
    assert lines[-2] == "Total params: 18"


def total(capsys, symbol, **shapes):
    mx.viz.print_summary(symbol, shapes)
    return int(capsys.readouterr().out.split("Total params: ")[1].split()[0])


def stacked():
    first = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="first")
    return mx.sym.Group([first, mx.sym.FullyConnected(first, num_hidden=3, name="second")])


def tied():
    weight = mx.sym.var("weight")
    first = mx.sym.FullyConnected(mx.sym.var("data"), weight, num_hidden=3, no_bias=True)
    return mx.sym.FullyConnected(first, weight, num_hidden=3, no_bias=True)


def layer(operator, **attributes):
    return getattr(mx.sym, operator)(mx.sym.var("data"), **attributes)


@pytest.mark.parametrize("make, shape, count", [
    (lambda: layer("FullyConnected", num_hidden=5), (2, 3, 4, 4), 245),
    (lambda: layer("FullyConnected", num_hidden=5, flatten=False), (2, 3, 4), 25),
    (lambda: mx.sym.FullyConnected(layer("Embedding", input_dim=20, output_dim=8), num_hidden=3), (2, 5), 283),
    (stacked, (2, 3), 24), (tied, (2, 3), 9),
    (lambda: layer("RNN", state_size=4, num_layers=2, mode="lstm"), (5, 2, 3), 304),
    (lambda: mx.rnn.LSTMCell(4).unroll(3, mx.sym.var("data"), merge_outputs=True)[0], (2, 3, 3), 144),
    (lambda: layer("Deconvolution", kernel=(3, 3), num_filter=4, num_group=2, no_bias=False), (2, 4, 5, 5), 76),
    (lambda: layer("Convolution", kernel=(3, 3), num_filter=4, layout="NHWC"), (2, 5, 5, 4), 148),
    (lambda: layer("LayerNorm"), (2, 7), 14), (lambda: layer("InstanceNorm"), (2, 7, 3, 3), 14),
    (lambda: layer("BatchNorm", axis=-1), (2, 4, 3, 7), 14),
    (lambda: layer("LeakyReLU", act_type="prelu"), (2, 4, 3, 3), 4),
    (lambda: mx.sym.FullyConnected(layer("SliceChannel", num_outputs=2)[1], num_hidden=2), (2, 6), 8),
    (lambda: mx.sym.FullyConnected(mx.sym.var("data"), mx.sym.L2Normalization(mx.sym.var("w", shape=(4, 3))), num_hidden=4), (2, 3), 16),
    (lambda: mx.sym.dot(mx.sym.var("w", shape=(4, 3)), mx.sym.var("data")), (3, 2), 12),
    (lambda: mx.sym.SoftmaxOutput(layer("FullyConnected", num_hidden=3), name="softmax"), (2, 3), 12)])
def test_summary_counts_parameters_by_their_shapes(capsys, make, shape, count):
    assert total(capsys, make(), data=shape) == count


def test_summary_of_several_inputs(capsys):
    joined = mx.sym.FullyConnected(mx.sym.Concat(mx.sym.var("x"), mx.sym.var("y"), dim=1), num_hidden=2)
    assert total(capsys, joined, x=(2, 3), y=(2, 4)) == 16
    assert total(capsys, mx.sym.CTCLoss(mx.sym.var("data"), mx.sym.var("l")), data=(5, 2, 3), l=(2, 2)) == 0


@pytest.mark.parametrize("name", ["alexnet", "vgg11_bn", "squeezenet1.1", "resnet18_v2", "mobilenetv2_0.25", "densenet121", "inceptionv3"])
def test_summary_counts_the_parameters_of_the_model_zoo(capsys, name):
    symbol = mx.gluon.model_zoo.vision.get_model(name)(mx.sym.var("data"))
    shape = (1, 3, 299, 299) if name == "inceptionv3" else (1, 3, 224, 224)
    shapes = symbol.infer_shape(data=shape)[0]
    expected = sum(math.prod(s) for n, s in zip(symbol.list_arguments(), shapes) if n != "data")
    assert total(capsys, symbol, data=shape) == expected


def test_summary_errors():
    with pytest.warns(UserWarning, match="leave those"), pytest.raises(ValueError, match="Input shape is incomplete: {'data2': "):
        mx.viz.print_summary(mx.sym.FullyConnected(mx.sym.Concat(mx.sym.var("data"), mx.sym.var("data2")), num_hidden=2), {"data2": (1, 2)})
    with pytest.raises(TypeError, match="symbol must be a Symbol, received int"):
        mx.viz.print_summary(3)


def test_drawing():
    pytest.importorskip("graphviz")
    source = mx.viz.plot_network(network(), shape={"data": (1, 3, 16, 16)}).source
    assert '"Convolution\n3x3/2x2, 8"' in source and "conv1_weight" not in source and "8x7x7" in source
    assert "conv1_weight" in mx.viz.plot_network(network(), hide_weights=False).source


def test_boxes_are_as_large_as_their_labels():
    pytest.importorskip("graphviz")
    source = mx.viz.plot_network(network(), node_attrs={"fillcolor": "white", "width": "2"}).source
    assert "fixedsize" not in source and "rounded,filled" in source and "width=2" in source
    assert "fixedsize=true" in mx.viz.plot_network(network(), node_attrs={"fixedsize": "true"}).source


def test_drawing_needs_graphviz(monkeypatch):
    monkeypatch.setitem(sys.modules, "graphviz", None)
    with pytest.raises(ImportError, match="requires graphviz library"):
        mx.viz.plot_network(network())
