"""Recurrent cells: their steps."""
import numpy as np
import pytest

import mxnet as mx
from layer_checks import ready
from mxnet.gluon import rnn

X = np.cos(np.arange(18)).reshape(3, 2, 3)


@pytest.mark.parametrize("cell,output,states", [
    (lambda: rnn.RNNCell(2, input_size=3), [0.58095, 0.52909, 0.72757, -0.26897], [[0.58095, 0.52909, 0.72757, -0.26897]]),
    (lambda: rnn.LSTMCell(2, input_size=3), [0.04193, -0.02444, -0.08835, 0.21823],
     [[0.04193, -0.02444, -0.08835, 0.21823], [0.0568, -0.07781, -0.22566, 0.44612]]),
    (lambda: rnn.GRUCell(2, input_size=3), [0.2205, -0.05612, -0.03944, 0.73668], [[0.2205, -0.05612, -0.03944, 0.73668]]),
    (lambda: rnn.LSTMCell(2, input_size=3, activation="relu", recurrent_activation="softsign"), [0.0103, 0, 0, 0],
     [[0.0103, 0, 0, 0], [0.02032, -0.00051, 0, -0.15227]]),
])
@pytest.mark.parametrize("hybridize", [False, True])
def test_two_steps(cell, output, states, hybridize):
    cell = ready(cell())
    if hybridize:
        cell.hybridize()
    x = mx.nd.array(X)
    _, state = cell(x[0], cell.begin_state(batch_size=2))
    out, state = cell(x[1], state)
    np.testing.assert_allclose(out.asnumpy().ravel(), output, atol=2e-5)
    for found, expected in zip(state, states, strict=True):
        np.testing.assert_allclose(found.asnumpy().ravel(), expected, atol=2e-5)


def test_symbols():
    cell = rnn.RNNCell(5, prefix="rnn_")
    outputs, _ = cell.unroll(3, [mx.sym.var(f"t{i}") for i in range(3)])
    out = mx.sym.Group(outputs)
    assert sorted(cell.collect_params().keys()) == ["rnn_h2h_bias", "rnn_h2h_weight", "rnn_i2h_bias", "rnn_i2h_weight"]
    assert out.list_outputs() == ["rnn_t0_out_output", "rnn_t1_out_output", "rnn_t2_out_output"]
    assert out.infer_shape(t0=(10, 7), t1=(10, 7), t2=(10, 7))[1] == [(10, 5)] * 3


def test_abstract_cells():
    with pytest.raises(NotImplementedError, match="RecurrentCell must define state_info"):
        rnn.RecurrentCell().state_info()
    with pytest.raises(NotImplementedError, match="must define hybrid_forward"):
        rnn.HybridRecurrentCell()(mx.nd.ones((1, 1)), [])
