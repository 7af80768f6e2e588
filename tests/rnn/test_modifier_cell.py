"""Cells around cells. Literal numbers and names come from MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError
from rnn_checks import evaluate, unrolled


def test_residual_cell():
    net, (outputs, state) = unrolled(mx.rnn.ResidualCell(mx.rnn.GRUCell(3)))
    np.testing.assert_allclose(outputs, [[[-.414849, -.048914, .302325], [.326301, .569084, .046817]]], atol=1e-6)
    assert net.list_outputs()[0].endswith("_plus_residual_output")


def test_bidirectional_cell():
    cell = mx.rnn.BidirectionalCell(mx.rnn.RNNCell(2, prefix="l_"), mx.rnn.RNNCell(2, prefix="r_"))
    outputs, states = cell.unroll(2, mx.sym.var("data"), merge_outputs=True)
    _, (values,) = evaluate([outputs], (1, 2, 3))
    np.testing.assert_allclose(values, [[[-.454216, -.353992, -.308172, -.351264], [-.535864, .078221, -.64693, .226028]]], atol=1e-6)
    assert [len(s) for s in states] == [1, 1]
    steps, _ = cell.unroll(2, mx.sym.var("data"), merge_outputs=False)
    _, parts = evaluate(steps, (1, 2, 3))
    np.testing.assert_allclose(np.stack(parts, 1), values, atol=1e-6)
    with pytest.raises(NotImplementedError, match="needs whole sequences"):
        cell(None, None)


def test_modifiers_take_over_their_base_cell():
    base = mx.rnn.LSTMCell(2)
    zoneout = mx.rnn.ZoneoutCell(base, .5, .5)
    with pytest.raises(MXNetError, match="is inside of a modifier cell"):
        base.begin_state()
    outputs, states = zoneout.unroll(2, mx.sym.var("data"), begin_state=zoneout.begin_state(func=mx.sym.Variable))
    net = mx.sym.Group(outputs + states)
    assert "lstm_begin_state_1" in net.list_arguments() and net.infer_shape(data=(1, 2, 3), lstm_begin_state_0=(1, 2),
                                                                            lstm_begin_state_1=(1, 2))[1] == [(1, 2)] * 4
    with pytest.raises(MXNetError, match="which a FusedRNNCell can't; call unfuse"):
        mx.rnn.ZoneoutCell(mx.rnn.FusedRNNCell(2))
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.BidirectionalCell(mx.rnn.RNNCell(2, prefix="a"), mx.rnn.RNNCell(2, prefix="b")))
    with pytest.raises(MXNetError, match="ZoneoutCell needs a cell that can step, which a BidirectionalCell can't; wrap the two cells in it"):
        mx.rnn.ZoneoutCell(stack)
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.FusedRNNCell(2))
    with pytest.raises(MXNetError, match="which a FusedRNNCell can't; call unfuse"):
        mx.rnn.ZoneoutCell(stack)


def test_zoneout_keeps_parts_of_the_states_in_training():
    cell = mx.rnn.ZoneoutCell(mx.rnn.RNNCell(200), zoneout_states=.5)
    _, states = cell.unroll(1, [mx.sym.var("data")])
    exe = states[0].simple_bind(mx.cpu(), data=(1, 3))
    for value in exe.arg_dict.values():
        value[:] = 1
    values = exe.forward(is_train=True)[0].asnumpy()
    np.testing.assert_allclose(np.unique(values), [0, np.tanh(5)], rtol=1e-5)
    assert 60 < (values == 0).sum() < 140


def test_dropout_cell():
    cell = mx.rnn.DropoutCell(.5)
    outputs, states = cell.unroll(2, mx.sym.var("data"), merge_outputs=True)
    assert states == [] and outputs.infer_shape(data=(1, 2, 3))[1] == [(1, 2, 3)]
    with pytest.raises(MXNetError, match="must be a number, received 'much'"):
        mx.rnn.DropoutCell("much")
