"""Fused graphs; nodes, names, attributes and inputs are those that MXNet 1.9.1 makes of the same graphs."""
import json

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd, sym
from mxnet.contrib import quantization


def network():
    data = sym.var("data")
    first = sym.Activation(sym.BatchNorm(conv(data, "conv0", no_bias=True), fix_gamma=False, name="bn0"), act_type="relu", name="relu0")
    second = sym.BatchNorm(conv(first, "conv1"), fix_gamma=False, name="bn1")
    both = sym.Activation(sym.elemwise_add(first, second, name="sum"), act_type="relu", name="relu1")
    pooled = sym.Pooling(both, kernel=(2, 2), stride=(2, 2), name="pool")
    clipped = sym.clip(conv(pooled, "conv3", num_filter=4), a_min=0, a_max=6, name="clip")
    joined = sym.Dropout(sym.concat(conv(pooled, "conv2"), clipped, dim=1, name="cc"), name="drop")
    hidden = sym.Activation(sym.FullyConnected(joined, num_hidden=16, name="fc1"), act_type="relu", name="relu2")
    return sym.softmax(sym.FullyConnected(hidden, num_hidden=10, name="fc2"), name="sm")


def conv(data, name, num_filter=8, **more):
    return sym.Convolution(data, num_filter=num_filter, kernel=(3, 3), pad=(1, 1), name=name, **more)


def described(net):
    return [(n.op.name, n.name, {k: v for k, v in n.attrs.items() if "_" in k}, [c.name for c, _ in n.inputs if c.op]) for n in net._nodes() if n.op]


@pytest.fixture
def trained():
    random = np.random.RandomState(0)
    net = network()
    shapes, _, aux = net.infer_shape(data=(4, 3, 8, 8))
    args = {n: nd.array(random.normal(0, .4, s)) for n, s in zip(net.list_arguments(), shapes) if n != "data"}
    return net, args, {n: nd.array(random.uniform(.5, 1.5, s)) for n, s in zip(net.list_auxiliary_states(), aux)}, nd.array(
        random.uniform(-1, 1, (4, 3, 8, 8)))


def run(net, args, aux, data):
    return net.bind(mx.cpu(), {**args, "data": data}, aux_states=aux).forward()[0].asnumpy()


@pytest.mark.parametrize("backend", ["MKLDNN", "ONEDNN_QUANTIZE"])
def test_layers_get_what_follows_them(backend, trained):
    net, *arrays = trained
    fused = net.get_backend_symbol(backend)
    assert described(fused) == [
        ("_sg_mkldnn_conv", "sg_mkldnn_conv_bn_act_0", {"with_bn": "true", "with_act": "true"}, []),
        ("_sg_mkldnn_conv", "sg_mkldnn_conv_bn_add_act_1", {"with_bn": "true", "with_sum": "true", "with_postsum_act": "true"},
         ["sg_mkldnn_conv_bn_act_0", "sg_mkldnn_conv_bn_act_0"]),
        ("Pooling", "pool", {}, ["sg_mkldnn_conv_bn_add_act_1"]),
        ("_sg_mkldnn_conv", "sg_mkldnn_conv_2", {}, ["pool"]),
        ("_sg_mkldnn_conv", "sg_mkldnn_conv_act_3", {"with_act": "true"}, ["pool"]),
        ("Concat", "cc", {"num_args": "2"}, ["sg_mkldnn_conv_2", "sg_mkldnn_conv_act_3"]),
        ("_sg_mkldnn_fully_connected", "sg_mkldnn_fully_connected_eltwise_0", {"with_eltwise": "True"}, ["cc"]),
        ("_sg_mkldnn_fully_connected", "sg_mkldnn_fully_connected_1", {}, ["sg_mkldnn_fully_connected_eltwise_0"]),
        ("softmax", "sm", {}, ["sg_mkldnn_fully_connected_1"])]
    assert fused.list_arguments() == net.list_arguments() and fused.list_auxiliary_states() == net.list_auxiliary_states()
    assert np.allclose(run(fused, *arrays), run(net, *arrays), atol=1e-6)
    assert fused.infer_shape(data=(4, 3, 8, 8)) == net.infer_shape(data=(4, 3, 8, 8))


