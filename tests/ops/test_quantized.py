"""Quantized operators; values are those of MXNet 1.9.1 on the CPU unless a test says otherwise."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import nd, sym

C = nd.contrib
X = [[-1.5, 0.25, 0.3], [2.0, -0.01, 0.77]]
Q = [[-127, 5, 90], [127, 0, -3]]
U = [[0, 5, 90], [255, 128, 3]]
W = [[1, -2, 3], [100, 20, -127]]


def one(value):
    return nd.array([value])


def int8(values):
    return nd.array(values, dtype="int8")


def uint8(values):
    return nd.array(values, dtype="uint8")


def check(results, values, dtype, low=None, high=None):
    results = results if isinstance(results, list) else [results]
    assert results[0].dtype == np.dtype(dtype).type
    np.testing.assert_allclose(results[0].asnumpy(), values, rtol=1e-6)
    if low is not None:
        assert [r.shape for r in results[1:]] == [(1,), (1,)]
        np.testing.assert_allclose([r.asscalar() for r in results[1:]], [low, high], rtol=1e-6)


def test_quantize():
    x = nd.array(X)
    check(C.quantize(x, one(-1.5), one(2), out_type="int8"), [[-95, 16, 19], [127, -1, 49]], "int8", -2, 2)
    check(C.quantize(x, one(-1.5), one(2)), [[0, 32, 38], [255, 0, 98]], "uint8", -1.5, 2)


def test_quantize_v2():
    x = nd.array(X)
    check(C.quantize_v2(x), [[-96, 16, 19], [127, -1, 49]], "int8", -2, 2)
    check(C.quantize_v2(x.abs(), out_type="uint8"), [[192, 32, 38], [255, 1, 98]], "uint8", 0.01, 2)
    check(C.quantize_v2(x, out_type="auto", min_calib_range=-1, max_calib_range=1), [[-128, 32, 38], [127, -1, 98]], "int8", -1, 1)
    check(C.quantize_v2(x.abs(), out_type="auto", min_calib_range=0, max_calib_range=1), [[255, 64, 77], [255, 3, 197]], "uint8", 0, 1)
    check(C.quantize_v2(x.abs(), out_type="auto"), [[96, 16, 19], [127, 1, 49]], "int8", -2, 2)
    check(C.quantize_v2(int8(Q)), Q, "int8", -127.5, 127.5)


def test_quantize_asym():
    """MXNet 1.9.1 crashes here; the values are those of its formula."""
    check(C.quantize_asym(nd.array(X)), [[0, 127, 131], [255, 109, 165]], "uint8", 72.857147, 109.28571)
    check(C.quantize_asym(nd.array(X), min_calib_range=-2, max_calib_range=2), [[32, 143, 147], [255, 127, 177]], "uint8", 63.75, 127.5)
    check(C.quantize_asym(int8(Q)), [[1, 133, 218], [255, 128, 125]], "uint8", 1, 128)


def test_dequantize():
    check(C.dequantize(int8(Q), one(-1.5), one(2)), [[-1.9921563, 0.07843138, 1.4117647], [1.9921563, 0, -0.04705883]], "float32")
    check(C.dequantize(uint8(U), one(0), one(2)), [[0, 0.03913894, 0.704501], [1.9960861, 1.0019569, 0.02348337]], "float32")


def test_requantize():
    x = nd.array([[-1270000, 500000, 900000], [12700000, 0, -3]], dtype="int32")
    check(C.requantize(x, one(-10), one(10)), [[-13, 5, 9], [127, 0, 0]], "int8", -0.05913898, 0.05913898)
    check(C.requantize(x, one(-10), one(10), min_calib_range=-.03, max_calib_range=.05), [[-15, 6, 11], [127, 0, 0]], "int8", -0.05, 0.05)
    check(C.requantize(x, one(-10), one(10), min_calib_range=0, max_calib_range=.05, out_type="auto"), [[0, 12, 21], [255, 0, 0]], "uint8", 0, 0.05)


def test_layers_that_keep_the_range():
    check(C.quantized_act(int8(Q), one(-1), one(1), act_type="relu"), [[0, 5, 90], [127, 0, 0]], "int8", -1, 1)
    check(C.quantized_flatten(int8([Q]), one(-1), one(1)), [sum(Q, [])], "int8", -1, 1)
    check(C.quantized_embedding(nd.array([1, 0, 1]), int8(W), one(-.5), one(.4), input_dim=2, output_dim=3), [W[1], W[0], W[1]], "int8", -.5, .4)
    data = int8([[[[45, -80, -10], [65, -60, 124], [68, -24, -118]]]])
    check(C.quantized_pooling(data, one(-1), one(1), kernel=(2, 2)), [[[[65, 124], [68, 124]]]], "int8", -1, 1)
    check(C.quantized_pooling(data, one(-1), one(1), kernel=(2, 2), pool_type="avg"), [[[[-8, -6], [12, -20]]]], "int8", -1, 1)
    check(C.quantized_pooling(data, one(-1), one(1), kernel=(2, 2), pool_type="avg", pad=(1, 1), stride=(2, 2)), [[[[11, -22], [33, -20]]]], "int8")


def test_fully_connected():
    ranges = [one(-1), one(1), one(-.5), one(.4)]
    bias, top = int8([10, -127]), 66572.125
    check(C.quantized_fully_connected(int8(Q), int8(W), *ranges, num_hidden=2, no_bias=True), [[133, -24030], [118, 13081]], "int32", -top, top)
    check(C.quantized_fully_connected(int8(Q), int8(W), bias, *ranges, one(-2), one(1), num_hidden=2), [[5233, -88800], [5218, -51689]], "int32",
          -top, top)
    check(C.quantized_fully_connected(uint8(U), int8(W), bias, *ranges, one(-2), one(1), num_hidden=2), [[10480, -141124], [10228, -102115]], "int32",
          -33155.53125, 33155.53125)
    with pytest.raises(mx.MXNetError, match="_contrib_quantized_fully_connected expects 9 inputs"):
        C.quantized_fully_connected(int8(Q), int8(W), bias, *ranges, num_hidden=2)


def test_convolution():
    np.random.seed(0)
    data, weight = uint8(np.random.randint(0, 255, (1, 4, 3, 3))), int8(np.random.randint(-127, 128, (4, 4, 2, 2)))
    ranges = [one(-1), one(1), one(-.5), one(.4)]
    check(C.quantized_conv(data, weight, *ranges, kernel=(2, 2), num_filter=4, no_bias=True),
          [[[[33332, 26039], [58502, 5644]], [[-14796, 29431], [-13263, 20093]], [[-68527, -15769], [-45627, -51655]],
            [[-40518, -36855], [-42790, -23965]]]], "int32", -66572.125, 66572.125)
    out = C.quantized_conv(data, weight, int8([1, 2, -127, 50]), *ranges, one(-2), one(1), kernel=(2, 2), num_filter=4)[0]
    assert out.asnumpy()[0, :, 0, 0].tolist() == [33333, -14794, -68654, -40468]


def test_concat():
    check(C.quantized_concat(int8(Q), int8(W), one(-1), one(1), one(-.5), one(.4), num_args=2),
          [[-127, 5, 90, 0, -1, 2], [127, 0, -3, 50, 10, -64]], "int8", -1, 1)
    check(C.quantized_concat(uint8(U), int8(Q), one(0), one(1), one(-3), one(.4), num_args=2),
          [[0, 1, 15, -127, 5, 90], [42, 21, 0, 127, 0, -3]], "int8", -3, 1)
    assert C.quantized_concat(uint8(U), uint8(U), one(0), one(1), one(0), one(1), num_args=2)[0].dtype == np.uint8
    with pytest.raises(mx.MXNetError, match="2 arrays need 4 ranges after them, received 1"):
        C.quantized_concat(int8(Q), int8(W), one(0), num_args=2)


def test_add():
    ranges = [one(-1), one(1), one(-.5), one(.4)]
    check(C.quantized_elemwise_add(int8(Q), int8(W), *ranges),
          [[-1420427136, 44914692, 1027423552], [1987475200, 112286728, -746706752]], "int32", -1.5, 1.5)
    check(C.quantized_elemwise_add(int8(Q), int8(W), *ranges, min_calib_range=-1, max_calib_range=1.5), [[-84, 3, 61], [118, 7, -44]],
          "int8", -1, 1.5)


def test_add_of_both_types():
    """MXNet 1.9.1 cuts the uint8 array off at 127 units of the result here, so that nothing of it remains."""
    high, low, out = C.quantized_elemwise_add(uint8([[255]]), int8([[127]]), one(0), one(1), one(-1), one(1))[::-1]
    assert abs(out.asscalar() * high.asscalar() / 2 ** 31 - (255 / 255.5 + 127 / 127.5)) < 1e-6 and low.asscalar() == -2


def test_mul():
    """MXNet 1.9.1 refuses any shapes here; the values are those of its formula."""
    args = [int8(Q), int8(W), one(-1), one(1), one(-.5), one(.4)]
    check(C.quantized_elemwise_mul(*args), [[-127, -10, 270], [12700, 0, 381]], "int32", -66572.125, 66572.125)
    check(C.quantized_elemwise_mul(*args, min_calib_range=-.3, max_calib_range=.2), [[-1, 0, 3], [127, 0, 4]], "int8", -.3, .2)
    check(C.quantized_elemwise_mul(*args, enable_float_output=True),
          [[-0.0039061904, -0.00030757405, 0.008304499], [0.39061904, 0, 0.0117185712]], "float32")


def test_batch_norm():
    data = int8(np.array([45, -80, 84, -106, -69, 66]).reshape(1, 3, 2))
    args = [nd.array(v) for v in ([1, 2, 3], [.1, .2, .3], [0, .1, -.1], [.2, .3, .4])]
    out = C.quantized_batch_norm(data, *args, one(-1), one(1), min_calib_range=-5, max_calib_range=6, eps=1e-3)
    check(out, [[[19, -28], [48, -68], [-38, 69]]], "int8", -5, 6)
    with pytest.raises(mx.MXNetError, match="works with a calibrated range only"):
        C.quantized_batch_norm(data, *args, one(-1), one(1))


def test_rnn_dequantizes_its_data():
    x, size = nd.random.uniform(-1, 1, (4, 2, 3)), 4 * 5 * (3 + 5 + 2)
    params, state, cell = nd.random.uniform(-.3, .3, (size,)), nd.zeros((1, 2, 5)), nd.zeros((1, 2, 5))
    exact = nd.RNN(x, params, state, cell, state_size=5, num_layers=1, mode="lstm").asnumpy()
    q, scale, shift = C.quantize_asym(x)
    out = C.quantized_rnn(q, params, state, cell, scale, shift, state_size=5, num_layers=1, mode="lstm")
    assert np.abs(out.asnumpy() - exact).max() < 5e-3
    with pytest.raises(mx.MXNetError, match="`mode` must be 'lstm', received 'gru'"):
        C.quantized_rnn(q, params, state, cell, scale, shift, state_size=5, num_layers=1, mode="gru")


def test_self_attention():
    """MXNet 1.9.1 runs these in graphs of its oneDNN backend only; they must agree with the operators on real numbers."""
    qkv = nd.random.uniform(-1, 1, (3, 2, 12))
    scores = C.interleaved_matmul_selfatt_qk(qkv, heads=2)
    weights = nd.softmax(scores)
    mixed = C.interleaved_matmul_selfatt_valatt(qkv, weights, heads=2).asnumpy()
    call = nd._internal
    assert (call._sg_mkldnn_selfatt_qk(qkv, heads=2) == scores).asnumpy().all()
    q, low, high = C.quantize_v2(qkv)
    close = dict(atol=0.03)
    real = call._sg_mkldnn_selfatt_qk(q, low, high, heads=2, quantized=True, enable_float_output=True)
    np.testing.assert_allclose(real.asnumpy(), scores.asnumpy(), **close)
    out = call._sg_mkldnn_selfatt_qk(q, low, high, heads=2, quantized=True, min_calib_range=-2, max_calib_range=2)
    assert out[0].dtype == np.int8 and out[2].asscalar() == 2
    np.testing.assert_allclose(C.dequantize(*out).asnumpy(), scores.asnumpy(), **close)
    w, w_low, w_high = C.quantize_v2(weights, out_type="uint8")
    out = call._sg_mkldnn_selfatt_valatt(q, w, low, high, w_low, w_high, heads=2, quantized=True)
    assert out[0].dtype == np.int32
    np.testing.assert_allclose(out[0].asnumpy() * (out[2].asscalar() / 2 ** 31), mixed, **close)


def test_calibrate_entropy():
    counts = [0, 1, 2, 3, 50, 400, 900, 1000, 880, 410, 40, 5, 2, 1, 0, 0, 0, 1, 0, 0, 1]
    threshold, loss = C.calibrate_entropy(nd.array(counts), nd.array(np.linspace(-4, 4, 22)), num_quantized_bins=7)
    np.testing.assert_allclose([threshold.asscalar(), loss.asscalar()], [3.2380953, 0.07057943], rtol=1e-5)
    with pytest.raises(mx.MXNetError, match="21 bins have 22 edges, `hist_edges` has 21"):
        C.calibrate_entropy(nd.array(counts), nd.array(np.linspace(-4, 4, 21)))


def test_symbols():
    x = sym.var("x")
    conv = sym.contrib.quantized_conv(x, kernel=(3, 3), num_filter=4, name="c")
    assert conv.list_arguments() == ["x", "c_weight", "c_bias", "c_min_data", "c_max_data", "c_min_weight", "c_max_weight", "c_min_bias",
                                     "c_max_bias"]
    assert conv.list_outputs() == ["c_output", "c_min_output", "c_max_output"]
    assert conv.infer_shape(x=(1, 2, 5, 5)) == ([(1, 2, 5, 5), (4, 2, 3, 3), (4,)] + [(1,)] * 6, [(1, 4, 3, 3), (1,), (1,)], [])
    assert conv.infer_type(x="int8")[1] == [np.int32, np.float32, np.float32]
    both = sym.contrib.quantized_concat(x, sym.var("y"), num_args=2, name="j")
    assert both.list_arguments() == ["x", "y", "j_arg0_min", "j_arg0_max", "j_arg1_min", "j_arg1_max"]
    assert sym.load_json(both.tojson()).tojson() == both.tojson()
    assert sym.contrib.quantized_batch_norm(x, name="b").list_auxiliary_states() == ["b_moving_mean", "b_moving_var"]
    chain = sym.contrib.dequantize(*sym.contrib.quantize_v2(x))
    np.testing.assert_allclose(chain.eval(x=nd.array(X))[0].asnumpy(), X, atol=2 / 127)
    assert chain.infer_type(x="float32")[1] == [np.float32]


@pytest.mark.parametrize("name, attributes, match", [("quantized_act", {"act_type": "tanh"}, "`act_type` must be 'relu', received 'tanh'"),
                                                     ("quantized_pooling", {"pool_type": "sum"}, "`pool_type` must be 'max' or 'avg'")])
def test_what_is_not_supported(name, attributes, match):
    with pytest.raises(mx.MXNetError, match=match):
        getattr(C, name)(int8([Q]), one(-1), one(1), **attributes)


@pytest.mark.parametrize("call, message", [
    (lambda: C.dequantize(nd.array(X), one(-1), one(1)), "_contrib_dequantize: `data` must be int8 or uint8, received float32"),
    (lambda: C.quantize(nd.array(X, dtype="float64"), one(-1), one(1)), "_contrib_quantize: `data` must be float32, received float64"),
    (lambda: C.quantize_v2(nd.array(X, dtype="int32")), "_contrib_quantize_v2: `data` must be float32 or int8 or uint8, received int32"),
    (lambda: C.requantize(int8(Q), one(-1), one(1)), "_contrib_requantize: `data` must be int32, received int8"),
    (lambda: C.quantized_act(nd.array(X), one(-1), one(1), act_type="relu"), "_contrib_quantized_act: `data` must be int8 or uint8"),
    (lambda: C.quantized_pooling(nd.ones((1, 1, 4, 4)), one(-1), one(1), kernel=(2, 2)), "_contrib_quantized_pooling: `data` must be int8 or uint8"),
    (lambda: C.quantized_fully_connected(int8(Q), uint8(U), one(-1), one(1), one(-1), one(1), num_hidden=2, no_bias=True),
     "_contrib_quantized_fully_connected: `weight` must be int8, received uint8"),
    (lambda: C.quantized_fully_connected(int8(Q), int8(W), one(-1), one(1), one(-1), one(1), num_hidden=3, no_bias=True),
     r"`weight` must have shape \(3, 3\) and `bias` \(3,\), received \(2, 3\) and none"),
    (lambda: C.quantized_conv(nd.ones((1, 1, 4, 4)), int8([[[[1]]]]), one(-1), one(1), one(-1), one(1), kernel=(1, 1), num_filter=1, no_bias=True),
     "_contrib_quantized_conv: `data` must be int8 or uint8, received float32"),
    (lambda: C.quantized_concat(int8(Q), nd.array(X), one(-1), one(1), one(-1), one(1), num_args=2),
     "`arg1` must be int8 or uint8, received float32"),
    (lambda: C.quantized_elemwise_add(int8(Q), int8(Q[:1]), one(-1), one(1), one(-1), one(1)),
     r"`lhs` and `rhs` must have one shape, received \(2, 3\) and \(1, 3\)"),
    (lambda: C.quantized_elemwise_mul(int8(Q), uint8(U), one(-1), one(1), one(-1), one(1)), "`rhs` must be int8, received uint8"),
    (lambda: C.quantized_embedding(nd.array([0]), int8(W), one(-1), one(1), input_dim=4, output_dim=3),
     r"`weight` must have shape \(4, 3\), received \(2, 3\)"),
])
def test_inputs_that_do_not_fit(call, message):
    with pytest.raises(mx.base.MXNetError, match=message):
        call()
