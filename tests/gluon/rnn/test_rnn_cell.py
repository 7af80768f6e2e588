"""Recurrent cells: steps, unrolling, and cells made of cells."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import rnn

X = np.cos(np.arange(18)).reshape(3, 2, 3)


def ready(cell):
    """The cell with values that depend on nothing but names and shapes."""
    cell.initialize()
    for i, (_, p) in enumerate(sorted(cell.collect_params().items())):
        p.set_data(mx.nd.array(np.sin(np.arange(np.prod(p.shape)) * 1.3 + i).reshape(p.shape) * 0.5))
    return cell


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


def test_unroll_forms():
    cell = ready(rnn.GRUCell(2, input_size=3))
    x = mx.nd.array(X)
    merged, states = cell.unroll(3, x, layout="TNC", merge_outputs=True)
    steps, _ = cell.unroll(3, [x[i] for i in range(3)])
    batch_first, _ = cell.unroll(3, x.swapaxes(0, 1), merge_outputs=True)
    assert merged.shape == (3, 2, 2) and [s.shape for s in steps] == [(2, 2)] * 3
    np.testing.assert_allclose(np.stack([s.asnumpy() for s in steps]), merged.asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(batch_first.asnumpy(), merged.asnumpy().swapaxes(0, 1), rtol=1e-6)
    np.testing.assert_allclose(states[0].asnumpy(), merged[2].asnumpy())
    with pytest.raises(AssertionError, match=r"length 4 is expected, received 3 steps in an array of shape \(3, 2, 3\)"):
        cell.unroll(4, x, layout="TNC")
    with pytest.raises(AssertionError, match="length 4 is expected, received a list of 3 steps"):
        cell.unroll(4, [x[i] for i in range(3)])
    with pytest.raises(AssertionError, match="unroll: inputs expected, received None"):
        cell.unroll(3, None)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("merge", [None, True, False])
def test_valid_length(bidirectional, merge):
    cell = rnn.LSTMCell(2, input_size=3, prefix="l_")
    if bidirectional:
        cell = rnn.BidirectionalCell(cell, rnn.GRUCell(2, input_size=3, prefix="r_"))
    ready(cell)
    x = mx.nd.array(X).swapaxes(0, 1)
    outputs, states = cell.unroll(3, x, valid_length=mx.nd.array([2, 3]), merge_outputs=merge)
    if not isinstance(outputs, mx.nd.NDArray):
        outputs = mx.nd.stack(*outputs, axis=1)
    short, short_states = cell.unroll(2, x[0:1, 0:2], merge_outputs=True)
    np.testing.assert_allclose(outputs[0, :2].asnumpy(), short[0].asnumpy(), atol=1e-6)
    assert not outputs[0, 2].asnumpy().any()
    for state, expected in zip(states, short_states, strict=True):
        np.testing.assert_allclose(state[0].asnumpy(), expected[0].asnumpy(), atol=1e-6)


def test_symbols():
    cell = rnn.RNNCell(5, prefix="rnn_")
    outputs, _ = cell.unroll(3, [mx.sym.var(f"t{i}") for i in range(3)])
    out = mx.sym.Group(outputs)
    assert sorted(cell.collect_params().keys()) == ["rnn_h2h_bias", "rnn_h2h_weight", "rnn_i2h_bias", "rnn_i2h_weight"]
    assert out.list_outputs() == ["rnn_t0_out_output", "rnn_t1_out_output", "rnn_t2_out_output"]
    assert out.infer_shape(t0=(10, 7), t1=(10, 7), t2=(10, 7))[1] == [(10, 5)] * 3


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


def test_bidirectional_cannot_be_stepped():
    cell = rnn.BidirectionalCell(rnn.RNNCell(2, prefix="l_"), rnn.RNNCell(2, prefix="r_"))
    assert repr(cell) == "BidirectionalCell(forward=RNNCell(None -> 2, tanh), backward=RNNCell(None -> 2, tanh))"
    with pytest.raises(NotImplementedError, match="Please use unroll"):
        cell(mx.nd.ones((1, 2)), [])
    stack = rnn.SequentialRNNCell()
    stack.add(cell)
    with pytest.raises(AssertionError, match="use unroll"):
        stack(mx.nd.ones((1, 2)), [])


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


def test_abstract_cells():
    with pytest.raises(NotImplementedError, match="RecurrentCell must define state_info"):
        rnn.RecurrentCell().state_info()
    with pytest.raises(NotImplementedError, match="must define hybrid_forward"):
        rnn.HybridRecurrentCell()(mx.nd.ones((1, 1)), [])


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
