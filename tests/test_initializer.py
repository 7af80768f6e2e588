import json
import logging

import numpy as np
import pytest

import mxnet as mx
from mxnet.initializer import InitDesc


def filled(init, name="x_weight", shape=(3, 4), **kwargs):
    array = mx.nd.full(shape, 9.0)
    init(InitDesc(name, **kwargs), array)
    return array.asnumpy()


@pytest.mark.parametrize("name, value", [("fc_bias", 0), ("bn_gamma", 1), ("bn_beta", 0), ("q_min", 0), ("q_max", 1), ("fc_weight", 5),
                                         ("fc_bias_quantize", 0)])
def test_names_decide(name, value):
    assert (filled(mx.init.Constant(5), name) == value).all()


def test_quantized_weights_are_one_byte():
    values = filled(mx.init.Zero(), "fc_weight_quantize")
    assert (values == values[0, 0]).all() and -127 <= values[0, 0] < 127


def test_own_initializer_of_a_variable_comes_first():
    assert (filled(mx.init.Zero(), "fc_bias", attrs={"__init__": mx.init.Constant(3).dumps()}) == 3).all()
    assert (filled(mx.init.Zero(), "whatever", attrs={"__init__": "ones"}) == 1).all()


@pytest.mark.parametrize("name", ["bn_moving_mean", "state"])
def test_unknown_names_are_refused(name):
    with pytest.raises(ValueError, match=f"Unknown initialization pattern for {name}"):
        filled(mx.init.One(), name)


def test_plain_names_are_deprecated():
    array = mx.nd.zeros((2,))
    with pytest.warns(DeprecationWarning, match="init\\(str, NDArray\\) is the old form"):
        mx.init.Zero()("bn_moving_var", array)
    assert array.asnumpy().tolist() == [1, 1]
    with pytest.warns(DeprecationWarning):
        loc = mx.nd.zeros((6,))
        mx.init.One()("stn_loc_bias", loc)
    assert loc.asnumpy().tolist() == [1, 0, 0, 0, 1, 0]
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match="name must be string"):
        mx.init.Zero()(3, array)
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match="arr must be NDArray"):
        mx.init.Zero()("x_bias", np.ones(2))


@pytest.mark.parametrize("init, low, high, std", [
    (mx.init.Uniform(0.1), -0.1, 0.1, 0.1 / 3 ** 0.5), (mx.init.Normal(0.2), -2, 2, 0.2),
    (mx.init.Xavier(), -(6 / 500) ** 0.5, (6 / 500) ** 0.5, (2 / 500) ** 0.5),
    (mx.init.Xavier("gaussian", "in", 2), -2, 2, (2 / 300) ** 0.5), (mx.init.Xavier("gaussian", "out", 2), -2, 2, (2 / 200) ** 0.5),
    (mx.init.MSRAPrelu(slope=0), -2, 2, (2 / 250) ** 0.5)])
def test_random_weights(init, low, high, std):
    mx.random.seed(0)
    values = filled(init, shape=(200, 300))
    assert low <= values.min() and values.max() <= high
    assert abs(values.std() - std) < 0.02 * std and abs(values.mean()) < 0.02 * std
    mx.random.seed(0)
    assert (filled(init, shape=(200, 300)) == values).all()


def test_xavier_counts_the_kernel():
    mx.random.seed(0)
    values = filled(mx.init.Xavier("gaussian", "in", 1), shape=(64, 16, 5, 5))
    assert abs(values.std() - (1 / 400) ** 0.5) < 0.002


@pytest.mark.parametrize("init, message", [
    (mx.init.Xavier(factor_type="x"), "Incorrect factor type 'x'"), (mx.init.Xavier(rnd_type="x"), "Unknown random type 'x'"),
    (mx.init.Orthogonal(rand_type="x"), "rand_type must be 'uniform' or 'normal'")])
def test_wrong_arguments(init, message):
    with pytest.raises(ValueError, match=message):
        filled(init)


def test_xavier_refuses_vectors():
    with pytest.raises(ValueError, match=r"at least two axes expected, received shape \(3,\) for x_weight"):
        filled(mx.init.Xavier(), shape=(3,))


@pytest.mark.parametrize("shape", [(3, 8), (8, 3), (4, 2, 3)])
@pytest.mark.parametrize("rand_type", ["uniform", "normal"])
def test_orthogonal(shape, rand_type):
    matrix = filled(mx.init.Orthogonal(2.0, rand_type), shape=shape).reshape(shape[0], -1)
    gram = matrix @ matrix.T if shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-5)


def test_bilinear():
    expected = [[0.0625, 0.1875, 0.1875, 0.0625], [0.1875, 0.5625, 0.5625, 0.1875]]
    assert filled(mx.init.Bilinear(), shape=(2, 1, 4, 4))[1, 0].tolist() == expected + expected[::-1]


def test_lstm_bias():
    array = mx.nd.zeros((8,))
    mx.init.Zero()(InitDesc("x_bias", attrs={"__init__": mx.init.LSTMBias(2.0).dumps()}), array)
    assert array.asnumpy().tolist() == [0, 0, 2, 2, 0, 0, 0, 0]


