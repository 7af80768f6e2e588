"""Operators on quantized arrays; values are those of MXNet 1.9.1 on the CPU unless a test says otherwise."""
import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd, sym
from mxnet.ops.quantization.form import EightBits, quantized_form
from mxnet.ops.registry import OPERATORS, get, op
from mxnet.ops.schema import Training
from mxnet.ops.traits import reaches_generator
from ops.quantization.values import Q, U, W, X, check, int8, one, uint8

C = nd.contrib
FORMS = {n: get(n).quantized for n in ("Activation", "BatchNorm", "Concat", "Convolution", "Embedding", "Flatten", "FullyConnected", "Pooling", "RNN",
                                       "elemwise_add", "elemwise_mul")}


@pytest.fixture
def scaled():
    """A made-up operator on real numbers, which is gone after the test."""
    @op("scaled", inputs_rule=lambda attributes: ("data", "offset") if attributes["shifted"] else ("data",))
    def function(data, offset=None, *, factor: float, shifted: bool = True, training: Training = False):
        """The data times `factor`, and perhaps an offset."""
        return data * factor if offset is None else data * factor + offset

    function.shape_rule(lambda ins, outs, factor, shifted: ([ins[0], *[(1,)] * shifted], [ins[0]]))
    yield function
    for name in ("scaled", "quantized_scaled"):
        OPERATORS.pop(name, None)


def test_what_follows_from_the_operator_on_real_numbers(scaled):
    @quantized_form(scaled, "quantized_scaled", result=torch.int32)
    def quantized_scaled(data: EightBits, offset: torch.Tensor = None, *, factor, power: int = 1, **attributes):
        """Whole multiples."""
        offset = 0 if offset is None else offset
        return data.with_values(data.values.to(torch.int32) ** power * int(factor) + int(offset))

    assert scaled.quantized is quantized_scaled and quantized_scaled.__doc__ == "Whole multiples."
    assert quantized_scaled.inputs == ("data", "offset", "min_data", "max_data")
    assert {n: a.default for n, a in quantized_scaled.attributes.items()} == {"factor": None, "shifted": True, "power": 1}
    assert quantized_scaled.input_names({"shifted": False}) == ("data", "min_data", "max_data")
    assert quantized_scaled.shape_inference([(3,), None, None, None], [None] * 3, factor=2.0, shifted=True, power=1) == (
        [(3,), (1,), (1,), (1,)], [(3,), (1,), (1,)])
    assert quantized_scaled.dtype_inference([None] * 4, [None] * 3, factor=2.0, shifted=True, power=1) == (
        [None, *[torch.float32] * 3], [torch.int32, torch.float32, torch.float32])
    values, ends = torch.tensor([1, -3], dtype=torch.int8), (torch.tensor([-1.0]), torch.tensor([2.0]))
    assert [t.tolist() for t in quantized_scaled(values, torch.tensor([5]), *ends, factor=2.0, power=2)] == [[7, 23], [-1], [2]]
    assert quantized_scaled(values, None, *ends, factor=2.0, shifted=False)[0].tolist() == [2, -6]
    with pytest.raises(mx.MXNetError, match=r"quantized_scaled expects 3 inputs \(data, min_data, max_data\), received 4"):
        quantized_scaled(values, torch.tensor([5]), *ends, factor=2.0, shifted=False)


def test_what_the_operator_on_real_numbers_does_not_have(scaled):
    with pytest.raises(TypeError, match="<operator scaled> has no weight, depth; inputs and attributes are called as there"):
        @quantized_form(scaled, "quantized_scaled")
        def wrong(weight: EightBits, *, depth, factor):
            return weight


def test_who_draws():
    """Registration fails for a form that can reach a generator, through what it wraps, and does not say so."""
    assert reaches_generator(FORMS["RNN"].raw) and FORMS["RNN"].stochastic is get("RNN").stochastic
    assert not reaches_generator(FORMS["Convolution"].raw)


@pytest.mark.parametrize("name", FORMS)
def test_attributes_are_those_of_the_operator_on_real_numbers(name):
    """Names, kinds, bounds, defaults, whatever may be added to an operator later."""
    def described(operator):
        return {n: (a.kind, a.default, a.required, a.choices, a.bounds) for n, a in operator.attributes.items()}

    known = described(get(name))
    assert {n: a for n, a in described(FORMS[name]).items() if n in known} == known
    own = {"Concat": {"num_args"}, "RNN": {"quantized"}, "elemwise_add": {"min_calib_range", "max_calib_range"},
           "elemwise_mul": {"min_calib_range", "max_calib_range", "enable_float_output"}}
    assert set(FORMS[name].attributes) - set(known) == own.get(name, set())
    assert FORMS[name].no_gradient