def test_what_a_node_stands_for():
    """What is added stands last, also where it came first; the names of the graph's inputs count how often one is used."""
    fused = network().get_backend_symbol("MKLDNN")
    inner = json.loads(fused.tojson())["nodes"][13]["subgraphs"][0]["nodes"]
    assert [n["name"] for n in inner] == [
        "sg_mkldnn_conv_bn_act_0_output1", "conv1_weight0", "conv1_bias0", "conv1", "bn1_gamma0", "bn1_beta0", "bn1_moving_mean0", "bn1_moving_var0",
        "bn1", "sg_mkldnn_conv_bn_act_0_output0", "sum", "relu1"]
    assert sym.load_json(fused.tojson()).tojson() == fused.tojson()


def test_what_is_used_elsewhere_ends_a_node():
    data = sym.var("data")
    norm = sym.BatchNorm(conv(data, "conv"), name="bn")
    assert [n for _, n, *_ in described((sym.relu(norm) + sym.Pooling(norm, kernel=(1, 1), name="pool")).get_backend_symbol("MKLDNN"))][0] == \
        "sg_mkldnn_conv_bn_0"
    both = sym.Group([norm, sym.Activation(norm, act_type="relu", name="relu")]).get_backend_symbol("MKLDNN")  # an output of the network is used, too
    assert [n for _, n, *_ in described(both)] == ["sg_mkldnn_conv_bn_0", "relu"]
    single = conv(data, "conv")
    assert [n for _, n, *_ in described(sym.elemwise_add(single, single, name="sum").get_backend_symbol("MKLDNN"))] == ["sg_mkldnn_conv_0", "sum"]


