import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.ops.nn.rnn_layout import layout_of
from onnx_checks import check, exported

RNG = np.random.default_rng(1)
X = mx.sym.var("x")


def real(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def layers(mode, number, directions, **attributes):
    inputs = [X, mx.sym.var("parameters"), mx.sym.var("state"), *([mx.sym.var("cell")] if mode == "lstm" else [])]
    sym = mx.sym.RNN(*inputs, *attributes.pop("more", ()), mode=mode, state_size=4, num_layers=number, bidirectional=directions == 2,
                     state_outputs=True, name="rnn", **attributes)
    total = layout_of(mode, 3, 4, number, directions, None).total
    given = {"x": real(5, 2, 3), "state": real(number * directions, 2, 4)} | ({"cell": real(number * directions, 2, 4)} if mode == "lstm" else {})
    return sym, given, real(total)


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("number,directions", [(1, 1), (2, 1), (2, 2)])
def test_layers_and_directions(mode, number, directions):
    sym, given, parameters = layers(mode, number, directions)
    model = check(sym, given, {"parameters": parameters}, rtol=1e-4, atol=1e-5, opsets=(13,))
    # The weights of a known vector are cut out when the file is written.
    assert "Slice" not in {n.op_type for n in model.graph.node if n.input[0] == "parameters"}
    assert [o.name for o in model.graph.output] == ["rnn", "rnn1", "rnn2"][:2 + (mode == "lstm")]
    check(sym, {**given, "parameters": parameters}, rtol=1e-4, atol=1e-5)


def test_sequences_of_their_own_lengths():
    sym, given, parameters = layers("lstm", 1, 2, more=[mx.sym.var("lengths")], use_sequence_length=True)
    check(sym, {**given, "lengths": np.array([5, 3], np.float32)}, {"parameters": parameters}, rtol=1e-4, atol=1e-5)
    sym, given, parameters = layers("gru", 1, 1, more=[mx.sym.var("lengths")], use_sequence_length=True)
    check(sym, {**given, "lengths": np.array([2, 5], np.int32)}, {"parameters": parameters}, rtol=1e-4, atol=1e-5)


def test_a_projection_is_refused():
    inputs = [X, mx.sym.var("parameters"), mx.sym.var("state"), mx.sym.var("cell")]
    sym = mx.sym.RNN(*inputs, mode="lstm", state_size=4, num_layers=1, projection_size=2, name="r")
    with pytest.raises(mx.MXNetError, match="RNN 'r' cannot be written to an ONNX file: ONNX's LSTM has neither a projection nor"):
        exported(sym, {"x": real(5, 2, 3), "state": real(1, 2, 2), "cell": real(1, 2, 4)},
                 {"parameters": real(layout_of("lstm", 3, 4, 1, 1, 2).total)})


def test_layers_of_gluon_with_their_parameters():
    net = gluon.rnn.LSTM(4, num_layers=2, bidirectional=True, input_size=3, prefix="l_")
    net.initialize(mx.init.Uniform(0.5))
    states = [mx.sym.var("h"), mx.sym.var("c")]
    out, _ = net(X, states)
    params = {n: p.data().asnumpy() for n, p in net.collect_params().items()}
    model = check(out, {"x": real(5, 2, 3), "h": real(4, 2, 4), "c": real(4, 2, 4)}, params, rtol=1e-4, atol=1e-5)
    assert [n.op_type for n in model.graph.node].count("LSTM") == 2
    assert {n.op_type for n in model.graph.node} <= {"LSTM", "Slice", "Transpose", "Reshape", "Concat"}
