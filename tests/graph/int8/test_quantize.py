"""Graphs on integers; nodes, names and inputs are those that MXNet 1.9.1 makes of the same graphs."""
import pytest

import mxnet as mx
from mxnet import sym
from mxnet.graph.int8 import quantize
from mxnet.symbol import Symbol


def nodes(outputs):
    """(operator, name, inputs) of each node but the variables."""
    return [(n.op.name.removeprefix("_contrib_"), n.name, [c.name + (f"[{i}]" if i else "") for c, i in n.inputs])
            for n in Symbol(outputs)._nodes() if n.op]


def residual():
    data = sym.var("data")
    conv = sym.Convolution(data, num_filter=4, kernel=(1, 1), no_bias=True, name="conv")
    total = sym.elemwise_add(sym.BatchNorm(conv, name="bn"), data, name="sum")
    return sym.Activation(sym.FullyConnected(sym.Flatten(total, name="flat"), num_hidden=3, name="fc"), act_type="tanh", name="tanh")


def test_operators_on_integers_follow_one_another():
    made, layers = quantize.quantize(residual().handle, ["conv_weight", "fc_weight", "fc_bias"], "auto")
    assert nodes(made) == [
        ("quantize_v2", "data_quantize", ["data"]),
        ("quantized_conv", "quantized_conv", ["data_quantize", "conv_weight_quantize", "data_quantize[1]", "data_quantize[2]",
                                              "conv_weight_quantize_min", "conv_weight_quantize_max"]),
        ("requantize", "requantize_conv", ["quantized_conv", "quantized_conv[1]", "quantized_conv[2]"]),
        ("quantized_batch_norm", "quantized_bn", ["requantize_conv", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var", "requantize_conv[1]",
                                                  "requantize_conv[2]"]),
        ("quantized_elemwise_add", "quantized_sum", ["quantized_bn", "data_quantize", "quantized_bn[1]", "quantized_bn[2]", "data_quantize[1]",
                                                     "data_quantize[2]"]),
        ("requantize", "requantize_sum", ["quantized_sum", "quantized_sum[1]", "quantized_sum[2]"]),
        ("quantized_flatten", "quantized_flat", ["requantize_sum", "requantize_sum[1]", "requantize_sum[2]"]),
        ("quantized_fully_connected", "quantized_fc", [
            "quantized_flat", "fc_weight_quantize", "fc_bias_quantize", "quantized_flat[1]", "quantized_flat[2]", "fc_weight_quantize_min",
            "fc_weight_quantize_max", "fc_bias_quantize_min", "fc_bias_quantize_max"]),
        ("requantize", "requantize_fc", ["quantized_fc", "quantized_fc[1]", "quantized_fc[2]"]),
        ("dequantize", "fc_dequantize", ["requantize_fc", "requantize_fc[1]", "requantize_fc[2]"]),
        ("Activation", "tanh", ["fc_dequantize"])]
    assert layers == ["data", "conv_output", "bn_output", "sum_output", "fc_output"]
    assert {n.attrs["out_type"] for n, _ in Symbol(made).get_internals().handle if "out_type" in n.attrs} == {"auto"}


def test_what_is_excluded_stays_on_real_numbers():
    made, layers = quantize.quantize(residual().handle, [], "int8", ["conv"], ["FullyConnected", "elemwise_add"])
    assert nodes(made) == [
        ("Convolution", "conv", ["data", "conv_weight"]), ("quantize_v2", "conv_output_quantize", ["conv"]),
        ("quantized_batch_norm", "quantized_bn", ["conv_output_quantize", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var",
                                                  "conv_output_quantize[1]", "conv_output_quantize[2]"]),
        ("dequantize", "bn_dequantize", ["quantized_bn", "quantized_bn[1]", "quantized_bn[2]"]),
        ("elemwise_add", "sum", ["bn_dequantize", "data"]), ("quantize_v2", "sum_output_quantize", ["sum"]),
        ("quantized_flatten", "quantized_flat", ["sum_output_quantize", "sum_output_quantize[1]", "sum_output_quantize[2]"]),
        ("dequantize", "flat_dequantize", ["quantized_flat", "quantized_flat[1]", "quantized_flat[2]"]),
        ("FullyConnected", "fc", ["flat_dequantize", "fc_weight", "fc_bias"]), ("Activation", "tanh", ["fc"])]
    assert layers == ["conv_output", "bn_output", "sum_output"]


