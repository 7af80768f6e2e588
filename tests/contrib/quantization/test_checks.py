"""Input that quantization cannot use: each is an error that says so, or a warning where it has no effect."""
import re

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon, nd, sym
from mxnet.contrib import quantization
from mxnet.gluon import nn

DATA = nd.array(np.linspace(0, 1, 96).reshape((2, 3, 4, 4)))


@pytest.fixture
def net():
    """A network and its parameters."""
    conv = sym.Convolution(sym.var("data"), num_filter=2, kernel=(3, 3), name="conv")
    made = sym.FullyConnected(sym.Activation(conv, act_type="relu", name="relu"), num_hidden=3, name="fc")
    shapes = {"conv_weight": (2, 3, 3, 3), "conv_bias": (2,), "fc_weight": (3, 8), "fc_bias": (3,)}
    return made, {n: nd.array(np.linspace(-1, 1, int(np.prod(s))).reshape(s)) for n, s in shapes.items()}


@pytest.fixture
def block():
    """A Gluon network of the same kind."""
    made = nn.HybridSequential(prefix="net_")
    with made.name_scope():
        made.add(nn.Conv2D(2, 3, in_channels=3), nn.BatchNorm(in_channels=2), nn.Activation("relu"), nn.Dense(3, in_units=8))
    made.initialize(mx.init.Uniform(.5))
    return made


def quantized(net, function=quantization.quantize_model, **more):
    return function(*net, {}, label_names=None, **{"calib_mode": "naive", "calib_data": mx.io.NDArrayIter(DATA, batch_size=2), **more})


BOTH = pytest.mark.parametrize("function", [quantization.quantize_model, quantization.quantize_model_mkldnn])


@BOTH
@pytest.mark.parametrize("more, error, match", [
    ({"excluded_sym_names": [3]}, ValueError, "`excluded_sym_names` must be a list of names, received one with 3 of type int"),
    ({"excluded_op_names": "Convolution"}, ValueError, "`excluded_op_names` must be a list of names, received 'Convolution' of type str"),
    ({"ctx": [mx.cpu()]}, ValueError, r"calibration runs on a single ctx, received \[cpu\(0\)\] of type list"),
    ({"num_calib_examples": 0}, ValueError, "`num_calib_examples` must be at least 1, or None for all, received 0"),
    ({"num_calib_examples": "all"}, TypeError, "`num_calib_examples` must be an integer, or None for all, received 'all'"),
    ({"calib_data": mx.io.NDArrayIter(nd.ones((2, 2, 4, 4)), batch_size=2)}, mx.MXNetError,
     r"'conv_weight': the given value has shape \(2, 3, 3, 3\), the network needs \(2, 2, 3, 3\)"),
    ({"calib_data": mx.io.NDArrayIter({"images": DATA}, batch_size=2)}, ValueError, "data_names=\\['data'\\]"),
])
def test_arguments(net, function, more, error, match):
    with pytest.raises(error, match=match):
        quantized(net, function, **more)


@BOTH
def test_what_is_no_network(net, function):
    with pytest.raises(ValueError, match="`sym` must be a Symbol, received 'net.json' of type str; mx.sym.load reads one"):
        quantized(("net.json", net[1]), function)
    with pytest.raises(ValueError, match="`arg_params` must be a dict of NDArrays by name, received NoneType"):
        quantized((net[0], None), function)
    net[1]["fc_bias"] = np.zeros(3)
    with pytest.raises(ValueError, match="parameter 'fc_bias' must be an NDArray, received ndarray; mx.nd.array makes one"):
        quantized(net, function)


@BOTH
@pytest.mark.parametrize("mode", ["none", "naive"])
@pytest.mark.parametrize("name", ["conv_weight", "conv_bias", "fc_weight", "fc_bias"])
def test_parameters(net, function, mode, name):
    good = net[1][name]
    net[1][name] = good.astype("float16")
    with pytest.raises(mx.MXNetError, match=f"parameter '{name}' is float16: float32 is what can be quantized; cast the network before"):
        quantized(net, function, calib_mode=mode)
    for bad in ("nan", "inf"):
        net[1][name] = good.copy()
        net[1][name].reshape((-1,))[1] = float(bad)
        with pytest.raises(mx.MXNetError, match=f"parameter '{name}' has values from .*{bad}, which no integers can stand for"):
            quantized(net, function, calib_mode=mode)
    net[1].pop(name)
    with pytest.raises((mx.MXNetError, ValueError), match=f"'{name}' is not presented|key `{name}` is missing"):
        made, params, _ = quantized(net, function, calib_mode=mode)
        made.bind(mx.cpu(), {**params, "data": DATA})