@pytest.mark.parametrize("kind, backend, fuses", [("tanh", "MKLDNN", True), ("tanh", "MKLDNN_QUANTIZE", False), ("softsign", "MKLDNN", False)])
def test_which_activations(kind, backend, fuses):
    net = sym.Activation(sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc"), act_type=kind, name="act").get_backend_symbol(backend)
    assert [n for _, n, *_ in described(net)] == (["sg_mkldnn_fully_connected_eltwise_0"] if fuses else ["sg_mkldnn_fully_connected_0", "act"])


@pytest.mark.parametrize("variable, names", [
    ("MXNET_DISABLE_MKLDNN_FUSE_CONV_BN", ["sg_mkldnn_conv_0", "bn", "relu", "sg_mkldnn_fully_connected_eltwise_0"]),
    ("MXNET_DISABLE_MKLDNN_FUSE_CONV_RELU", ["sg_mkldnn_conv_bn_0", "relu", "sg_mkldnn_fully_connected_eltwise_0"]),
    ("MXNET_DISABLE_MKLDNN_CONV_OPT", ["conv", "bn", "relu", "sg_mkldnn_fully_connected_eltwise_0"]),
    ("MXNET_DISABLE_MKLDNN_FC_OPT", ["sg_mkldnn_conv_bn_act_0", "fc", "abs"]),
    ("MXNET_DISABLE_MKLDNN_FUSE_FC_ELTWISE", ["sg_mkldnn_conv_bn_act_0", "sg_mkldnn_fully_connected_0", "abs"])])
def test_what_is_turned_off(monkeypatch, variable, names):
    monkeypatch.setenv(variable, "1")
    hidden = sym.Activation(sym.BatchNorm(conv(sym.var("data"), "conv"), name="bn"), act_type="relu", name="relu")
    net = sym.abs(sym.FullyConnected(hidden, num_hidden=2, name="fc"), name="abs")
    assert [n for _, n, *_ in described(net.get_backend_symbol("MKLDNN"))] == names


def quantized(trained, **more):
    net, args, aux, data = trained
    made, found, _ = quantization.quantize_model(net.get_backend_symbol("MKLDNN_QUANTIZE"), args, aux, label_names=None, calib_mode="naive",
                                                 calib_data=mx.io.NDArrayIter(data, batch_size=4), quantize_mode="full", **more)
    return made, found, made.get_backend_symbol("MKLDNN_QUANTIZE")


def test_integers_go_from_layer_to_layer(trained):
    before, args, after = quantized(trained, quantized_dtype="auto")
    assert [n.split("_sg_mkldnn_")[-1] for _, n, *_ in described(before)] == [
        "data_quantize", "conv_bn_act_0", "conv_bn_act_0", "conv_bn_add_act_1", "conv_bn_add_act_1", "quantized_pool", "conv_2", "conv_2",
        "conv_act_3", "conv_act_3", "quantized_cc", "fully_connected_eltwise_0", "fully_connected_eltwise_0", "fully_connected_1",
        "fully_connected_1",
        "sg_mkldnn_fully_connected_1_dequantize", "sm"]
    assert [n.split("_sg_mkldnn_")[-1] for _, n, *_ in described(after)] == [
        "data_quantize", "conv_bn_act_0", "conv_bn_add_act_1", "quantized_pool", "conv_2", "conv_act_3", "quantized_cc", "fully_connected_eltwise_0",
        "fully_connected_1", "sm"]
    attrs = after.attr_dict()
    conv2, conv3 = (attrs[f"quantized_sg_mkldnn_conv_{n}"] for n in ("2", "act_3"))
    for end in ("min_calib_range", "max_calib_range"):  # what is concatenated has one range
        assert conv2[end] == conv3[end]
    last = attrs["quantized_sg_mkldnn_fully_connected_1"]
    assert last["enable_float_output"] == "True" and "min_calib_range" not in last
    net, _, aux, data = trained
    assert abs(run(after, args, aux, data) - run(*trained)).max() < .1


@pytest.mark.parametrize("variable, last", [
    ("MXNET_DISABLE_MKLDNN_QFC_FUSE_ALL",
     ["quantized_sg_mkldnn_fully_connected_0", "requantize_sg_mkldnn_fully_connected_0", "sg_mkldnn_fully_connected_0_dequantize"]),
    ("MXNET_DISABLE_MKLDNN_QFC_FLOAT_OUTPUT", ["quantized_sg_mkldnn_fully_connected_0", "sg_mkldnn_fully_connected_0_dequantize"]),
    ("MXNET_DISABLE_MKLDNN_QEM_FUSE_ALL", ["quantized_mul", "requantize_mul", "mul_dequantize"]),
    ("MXNET_DISABLE_MKLDNN_QEM_FLOAT_OUTPUT", ["quantized_mul", "mul_dequantize"]),
    ("MXNET_DISABLE_MKLDNN_QTRANSFORMER_FUSE_ALL",
     ["quantized_sg_mkldnn_selfatt_qk_0", "requantize_sg_mkldnn_selfatt_qk_0", "sg_mkldnn_selfatt_qk_0_dequantize"]),
    ("MXNET_DISABLE_MKLDNN_QTRANSFORMER_FLOAT_OUTPUT", ["quantized_sg_mkldnn_selfatt_qk_0", "sg_mkldnn_selfatt_qk_0_dequantize"])])
def test_what_returns_real_numbers(monkeypatch, variable, last):
    data = sym.var("data")
    kinds = {"QFC": sym.FullyConnected(data, num_hidden=3, flatten=False, name="fc"), "QEM": sym.elemwise_mul(data, data, name="mul"),
             "QTR": sym.contrib.interleaved_matmul_selfatt_qk(data, heads=1)}
    kind = variable.removeprefix("MXNET_DISABLE_MKLDNN_")[:3]
    net = kinds[kind].get_backend_symbol("MKLDNN_QUANTIZE")
    params = {"fc_weight": nd.ones((3, 6)), "fc_bias": nd.ones(3)} if kind == "QFC" else {}
    made, *_ = quantization.quantize_model(net, params, {}, label_names=None, calib_mode="none", quantize_mode="full")
    table = {name: (-1, 1) for name in ("mul_output", *net.list_outputs())}
    made = quantization._calibrate_quantized_sym(made, table)
    assert len(described(made.get_backend_symbol("MKLDNN_QUANTIZE"))) == 2
    monkeypatch.setenv(variable, "1")
    assert [n for _, n, *_ in described(made.get_backend_symbol("MKLDNN_QUANTIZE"))][1:] == last


def test_a_range_for_each_channel(trained):
    _, args, after = quantized(trained, quantize_granularity="channel-wise")
    assert args["fc1_weight"].dtype == np.float32 and after.attr_dict()["quantized_sg_mkldnn_fully_connected_1"]["channel_wise_quantize"] == "True"
    net, _, aux, data = trained
    assert abs(run(after, args, aux, data) - run(*trained)).max() < .1


def test_attention():
    """Values are MXNet's."""
    qkv = sym.var("qkv")
    scores = sym.softmax(sym.contrib.interleaved_matmul_selfatt_qk(qkv, heads=2, name="qk"), name="scores")
    net = sym.contrib.interleaved_matmul_selfatt_valatt(qkv, scores, heads=2, name="va").get_backend_symbol("MKLDNN_QUANTIZE")
    assert [(k, n) for k, n, *_ in described(net)] == [
        ("_sg_mkldnn_selfatt_qk", "sg_mkldnn_selfatt_qk_0"), ("softmax", "scores"), ("_sg_mkldnn_selfatt_valatt", "sg_mkldnn_selfatt_valatt_1")]
    assert net.attr_dict()["sg_mkldnn_selfatt_qk_0"] == {"heads": "2", "quantized": "False", "enable_float_output": "False"}
    assert sym.load_json(net.tojson()).tojson() == net.tojson()
    data = nd.array(np.random.RandomState(3).uniform(-1, 1, (6, 2, 24)))
    expected = net.bind(mx.cpu(), {"qkv": data}).forward()[0].asnumpy()
    made, args, _ = quantization.quantize_model(net, {}, {}, ["qkv"], None, calib_mode="naive", quantize_mode="full",
                                                calib_data=mx.io.NDArrayIter({"qkv": data}, batch_size=6))
    made = made.get_backend_symbol("MKLDNN_QUANTIZE")
    assert [n for _, n, *_ in described(made)] == ["qkv_quantize", "quantized_sg_mkldnn_selfatt_qk_0", "scores", "scores_output_quantize",
                                                   "quantized_sg_mkldnn_selfatt_valatt_1"]
    assert abs(made.bind(mx.cpu(), {"qkv": data}).forward()[0].asnumpy() - expected).max() < .02


def test_sums_are_left_alone(monkeypatch):
    monkeypatch.setenv("MXNET_DISABLE_MKLDNN_FUSE_CONV_SUM", "1")
    net = sym.elemwise_add(conv(sym.var("data"), "conv"), sym.var("other"), name="sum").get_backend_symbol("MKLDNN")
    assert [n for _, n, *_ in described(net)] == ["sg_mkldnn_conv_0", "sum"]


def test_attention_is_left_alone(monkeypatch):
    monkeypatch.setenv("MXNET_DISABLE_MKLDNN_TRANSFORMER_OPT", "1")
    net = sym.contrib.interleaved_matmul_selfatt_qk(sym.var("qkv"), heads=2, name="qk").get_backend_symbol("MKLDNN")
    assert [n for _, n, *_ in described(net)] == ["qk"]


def test_blocks_are_optimized_for_it(trained):
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(4, 3), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Activation("relu"))
    net.initialize()
    data = nd.ones((1, 3, 8, 8))
    expected = net(data).asnumpy()
    net.optimize_for(data, backend="MKLDNN")
    assert np.allclose(net(data).asnumpy(), expected, atol=1e-6)