def test_smart_quantizes_between_two_products_only():
    data = sym.var("data")
    first = sym.Convolution(data, num_filter=4, kernel=(1, 1), no_bias=True, name="a")
    second = sym.Convolution(sym.Activation(first, act_type="relu", name="relu"), num_filter=4, kernel=(1, 1), no_bias=True, name="b")
    last = sym.Flatten(sym.Pooling(second, kernel=(2, 2), name="pool"), name="flat")
    kinds = [kind for kind, *_ in nodes(quantize.quantize(last.handle, ["a_weight", "b_weight"], smart=True)[0])]
    assert kinds == ["quantize_v2", "quantized_conv", "requantize", "quantized_act", "quantized_conv", "requantize", "dequantize", "Pooling",
                     "Flatten"]
    assert [kind for kind, *_ in nodes(quantize.quantize(last.handle, ["a_weight", "b_weight"])[0])][-3:] == [
        "quantized_pooling", "quantized_flatten", "dequantize"]


def test_a_recurrent_layer_takes_a_scale_and_a_shift():
    rnn = sym.RNN(sym.Flatten(sym.var("data"), name="flat"), state_size=4, num_layers=1, mode="lstm", name="rnn")
    made, layers = quantize.quantize(rnn.handle)
    assert nodes(made)[2:] == [
        ("dequantize", "flat_dequantize", ["quantized_flat", "quantized_flat[1]", "quantized_flat[2]"]),
        ("quantize_asym", "flat_0_quantize", ["flat_dequantize"]),
        ("quantized_rnn", "quantized_rnn", ["flat_0_quantize", "rnn_parameters", "rnn_state", "rnn_state_cell", "flat_0_quantize[1]",
                                            "flat_0_quantize[2]"])]
    assert layers == ["data", "flat_output"]
    gru = sym.RNN(sym.var("data"), state_size=4, num_layers=1, mode="gru", name="rnn")
    assert nodes(quantize.quantize(gru.handle)[0]) == [("RNN", "rnn", ["data", "rnn_parameters", "rnn_state"])]


def test_ranges_get_to_the_nodes_that_need_them():
    made, _ = quantize.quantize(residual().handle, ["conv_weight", "fc_weight", "fc_bias"])
    table = {"data": (0, 1), "conv_output": (-2, 3), "bn_output": (-4.5, 1e-7), "sum_output": (0, 0), "fc_output": (-1, 2)}
    ranges = {n.name: (n.attrs["min_calib_range"], n.attrs["max_calib_range"]) for n in Symbol(quantize.calibrate(made, table))._nodes()
              if "min_calib_range" in n.attrs}
    # Six decimals as in MXNet's files, more where these would be wrong; zeros alone say nothing about a range.
    assert ranges == {"data_quantize": ("0.000000", "1.000000"), "requantize_conv": ("-2.000000", "3.000000"),
                      "quantized_bn": ("-4.500000", "1.00000001e-07"), "requantize_sum": ("-1.000000", "1.000000"),
                      "requantize_fc": ("-1.000000", "2.000000")}
    assert all("min_calib_range" not in n.attrs for n in Symbol(made)._nodes())


def test_what_is_no_range():
    made, _ = quantize.quantize(residual().handle)
    with pytest.raises(mx.MXNetError, match="the range of 'conv_output' is from -inf to 3.0: its values overflow or are no numbers"):
        quantize.calibrate(made, {"conv_output": (float("-inf"), 3)})
    with pytest.raises(mx.MXNetError, match="the range of 'conv_output' must be two numbers, .low, high., received 3"):
        quantize.calibrate(made, {"conv_output": 3})
    with pytest.raises(mx.MXNetError, match="the graph has nothing to calibrate"):
        quantize.calibrate(residual().handle, {"conv_output": (1, 3)})


def test_a_graph_is_quantized_once():
    made, _ = quantize.quantize(residual().handle)
    with pytest.raises(mx.MXNetError, match="the graph is quantized already: node 'data_quantize' is _contrib_quantize_v2"):
        quantize.quantize(made)