def test_shapes_are_found_as_for_real_numbers():
    """Backwards, too: with stride 1 the result tells the size of the data."""
    x, y = sym.var("x"), sym.var("y", shape=(1, 4, 3, 3))
    both = sym.Group([sym.contrib.quantized_conv(x, kernel=(3, 3), num_filter=4, no_bias=True)[0] + y, x])
    assert both.infer_shape(x=(0, 2, 0, 0))[1][1] == (1, 2, 5, 5)
    total = sym.contrib.quantized_elemwise_add(x, sym.var("z"), name="s")
    assert total.infer_shape(x=(2, 3))[0] == [(2, 3), (2, 3), (1,), (1,), (1,), (1,)]


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
    """Sums are MXNet's; their range, for uint8, and the bias are not, which on CPUs it has wrong by a factor."""
    np.random.seed(0)
    data, weight = uint8(np.random.randint(0, 255, (1, 4, 3, 3))), int8(np.random.randint(-127, 128, (4, 4, 2, 2)))
    ranges = [one(-1), one(1), one(-.5), one(.4)]
    check(C.quantized_conv(data, weight, *ranges, kernel=(2, 2), num_filter=4, no_bias=True),
          [[[[33332, 26039], [58502, 5644]], [[-14796, 29431], [-13263, 20093]], [[-68527, -15769], [-45627, -51655]],
            [[-40518, -36855], [-42790, -23965]]]], "int32", -33155.53125, 33155.53125)
    out = C.quantized_conv(data, weight, int8([1, 2, -127, 50]), *ranges, one(-2), one(1), kernel=(2, 2), num_filter=4)[0]
    assert out.asnumpy()[0, :, 0, 0].tolist() == [34354, -12752, -198321, 10582]


def test_concat():
    check(C.quantized_concat(int8(Q), int8(W), one(-1), one(1), one(-.5), one(.4), num_args=2),
          [[-127, 5, 90, 0, -1, 2], [127, 0, -3, 50, 10, -64]], "int8", -1, 1)
    check(C.quantized_concat(uint8(U), int8(Q), one(0), one(1), one(-3), one(.4), num_args=2),
          [[0, 1, 15, -127, 5, 90], [42, 21, 0, 127, 0, -3]], "int8", -3, 1)
    assert C.quantized_concat(uint8(U), uint8(U), one(0), one(1), one(0), one(1), num_args=2)[0].dtype == np.uint8
    with pytest.raises(mx.MXNetError, match=r"_contrib_quantized_concat expects 6 inputs \(arg0, arg1, arg0_min, .*\), received 3"):
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
    with pytest.raises(mx.MXNetError, match="`use_sequence_length` must be False, received True"):
        C.quantized_rnn(q, params, state, cell, scale, shift, state_size=5, num_layers=1, mode="lstm", use_sequence_length=True)


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


def test_missing_inputs():
    with pytest.raises(mx.MXNetError, match=r"_contrib_quantized_act expects 3 inputs \(data, min_data, max_data\), received 1"):
        C.quantized_act(int8(Q), act_type="relu")
    with pytest.raises(mx.MXNetError, match="_contrib_quantized_act expects 3 inputs .* received 2"):
        C.quantized_act(data=int8(Q), max_data=one(1), act_type="relu")


@pytest.mark.parametrize("name, attributes, match", [("quantized_act", {"act_type": "tanh"}, "`act_type` must be 'relu', received 'tanh'"),
                                                     ("quantized_pooling", {"pool_type": "sum"}, "`pool_type` must be 'max' or 'avg'")])
def test_what_is_not_supported(name, attributes, match):
    with pytest.raises(mx.MXNetError, match=match):
        getattr(C, name)(int8([Q]), one(-1), one(1), **attributes)


@pytest.mark.parametrize("call, message", [
    (lambda: C.quantized_act(nd.array(X), one(-1), one(1), act_type="relu"), "_contrib_quantized_act: `data` must be int8 or uint8"),
    (lambda: C.quantized_flatten(nd.array(X), one(-1), one(1)), "_contrib_quantized_flatten: `data` must be int8 or uint8, received float32"),
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