@pytest.mark.parametrize("backend", ["native", "openvino"])
@pytest.mark.parametrize("main, shortcut", [(1, 1), (1, -.5), (.2, 1)])
def test_a_sum_with_signed_integers_uses_all_of_its_range(main, shortcut, backend):
    """MXNet stores it as int8 where the sum is unsigned: it cuts off at half of the calibrated range (0.994 for 2)."""
    data = sym.var("data")
    layers = [sym.Convolution(data, kernel=(1, 1), num_filter=4, no_bias=True, name=name) for name in ("main", "shortcut")]
    net = sym.Activation(sym.elemwise_add(*layers), act_type="relu").get_backend_symbol("MKLDNN")
    args = {f"{name}_weight": nd.array(np.eye(4).reshape(4, 4, 1, 1) * factor) for name, factor in (("main", main), ("shortcut", shortcut))}
    x = np.linspace(-1, 1, 256).reshape(1, 4, 8, 8)
    quantized, args, _ = quantization.quantize_model(net, args, {}, calib_mode="naive", calib_data=mx.io.NDArrayIter(nd.array(x), batch_size=1),
                                                     quantized_dtype="auto", label_names=None)
    block = mx.gluon.SymbolBlock(quantized, data)
    for name, parameter in block.collect_params().items():
        parameter._load_init(args[name], mx.cpu())
    block.hybridize(backend=backend)
    expected = np.maximum(x * (main + shortcut), 0)
    out = [block(nd.array(x)).asnumpy() for _ in range(2)][1]
    assert abs(out - expected).max() < 0.015 * max(expected.max(), 1)
