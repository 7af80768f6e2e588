import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check

RNG = np.random.default_rng(3)
X = mx.sym.var("x")


def real(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("attributes", [{}, {"flatten": False}, {"no_bias": True}])
def test_fully_connected(attributes):
    width = 4 if attributes.get("flatten") is False else 12
    params = {"fc_weight": real(5, width)} | ({} if attributes.get("no_bias") else {"fc_bias": real(5)})
    sym = mx.sym.FullyConnected(X, num_hidden=5, name="fc", **attributes)
    check(sym, {"x": real(2, 3, 4)}, params, varying=[("N", 3, 4)], others=[{"x": real(7, 3, 4)}])


@pytest.mark.parametrize("layout,shape,weight", [("NCHW", (2, 4, 7, 6), (6, 2, 3, 2)), ("NHWC", (2, 7, 6, 4), (6, 3, 2, 2))])
def test_convolution_with_groups_in_each_layout(layout, shape, weight):
    sym = mx.sym.Convolution(X, kernel=(3, 2), stride=(2, 1), pad=(1, 1), dilate=(1, 2), num_filter=6, num_group=2, layout=layout, name="c")
    check(sym, {"x": real(*shape)}, {"c_weight": real(*weight), "c_bias": real(6)}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("attributes", [{"adj": (1, 0), "pad": (1, 1)}, {"target_shape": (8, 5)}])
def test_deconvolution(attributes):
    sym = mx.sym.Deconvolution(X, kernel=(3, 2), stride=(2, 2), num_filter=4, num_group=2, name="d", **attributes)
    check(sym, {"x": real(1, 2, 4, 3)}, {"d_weight": real(2, 2, 3, 2)}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["relu", "sigmoid", "softrelu", "softsign", "tanh"])
def test_activation(kind):
    check(mx.sym.Activation(X, act_type=kind), {"x": real(2, 3)})


@pytest.mark.parametrize("kind", ["leaky", "elu", "selu", "gelu", "rrelu"])
def test_leaky_relu(kind):
    check(mx.sym.LeakyReLU(X, act_type=kind)[0], {"x": real(2, 3)})


def test_prelu_has_a_slope_for_each_channel():
    check(mx.sym.LeakyReLU(X, act_type="prelu", name="p"), {"x": real(2, 3, 4)}, {"p_gamma": np.array([0.1, 0.5, 2], np.float32)})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_along_each_axis(axis):
    for sym in (mx.sym.softmax(X, axis=axis, temperature=0.5), mx.sym.log_softmax(X, axis=axis), mx.sym.softmin(X, axis=axis)):
        check(sym, {"x": real(2, 3, 4)}, varying=[(None, None, None)], others=[{"x": real(3, 2, 5)}])


def test_softmax_of_as_many_positions_as_are_valid():
    sym = mx.sym.softmax(X, mx.sym.var("length"), axis=1, use_length=True)
    check(sym, {"x": real(2, 3, 4), "length": np.array([[1, 2, 3, 1], [3, 2, 1, 0]], np.int32)})


def test_output_layers_need_no_label():
    model = check(mx.sym.SoftmaxOutput(X, name="softmax"), {"x": real(2, 3)})
    assert [i.name for i in model.graph.input] == ["x"]
    for name in ("LogisticRegressionOutput", "LinearRegressionOutput", "MAERegressionOutput"):
        check(getattr(mx.sym, name)(X, name="loss"), {"x": real(2, 3)})
    check(mx.sym.SoftmaxOutput(X, name="softmax", multi_output=True), {"x": real(2, 3, 4)})
    check(mx.sym.SoftmaxOutput(X, name="softmax"), {"x": real(2, 3, 4)}, varying=[(None, 3, 4)], others=[{"x": real(5, 3, 4)}])


def test_dropout_is_left_out():
    model = check(mx.sym.Dropout(X, p=0.5) + 1, {"x": real(2, 3)})
    assert [n.op_type for n in model.graph.node] == ["Add"]
    with pytest.raises(mx.MXNetError, match="Dropout 'd' cannot be written to an ONNX file: mode='always' draws at inference too"):
        check(mx.sym.Dropout(X, mode="always", name="d"), {"x": real(2, 3)})


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_embedding_takes_the_nearest_row_of_positions_outside(dtype):
    sym = mx.sym.Embedding(X, input_dim=3, output_dim=2, name="e")
    check(sym, {"x": np.array([[0, 2], [-5, 9]], dtype)}, {"e_weight": real(3, 2)}, varying=[(None, 2)], others=[{"x": np.ones((3, 2), dtype)}])
