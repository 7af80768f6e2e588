import numpy as np
import pytest

import mxnet as mx
from layer_checks import ready
from mxnet.gluon import rnn

X = np.cos(np.arange(18)).reshape(3, 2, 3)


@pytest.mark.parametrize("kind", [rnn.SequentialRNNCell, rnn.HybridSequentialRNNCell])
def test_stack(kind):
    stack = kind(prefix="s_")
    with stack.name_scope():
        stack.add(rnn.LSTMCell(2, input_size=3))
        stack.add(rnn.DropoutCell(0.5))
        stack.add(rnn.ResidualCell(rnn.GRUCell(2, input_size=2)))
    ready(stack)
    assert repr(stack) == f"{kind.__name__}(\n(0): LSTMCell(3 -> 8)\n(1): DropoutCell(rate=0.5, axes=())\n(2): ResidualCell(GRUCell(2 -> 6))\n)"
    assert len(stack) == 3 and stack[0].name == "s_lstm0" and [s["shape"] for s in stack.state_info(4)] == [(4, 2)] * 3
    x = mx.nd.array(X)
    states = stack.begin_state(batch_size=2, func=mx.nd.zeros)
    for i in range(3):
        out, states = stack(x[i], states)
    outputs, end = stack.unroll(3, x, layout="TNC", begin_state=stack.begin_state(batch_size=2, func=mx.nd.zeros))
    np.testing.assert_allclose(outputs[2].asnumpy(), out.asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(end[2].asnumpy(), states[2].asnumpy(), rtol=1e-6)


def test_bidirectional_cannot_be_stepped():
    cell = rnn.BidirectionalCell(rnn.RNNCell(2, prefix="l_"), rnn.RNNCell(2, prefix="r_"))
    assert repr(cell) == "BidirectionalCell(forward=RNNCell(None -> 2, tanh), backward=RNNCell(None -> 2, tanh))"
    with pytest.raises(NotImplementedError, match="a BidirectionalCell needs whole sequences"):
        cell(mx.nd.ones((1, 2)), [])
    stack = rnn.SequentialRNNCell()
    stack.add(cell)
    with pytest.raises(AssertionError, match="use unroll"):
        stack(mx.nd.ones((1, 2)), [])


@pytest.mark.parametrize("length", [1, 3])
def test_bidirectional_in_a_traced_block(length):
    class Net(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.cell = rnn.BidirectionalCell(rnn.LSTMCell(4, prefix="l_"), rnn.LSTMCell(4, prefix="r_"))

        def hybrid_forward(self, F, x, lengths):
            return self.cell.unroll(length, x, valid_length=lengths, merge_outputs=True)

    net = Net()
    net.initialize()
    x, lengths = mx.nd.ones((2, length, 3)), mx.nd.array([length] * 2)
    eager = net(x, lengths)[0].asnumpy()
    net.hybridize()
    out, states = net(x, lengths)
    assert out.shape == (2, length, 8) and len(states) == 4
    np.testing.assert_allclose(out.asnumpy(), eager, atol=1e-6)
