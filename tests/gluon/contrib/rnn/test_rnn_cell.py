import numpy as np
import pytest

import mxnet as mx
from layer_checks import ready
from mxnet.gluon import rnn
from mxnet.gluon.contrib import rnn as contrib


def test_projected_lstm():
    cell = ready(contrib.LSTMPCell(4, 3, input_size=5))
    assert repr(cell) == "LSTMPCell(5 -> 16 -> 3)"
    x = mx.nd.array(np.cos(np.arange(30)).reshape(2, 3, 5))
    outputs, (hidden, memory) = cell.unroll(3, x, merge_outputs=True)
    assert (outputs.shape, hidden.shape, memory.shape) == ((2, 3, 3), (2, 3), (2, 4))
    np.testing.assert_allclose(outputs.asnumpy()[0, -1], [0.00286, 0.08473, 0.07653], atol=2e-5)  # of MXNet 1.9.1


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_variational_dropout_keeps_its_masks(share):
    cell = contrib.VariationalDropoutCell(rnn.RNNCell(50, input_size=3), 0.5, share, 0.5)
    ready(cell.base_cell)
    x = mx.nd.ones((2, 4, 3))
    with mx.autograd.train_mode():
        outputs, _ = cell.unroll(4, x, merge_outputs=True, begin_state=[mx.nd.ones((2, 50))])
    dropped = outputs.asnumpy() == 0
    assert dropped.any() and (dropped == dropped[:, :1]).all()
    assert repr(cell) == f"VariationalDropoutCell(p_out = 0.5, p_state = {share})"
    cell.reset()
    assert cell.drop_states_mask is None
    with pytest.raises(AssertionError, match="drop_states needs a cell that can step"):
        contrib.VariationalDropoutCell(rnn.BidirectionalCell(rnn.RNNCell(2), rnn.RNNCell(2)), drop_states=0.5)
