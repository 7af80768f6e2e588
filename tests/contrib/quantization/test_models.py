"""Quantized Symbols give nearly what they gave before."""
import logging

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd, sym
from mxnet.contrib import quantization

SHAPE = (4, 3, 8, 8)


@pytest.fixture
def trained():
    """A network, its parameters, data, and what it makes of them."""
    mx.random.seed(1)
    conv = sym.Convolution(sym.var("data"), num_filter=8, kernel=(3, 3), name="conv")
    pool = sym.Pooling(sym.Activation(conv, act_type="relu", name="relu"), kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool")
    net = sym.FullyConnected(pool, num_hidden=5, name="fc")
    params = {"conv_weight": nd.random.normal(0, .5, (8, 3, 3, 3)), "conv_bias": nd.random.normal(0, .5, (8,)),
              "fc_weight": nd.random.normal(0, .5, (5, 72)), "fc_bias": nd.random.normal(0, .5, (5,))}
    data = nd.random.uniform(shape=SHAPE)
    return net, params, data, run(net, params, data)


def run(net, params, data):
    return net.bind(mx.cpu(), {**params, "data": data}).forward()[0].asnumpy()


def batches(data):
    return mx.io.NDArrayIter(data, batch_size=2)


@pytest.mark.parametrize("mode", ["none", "naive", "entropy"])
@pytest.mark.parametrize("dtype", ["int8", "auto"])
@pytest.mark.parametrize("quantize", [quantization.quantize_model, quantization.quantize_model_mkldnn])
def test_results_stay(trained, mode, dtype, quantize):
    net, params, data, expected = trained
    made, found, _ = quantize(net, params, {}, label_names=None, calib_mode=mode, calib_data=batches(data), quantized_dtype=dtype,
                              quantize_mode="full")
    error = abs(run(made, found, data) - expected).max() / abs(expected).max()
    assert error < (.2 if mode == "entropy" else .03)  # entropy clips what is rare, and little data is all rare


def test_weights_become_integers(trained):
    net, params, *_ = trained
    made, found, _ = quantization.quantize_model(net, params, {}, calib_mode="none", excluded_sym_names=["fc"], quantize_mode="full")
    weight = params["conv_weight"].asnumpy()
    top = abs(weight).max()
    assert found["conv_weight_quantize"].asnumpy().tolist() == np.rint(weight * np.float32(127 / top)).astype("int8").tolist()
    assert found["conv_weight_quantize_max"].asscalar() == top == -found["conv_weight_quantize_min"].asscalar()
    assert found["fc_weight"] is params["fc_weight"] and set(found) == set(made.list_arguments()) - {"data"}


def test_calibration_in_two_steps(trained):
    net, params, data, expected = trained
    made, found, _, collector = quantization.quantize_graph(net, params, {}, calib_mode="naive", quantized_dtype="auto")
    with pytest.raises(mx.MXNetError, match="the collector has seen no layer .its `min_max_dict` is empty."):
        quantization.calib_graph(made, params, {}, collector, "naive", "auto")
    executor = net.bind(mx.cpu(), {**params, "data": data})
    executor.set_monitor_callback(collector.collect, monitor_all=True)
    executor.forward()
    assert collector.min_max_dict["fc_output"] == (expected.min(), expected.max())
    assert set(collector.min_max_dict) == {"data", "conv_output", "fc_output"}
    made, found, _ = quantization.calib_graph(made, params, {}, collector, "naive", "auto")
    assert abs(run(made, found, data) - expected).max() / abs(expected).max() < .03


def test_a_collector_of_the_users(trained):
    net, params, data, expected = trained

    class Fixed:
        min_max_dict = {"data": (0, 1), "conv_output": (-8, 8), "fc_output": (-20, 20)}

        def collect(self, name, array):
            """Knows everything already."""

    own = Fixed()
    made, _, _, collector = quantization.quantize_graph(net, params, {}, calib_mode="customize", LayerOutputCollector=own)
    assert collector is own
    made, found, _ = quantization.calib_graph(made, params, {}, own, "customize")
    assert made.attr_dict()["requantize_fc"]["max_calib_range"] == "20.000000"


def test_number_of_examples_and_log(trained, caplog, monkeypatch):
    net, params, data, _ = trained
    logger = logging.getLogger("quantization of a test")
    with caplog.at_level("INFO", logger.name):
        quantization.quantize_model(net, params, {}, label_names=None, calib_mode="naive", calib_data=batches(data), num_calib_examples=2,
                                    logger=logger)
    assert [r.getMessage() for r in caplog.records] == [
        "quantization: 4 of 4 operators run on integers", "calibration: 1 batches of 2 examples"]
    caplog.clear()
    monkeypatch.setenv("MXNET_QUANTIZATION_VERBOSE", "1")
    with caplog.at_level("INFO", "mxnet.contrib.quantization.models"):
        quantization.quantize_model(net, params, {}, calib_mode="none")
    assert [r.getMessage() for r in caplog.records] == ["quantization: 4 of 4 operators run on integers"]


@pytest.mark.parametrize("more, error, match", [
    ({"calib_mode": "best"}, ValueError, "unknown calibration mode best received: expected `none`"),
    ({"calib_mode": "naive"}, ValueError, "`calib_data` must be given when calib_mode=naive"),
    ({"calib_mode": "naive", "calib_data": [1]}, ValueError, "calib_mode=naive takes a DataIter as `calib_data`, received list"),
    ({"quantized_dtype": "int4"}, ValueError, "unknown quantized_dtype int4 received: expected `int8`, `uint8` or `auto`"),
    ({"quantize_mode": "most"}, ValueError, "unknown quantize_mode most received: expected `full` or `smart`"),
    ({"quantize_granularity": "row"}, ValueError, "unknown quantize_granularity row received"),
    ({"excluded_sym_names": "fc"}, ValueError, "`excluded_sym_names` must be a list of names, received 'fc' of type str"),
    ({"calib_mode": "naive", "calib_data": mx.io.NDArrayIter(nd.ones((2, 5)), batch_size=2)}, mx.MXNetError, "conv"),
])
def test_wrong_arguments(trained, more, error, match):
    net, params, *_ = trained
    with pytest.raises(error, match=match):
        quantization.quantize_model(net, params, {}, label_names=None, **{"calib_mode": "none", **more})


def test_data_that_tell_nothing(trained):
    net, params, data, _ = trained
    spent = batches(data)
    list(spent)
    with pytest.raises(mx.MXNetError, match="calibration: at least one batch expected, received 0; reset the iterator"):
        quantization.quantize_model(net, params, {}, label_names=None, calib_mode="naive", calib_data=spent)
    data[0, 0, 0, 0] = float("nan")
    with pytest.raises(mx.MXNetError, match="the range of 'data' is from nan to nan"):
        quantization.quantize_model(net, params, {}, label_names=None, calib_mode="naive", calib_data=batches(data))
    with pytest.raises(mx.MXNetError, match="calibration: 'data' has values from nan to nan: a histogram needs finite numbers"):
        quantization.quantize_model(net, params, {}, label_names=None, calib_mode="entropy", calib_data=batches(data))


def test_an_infinite_range_is_refused_and_one_of_zeros_is_widened(trained):
    net, params, data, _ = trained
    broken = data.copy()
    broken[0, 0, 0, 0] = float("inf")
    with pytest.raises(mx.MXNetError, match="the range of 'data' is from .* to inf"):
        quantization.quantize_model(net, params, {}, label_names=None, calib_mode="naive", calib_data=batches(broken))
    zeros = nd.zeros_like(data)
    made, made_params, aux = quantization.quantize_model(net, params, {}, label_names=None, calib_mode="naive", calib_data=batches(zeros))
    found, expected = (symbol.bind(mx.cpu(), {**values, "data": zeros}, aux_states=aux).forward()[0].asnumpy()
                       for symbol, values in ((made, made_params), (net, params)))
    assert np.isfinite(found).all() and abs(found - expected).max() < .05 * max(1, abs(expected).max())


def test_what_has_no_form_on_integers_stays_as_it_is():
    symbol = mx.sym.erf(mx.sym.sin(mx.sym.var("data")))
    made, params, _ = quantization.quantize_model(symbol, {}, {}, label_names=None, calib_mode="none")
    assert made.tojson() == symbol.tojson() and params == {}


def test_weights_that_no_integers_stand_for(trained):
    net, params, *_ = trained
    params["fc_weight"][0, 0] = float("inf")
    with pytest.raises(mx.MXNetError, match="parameter 'fc_weight' has values from .* to inf, which no integers can stand for"):
        quantization.quantize_model(net, params, {}, calib_mode="none")


def test_only_cpus_fuse(trained):
    net, params, *_ = trained
    with pytest.raises(ValueError, match=r"makes networks for the CPU, received ctx=gpu\(0\)"):
        quantization.quantize_model_mkldnn(net, params, {}, ctx=mx.gpu(), calib_mode="none")
    with pytest.raises(mx.MXNetError, match="`channel-wise` is for CPUs"):
        quantization.quantize_model(net, params, {}, ctx=mx.gpu(), calib_mode="none", quantize_granularity="channel-wise")


def test_an_unrolled_cell_whose_states_find_their_size():
    outputs, _ = mx.rnn.LSTMCell(4, prefix="cell_").unroll(2, sym.var("data"), merge_outputs=True)
    data = nd.random.uniform(-1, 1, (3, 2, 5))
    params = {n: nd.random.normal(0, .5, s) for n, s in zip(outputs.list_arguments(), outputs.infer_shape(data=data.shape)[0]) if n != "data"}
    expected = run(outputs, params, data)
    made, found, _ = quantization.quantize_model(outputs, params, {}, label_names=None, calib_mode="naive", quantize_mode="full",
                                                 calib_data=mx.io.NDArrayIter(data, batch_size=3))
    assert abs(run(made, found, data) - expected).max() < .05