def test_a_graph_quantized_twice(net, block):
    for function in (quantization.quantize_model, quantization.quantize_model_mkldnn):
        made, params, _ = quantized(net, function)
        with pytest.raises(mx.MXNetError, match="the graph is quantized already: node 'data_quantize' is _contrib_quantize_v2"):
            quantized((made, params), function)
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(DATA, nd.zeros(2)), 2)
    once = quantization.quantize_net_v2(block, calib_data=loader, calib_mode="naive")
    with pytest.raises(mx.MXNetError, match="the graph is quantized already"):
        quantization.quantize_net_v2(once, calib_data=loader, calib_mode="naive")


def test_names_that_name_nothing(net, block):
    with pytest.warns(UserWarning, match="'fc1' is to be excluded, but nothing in the network is called so"):
        made, _, _ = quantized(net, excluded_sym_names=["fc1", "fc"])
    assert "quantized_fc" not in made.tojson() and "quantized_conv" in made.tojson()
    with pytest.warns(UserWarning, match="'Convolutions' is to be excluded: .*not registered; did you mean 'Convolution'"):
        made, _, _ = quantized(net, excluded_op_names=["Convolutions", "FullyConnected"])
    assert "quantized_fc" not in made.tojson() and "quantized_conv" in made.tojson()
    with pytest.warns(UserWarning, match="layers with 'batchnorms' in their names are to be excluded, but the network has none"):
        quantization.quantize_net_v2(block, calib_data=[DATA], calib_mode="naive", exclude_layers_match=["batchnorms"])


@BOTH
def test_an_excluded_operator_takes_what_is_fused_with_it_along(net, function):
    made, params, _ = quantized(net, function, excluded_op_names=["Convolution"])
    assert "conv_weight" in params and "fc_weight_quantize" in params
    assert made.attr_dict().get("quantized_sg_mkldnn_conv_act_0") is None


def test_uint8_has_no_negative_numbers(net):
    expected = net[0].bind(mx.cpu(), {**net[1], "data": DATA}).forward()[0].asnumpy()
    assert expected.min() < 0
    with pytest.warns(UserWarning, match=r"uint8 holds nothing below zero, which is lost in requantize_conv \(from -.*\), requantize_fc \(from -"):
        quantized(net, quantized_dtype="uint8")
    # Fused layers have a type of their own.
    made, params, _ = quantized(net, quantization.quantize_model_mkldnn, quantized_dtype="uint8")
    assert abs(made.bind(mx.cpu(), {**params, "data": DATA}).forward()[0].asnumpy() - expected).max() < .03 * abs(expected).max()


@pytest.mark.parametrize("ends, match", [
    ((float("nan"), 1), "the range of 'fc_output' is from nan to 1.0: its values overflow or are no numbers"),
    ((0, float("inf")), "the range of 'fc_output' is from 0.0 to inf"),
    ((1,), r"the range of 'fc_output' must be two numbers, \(low, high\), received \(1,\)"),
    ((1, 2, 3), r"must be two numbers, \(low, high\), received \(1, 2, 3\)"),
    (("0", "1"), r"must be two numbers, \(low, high\), received \('0', '1'\)"),
    (None, "must be two numbers, .low, high., received None"),
])
def test_ranges_of_the_callers(net, ends, match):
    made, _, _, collector = quantization.quantize_graph(*net, {}, calib_mode="naive")
    collector.min_max_dict = {"data": (0, 1), "conv_output": (-2, 2), "fc_output": ends}
    with pytest.raises(mx.MXNetError, match=match):
        quantization.calib_graph(made, net[1], {}, collector, "naive")


def test_graphs_and_collectors(net):
    made, _, _, collector = quantization.quantize_graph(*net, {}, calib_mode="naive")
    with pytest.raises(ValueError, match="unknown quantized_dtype int4 received"):
        quantization.calib_graph(made, net[1], {}, collector, "naive", "int4")
    collector.min_max_dict = {"data": (0, 1)}
    with pytest.raises(mx.MXNetError, match="the graph has nothing to calibrate; give the one that quantize_graph returned"):
        quantization.calib_graph(net[0], net[1], {}, collector, "naive")
    with pytest.raises(ValueError, match=r"a collector has a method `collect\(name, array\)`, received 3 of type int, which has none"):
        quantization.quantize_graph(*net, {}, calib_mode="customize", LayerOutputCollector=3)


@pytest.mark.parametrize("more, error, match", [
    ({"calib_data": ["a"]}, mx.MXNetError, "a batch of the data is an array, or a list of arrays, received 'a'"),
    ({"calib_data": [nd.ones((2, 2, 4, 4))]}, mx.MXNetError, r"Convolution's weight: expected shape \(2, 2, 3, 3\), received \(2, 3, 3, 3\)"),
    ({"calib_data": [DATA, DATA[:, :2]]}, mx.MXNetError, r"Convolution's weight: expected shape \(2, 2, 3, 3\), received \(2, 3, 3, 3\)"),
    ({"data_shapes": (2, 3, 4, 4)}, ValueError, r"`data_shapes` must be a list of DataDesc, or of \(name, shape\), received 2 in it"),
    ({"exclude_layers": "conv"}, ValueError, "`exclude_layers` must be a list of names, received 'conv' of type str"),
    ({"exclude_layers_match": [3]}, ValueError, "`exclude_layers_match` must be a list of names, received one with 3 of type int"),
    ({"exclude_operators": "Pooling"}, ValueError, "`exclude_operators` must be a list of names, received 'Pooling' of type str"),
    ({"ctx": "cpu"}, ValueError, "calibration runs on a single ctx, received 'cpu' of type str"),
    ({"num_calib_examples": -1}, ValueError, "`num_calib_examples` must be at least 1, or None for all, received -1"),
    ({"quantize_granularity": "row"}, ValueError, "unknown quantize_granularity row received"),
])
def test_arguments_for_a_block(block, more, error, match):
    with pytest.raises(error, match=match):
        quantization.quantize_net_v2(block, **{"calib_data": [DATA], "calib_mode": "naive", **more})