def test_fused_rnn():
    array = mx.nd.zeros((56,))
    mx.init.FusedRNN(None, 2, 1, "lstm", forget_bias=5.0)._init_weight(InitDesc("parameters", global_init=mx.init.One()), array)
    assert array.asnumpy().tolist() == [1] * 40 + [0, 0, 5, 5, 0, 0, 0, 0] * 2
    again = mx.init.create(mx.init.FusedRNN(mx.init.One(), 2, 1, "gru").dumps())
    array = mx.nd.full((3 * 2 * 3 + 3 * 2 * 2 + 12,), 7.0)
    again._init_weight(InitDesc("parameters"), array)
    assert array.asnumpy().tolist() == [1] * 30 + [0] * 12
    with pytest.raises(mx.MXNetError, match="no initializer is given for the parts of parameters"):
        mx.init.FusedRNN(None, 2, 1, "gru")._init_weight(InitDesc("parameters"), array)


@pytest.mark.parametrize("init, text", [
    (mx.init.Xavier(), '["xavier", {"rnd_type": "uniform", "factor_type": "avg", "magnitude": 3}]'),
    (mx.init.MSRAPrelu(), '["msraprelu", {"factor_type": "avg", "slope": 0.25}]'),
    (mx.init.Orthogonal(), '["orthogonal", {"scale": 1.414, "rand_type": "uniform"}]'),
    (mx.init.Constant(1), '["constant", {"value": 1}]'),
    (mx.init.Constant(mx.nd.ones((2,))), '["constant", {"value": [1.0, 1.0]}]'),
    (mx.init.Constant(np.zeros((1, 2))), '["constant", {"value": [[0.0, 0.0]]}]'),
    (mx.init.FusedRNN(mx.init.One(), 3, 2, "lstm"),
     r'["fusedrnn", {"init": "[\"one\", {}]", "num_hidden": 3, "num_layers": 2, "mode": "lstm", "bidirectional": false, "forget_bias": 1.0}]')])
def test_dumps(init, text):
    assert init.dumps() == text
    assert mx.init.create(text) == init


def test_equality():
    assert mx.init.Normal(0.5) == mx.init.Normal(0.5) != mx.init.Normal(0.1)
    assert mx.init.Normal(0.5) != mx.init.Uniform(0.5)
    assert mx.init.create("zeros") == mx.init.Zero()


def test_load(tmp_path):
    path = str(tmp_path / "x.params")
    mx.nd.save(path, {"arg:fc_weight": mx.nd.array([1, 2]), "aux:bn_moving_var": mx.nd.array([3])})
    init = mx.init.Load(path, default_init=mx.init.One())
    assert filled(init, "fc_weight", (2,)).tolist() == [1, 2]
    assert filled(init, "bn_moving_var", (1,)).tolist() == [3]
    assert filled(init, "other_weight", (2,)).tolist() == [1, 1]
    with pytest.raises(mx.MXNetError, match=r"its shape is \(3,\), the loaded one has \(2,\)"):
        filled(init, "fc_weight", (3,))
    with pytest.raises(mx.MXNetError, match="Cannot Initialize other_weight"):
        filled(mx.init.Load({}), "other_weight")
    with pytest.raises(TypeError, match="expected a dict of parameters"):
        mx.init.Load([1])


def test_mixed():
    init = mx.init.Mixed(["fc1", ".*bias", ".*"], [mx.init.Constant(7), mx.init.Zero(), mx.init.One()])
    assert [filled(init, n)[0, 0] for n in ("fc1_weight", "fc2_bias", "fc2_weight")] == [7, 0, 1]
    with pytest.raises(ValueError, match="no pattern of Mixed fits the parameter x_weight"):
        filled(mx.init.Mixed(["fc"], [mx.init.Zero()]))
    with pytest.raises(ValueError, match="received 1 and 2"):
        mx.init.Mixed(["a", "b"], [mx.init.Zero()])


def test_verbosity(caplog):
    with caplog.at_level(logging.INFO):
        filled(mx.init.One().set_verbosity(True), "fc_weight")
        filled(mx.init.One().set_verbosity(True, lambda a: "seen"), "fc_bias")
    assert caplog.messages == ["Initialized fc_weight as weight: 1.0", "Initialized fc_bias as bias: seen"]


def test_other_types_are_filled_in_their_own_precision():
    array = mx.nd.zeros((1000,), dtype="float64")
    mx.init.Uniform(1)._init_weight("w", array)
    assert array.dtype == np.float64 and not np.array_equal(array.asnumpy(), array.asnumpy().astype("float32"))


def test_registered_names():
    assert {"zero", "zeros", "one", "ones", "constant", "uniform", "normal", "orthogonal", "xavier", "msraprelu", "bilinear", "lstmbias",
            "fusedrnn"} <= set(mx.registry.get_registry(mx.init.Initializer))
    assert json.loads(mx.init.Zero().dumps()) == ["zero", {}]
