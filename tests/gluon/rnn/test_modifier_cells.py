import numpy as np
import pytest

import mxnet as mx
from layer_checks import ready
from mxnet.gluon import rnn

X = np.cos(np.arange(18)).reshape(3, 2, 3)


def test_residual_adds_the_input():
    plain, wrapped = ready(rnn.GRUCell(3, input_size=3)), rnn.ResidualCell(rnn.GRUCell(3, input_size=3))
    ready(wrapped)
    x = mx.nd.array(X)
    for merge in (True, False):
        a, _ = plain.unroll(3, x, layout="TNC", merge_outputs=merge)
        b, _ = wrapped.unroll(3, x, layout="TNC", merge_outputs=merge)
        np.testing.assert_allclose(np.stack([s.asnumpy() for s in b]), np.stack([s.asnumpy() for s in a]) + X, rtol=1e-5)


def test_zoneout():
    cell = ready(rnn.ZoneoutCell(rnn.RNNCell(2, input_size=3), zoneout_outputs=0.5, zoneout_states=0.999))
    assert repr(cell) == "ZoneoutCell(p_out=0.5, p_state=0.999, RNNCell(3 -> 2, tanh))"
    x = mx.nd.ones((50, 3))
    begin = [mx.nd.full((50, 2), 9)]
    with mx.autograd.train_mode():
        out, states = cell(x, begin)
    assert 0.2 < (out.asnumpy() == 0).mean() < 0.8  # before the first output there are zeros
    assert (states[0].asnumpy() == 9).mean() > 0.9
    cell.reset()
    assert cell._prev_output is None
    with pytest.raises(AssertionError, match="ZoneoutCell needs a cell that can step"):
        rnn.ZoneoutCell(rnn.BidirectionalCell(rnn.RNNCell(2), rnn.RNNCell(2)))


def test_a_wrapped_cell_is_not_used_directly():
    base = rnn.RNNCell(2)
    rnn.ResidualCell(base)
    with pytest.raises(AssertionError, match="is inside of a modifier cell .*: call that one"):
        base.begin_state(batch_size=1)
    with pytest.raises(AssertionError, match="ZoneoutCell: .* is inside of another modifier cell already"):
        rnn.ZoneoutCell(base)


def test_dropout_cell():
    cell = rnn.DropoutCell(0.5)
    x = mx.nd.ones((2, 3, 4))
    with mx.autograd.train_mode():
        merged, states = cell.unroll(3, x, merge_outputs=True)
    assert set(np.unique(merged.asnumpy())) == {0.0, 2.0} and states == []
    steps, _ = cell.unroll(3, x, merge_outputs=False)
    assert len(steps) == 3
    with pytest.raises(AssertionError, match="rate must be a number, received 'x'"):
        rnn.DropoutCell("x")
