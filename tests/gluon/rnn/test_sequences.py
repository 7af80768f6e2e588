import numpy as np
import pytest

import mxnet as mx
from layer_checks import ready
from mxnet.gluon import rnn

X = np.cos(np.arange(18)).reshape(3, 2, 3)


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