def test_blocks(block):
    plain = nn.Sequential()
    with pytest.raises(ValueError, match="`network` must be a HybridBlock, whose graph is known, received Sequential"):
        quantization.quantize_net_v2(plain, calib_data=[DATA])
    block[1].running_var.data()[:] = float("nan")
    with pytest.raises(mx.MXNetError, match="parameter 'net_batchnorm0_running_var' has values from nan to nan"):
        quantization.quantize_net_v2(block, calib_data=[DATA])
    block.cast("float64")
    with pytest.raises(mx.MXNetError, match="parameter 'net_conv0_weight' is float64: float32 is what can be quantized"):
        quantization.quantize_net_v2(block, calib_data=[DATA.astype("float64")])


def test_a_block_that_has_nothing_to_quantize():
    made = quantization.quantize_net_v2(nn.HybridLambda(lambda F, x: F.sin(x)), calib_data=[DATA], calib_mode="naive")
    assert (made(DATA).asnumpy() == nd.sin(DATA).asnumpy()).all()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name, change, match", [
    ("arg:net_conv0_weight", lambda v: v.astype("int8"), "`weight` must be float32, received int8"),
    ("arg:net_conv0_bias", lambda v: v * float("nan"), "its weights are infinite or no numbers, or become so as the batch norm is folded into them"),
    ("aux:net_batchnorm0_running_var", lambda v: v - 2, "its weights are infinite or no numbers"),
    ("arg:net_dense0_weight_quantize", lambda v: v.astype("uint8"), "`weight` must be int8, received uint8"),
    ("arg:net_dense0_weight_quantize_min", lambda v: v * float("inf"), "the range of `weight` is from -inf to .*, which no integers can stand for"),
    ("arg:net_dense0_bias_quantize_max", lambda v: v.astype("uint8"), "the ends of the range of `bias` must be one float32 number each"),
])
def test_files_with_wrong_parameters(block, tmp_path, compiled, name, change, match):
    made = quantization.quantize_net_v2(block, calib_data=[DATA], calib_mode="naive")
    made.hybridize()
    made(DATA)
    made.export(str(tmp_path / "net"))
    symbol, params = str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0000.params")
    arrays = nd.load(params)
    nd.save(params, {**arrays, name: change(arrays[name])})
    read = gluon.SymbolBlock.imports(symbol, ["data"], params)
    if compiled:
        read.hybridize(static_alloc=True, static_shape=True)
    with pytest.raises(mx.MXNetError, match=match):
        read(DATA).asnumpy()
    nd.save(params, {k: v for k, v in arrays.items() if k != name})
    with pytest.raises(mx.MXNetError, match=f"lacks Parameter '{name[4:]}'"):
        gluon.SymbolBlock.imports(symbol, ["data"], params)


@pytest.mark.parametrize("end", ["nan", "inf", "-inf", "some"])
def test_files_with_wrong_ranges(net, end):
    made, _, _ = quantized(net)
    text = re.sub('"max_calib_range": "[^"]*"', f'"max_calib_range": "{end}"', made.tojson(), count=1)
    with pytest.raises(mx.MXNetError, match=f"node 'data_quantize': .*`max_calib_range` must be a number from .* or None, received '{end}'"):
        sym.load_json(text)


@pytest.mark.parametrize("name, change, match", [
    ("conv_weight_quantize", lambda v: v.astype("float32"), "`weight` must be int8, received float32"),
    ("conv_weight_quantize_min", lambda v: v * float("nan"), "the range of `weight` is from nan to .*, which no integers can stand for"),
    ("fc_bias_quantize_max", lambda v: v.astype("int32"), "the ends of the range of `bias` must be one float32 number each, received int32"),
])
def test_wrong_parameters_of_a_quantized_symbol(net, name, change, match):
    made, params, _ = quantized(net)
    executor = made.bind(mx.cpu(), {**params, name: change(params[name]), "data": DATA})
    with pytest.raises(mx.MXNetError, match=match):
        executor.forward()[0].asnumpy()
    with pytest.raises(ValueError, match=f"key `{name}` is missing"):
        made.bind(mx.cpu(), {**{k: v for k, v in params.items() if k != name}, "data": DATA})
