import numpy as np
import pytest

import mxnet as mx
from layer_checks import ready
from mxnet import gluon
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


def unrolled(layout, valid_length, hybridize):
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = gluon.rnn.LSTMCell(3, input_size=2)

        def hybrid_forward(self, F, x, states, lengths=None):
            return gluon.contrib.rnn.rnn_cell.dynamic_unroll(self.cell, x, states, layout=layout, valid_length=lengths)

    mx.random.seed(1)
    net = Net()
    net.initialize(mx.init.Uniform(1.0))
    if hybridize:
        net.hybridize()
    x = mx.nd.random.uniform(shape=(4, 2, 2))
    lengths = [mx.nd.array([4, 2])] if valid_length else []
    out, states = net(x if layout == "TNC" else x.swapaxes(0, 1), net.cell.begin_state(2), *lengths)
    wanted, wanted_states = net.cell.unroll(4, x, layout="TNC", merge_outputs=True, valid_length=lengths[0] if lengths else None)
    return (out if layout == "TNC" else out.swapaxes(0, 1)), states, wanted, wanted_states


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("valid_length", [False, True])
@pytest.mark.parametrize("layout", ["TNC", "NTC"])
def test_dynamic_unroll_gives_what_unroll_gives(layout, valid_length, hybridize):
    out, states, wanted, wanted_states = unrolled(layout, valid_length, hybridize)
    np.testing.assert_allclose(out.asnumpy(), wanted.asnumpy(), rtol=1e-5)
    assert len(states) == 2
    for state, expected in zip(states, wanted_states):
        np.testing.assert_allclose(state.asnumpy(), expected.asnumpy(), rtol=1e-5)


@pytest.mark.parametrize("what", ["drop_inputs", "drop_outputs"])
@pytest.mark.parametrize("layout", ["TNC", "NTC"])
def test_dynamic_unroll_drops_the_same_at_every_step(layout, what):
    cell = gluon.rnn.RNNCell(8, activation="relu", h2h_weight_initializer="zeros", input_size=8)
    cell.initialize()
    cell.i2h_weight.set_data(mx.nd.array(np.eye(8)))
    with mx.autograd.train_mode():
        out, _ = gluon.contrib.rnn.rnn_cell.dynamic_unroll(cell, mx.nd.ones((6, 6, 8)), cell.begin_state(6), layout=layout, **{what: 0.5})
    kept = out.asnumpy() if layout == "TNC" else out.asnumpy().swapaxes(0, 1)
    assert set(kept.ravel()) == {0.0, 2.0}
    assert (kept == kept[:1]).all() and not (kept == kept[:, :1]).all()


def plain():
    return rnn.RNNCell(6, input_size=6)


def two():
    stack = rnn.HybridSequentialRNNCell()
    stack.add(contrib.VariationalDropoutCell(plain(), drop_inputs=.5))
    stack.add(rnn.DropoutCell(.5))
    return stack


# Eager cells give MXNet's numbers with its seeds; its hybridized ones draw another mask at each step, and zone out towards zeros.
STEPPED = {
    "inputs": (lambda: contrib.VariationalDropoutCell(plain(), drop_inputs=.5), [[0, 0, 0, 0], [2.28, 4.639, 5.584, 5.842]]),
    "states": (lambda: contrib.VariationalDropoutCell(plain(), drop_states=.5), [[3.222, 5.002, 5.681, 5.902], [3.222, 5.331, 5.841, 5.955]]),
    "outputs": (lambda: contrib.VariationalDropoutCell(plain(), drop_outputs=.5), [[0, 0, 0, 0], [2.148, 3.636, 3.927, 3.98]]),
    "zoneout": (lambda: rnn.ZoneoutCell(plain(), zoneout_outputs=.5), [[0, 1.818, 4.836, 4.876], [1.611, 4.338, 5.228, 5.314]]),
    "dropout": (lambda: rnn.DropoutCell(.5), [[0, 8, 24, 24], [6, 12, 12, 8]]),
    "stack": (two, [[0, 0, 0, 0], [2.148, 1.818, 3.927, 5.97]]),
    "residual": (lambda: rnn.ResidualCell(contrib.VariationalDropoutCell(plain(), drop_outputs=.5)),
                 [[6, 12, 18, 24], [8.148, 15.636, 21.927, 27.98]]),
    "conv": (lambda: contrib.VariationalDropoutCell(contrib.Conv1DRNNCell((2, 6), 3, 3, 3, i2h_pad=1), drop_inputs=.5),
             [[.987, 2.575, 3.957, 4.681], [2.979, 5.218, 5.777, 5.897]])}


@pytest.mark.parametrize("hybridize", [None, {}, {"static_alloc": True, "static_shape": True}])
@pytest.mark.parametrize("kind", STEPPED)
def test_cells_that_are_called_step_by_step_keep_what_they_drop(kind, hybridize):
    make, expected = STEPPED[kind]
    cell = make()
    cell.initialize(mx.init.Constant(.1))
    if hybridize is not None:
        cell.hybridize(**hybridize)
    x = mx.nd.ones((1, 2, 6) if kind == "conv" else (1, 6))
    mx.random.seed(0)
    for sums in expected:
        cell.reset()
        states = cell.begin_state(batch_size=1, func=mx.nd.zeros)
        for step, total in enumerate(sums, 1):
            with mx.autograd.record():
                output, states = cell(x * step, states)
            assert output.asnumpy().ravel()[:6].sum() == pytest.approx(total, abs=2e-3)


@pytest.mark.parametrize("make", [lambda: contrib.VariationalDropoutCell(plain(), drop_states=.5),
                                  lambda: rnn.ZoneoutCell(plain(), zoneout_outputs=.5)])
def test_hybridized_cells_unroll_over_arrays_as_others_do(make):
    results = []
    for hybridized in (False, True):
        cell = make()
        cell.initialize(mx.init.Constant(.1))
        cell.hybridize(hybridized)
        mx.random.seed(0)
        with mx.autograd.record():
            results.append(cell.unroll(4, mx.nd.ones((3, 4, 6)), merge_outputs=True)[0].asnumpy())
    np.testing.assert_array_equal(*results)


def test_a_hybridized_cell_predicts_between_training_steps():
    cell = contrib.VariationalDropoutCell(plain(), drop_outputs=.5)
    cell.initialize(mx.init.Constant(.1))
    cell.hybridize()
    x, states = mx.nd.ones((1, 6)), [mx.nd.zeros((1, 6))]
    with mx.autograd.record():
        first = cell(x, states)[0].asnumpy()
    predicted = cell(x, states)[0].asnumpy()  # traced; the mask stays as it is
    assert (predicted != 0).all()
    with mx.autograd.record():
        np.testing.assert_array_equal(cell(x, states)[0].asnumpy(), first)
    cell.reset()
    np.testing.assert_array_equal(cell(x, states)[0].asnumpy(), predicted)
