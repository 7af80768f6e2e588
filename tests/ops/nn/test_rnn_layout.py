"""Where the parameters of recurrent layers lie in their vector; the order and the sizes are those of MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.ops.nn.rnn_layout import GATES, layout_of, layout_of_vector

NAMES = ["l0_i2h", "l0_h2h", "r0_i2h", "r0_h2h", "l1_i2h", "l1_h2h", "r1_i2h", "r1_h2h"]


def test_order_and_shapes():
    layout = layout_of("gru", 5, 2, num_layers=2, directions=2)
    assert [p.name for p in layout.parts] == [f"{n}_{kind}" for kind in ("weight", "bias") for n in NAMES]
    assert layout.shapes[:6] == ((6, 5), (6, 2), (6, 5), (6, 2), (6, 4), (6, 2)) and set(layout.shapes[8:]) == {(6,)}
    assert layout.sizes[:2] == (30, 12) and layout.total == sum(layout.sizes) == 84 + 72 + 48
    assert layout.cells == ((0, 1, 8, 9), (2, 3, 10, 11), (4, 5, 12, 13), (6, 7, 14, 15))


def test_a_projection_has_no_bias_and_is_fed_back():
    layout = layout_of("lstm", 5, 4, num_layers=2, directions=1, projection_size=3)
    assert [(p.name, p.shape) for p in layout.parts[:6]] == [
        ("l0_i2h_weight", (16, 5)), ("l0_h2h_weight", (16, 3)), ("l0_h2r_weight", (3, 4)),
        ("l1_i2h_weight", (16, 3)), ("l1_h2h_weight", (16, 3)), ("l1_h2r_weight", (3, 4))]
    assert len(layout.parts) == 10 and layout.cells == ((0, 1, 6, 7, 2), (3, 4, 8, 9, 5))
    by_gate = [(p.name, p.shape) for p, _ in layout.by_gate()]
    assert by_gate[7:10] == [("l0_h2h_o_weight", (4, 3)), ("l0_h2r_weight", (3, 4)), ("l1_i2h_i_weight", (4, 3))]


@pytest.mark.parametrize("mode, gates", [("rnn_relu", [""]), ("rnn_tanh", [""]), ("lstm", ["_i", "_f", "_c", "_o"]), ("gru", ["_r", "_z", "_o"])])
def test_gates_fill_the_vector_in_order(mode, gates):
    layout = layout_of(mode, 3, 2, num_layers=1, directions=1)
    places = list(layout.by_gate())
    assert [p.name for p, _ in places] == [f"l0_{group}{g}_{kind}" for kind in ("weight", "bias") for group in ("i2h", "h2h") for g in gates]
    assert [s.start for _, s in places] == [0, *(s.stop for _, s in places[:-1])] and places[-1][1].stop == layout.total
    assert all(s.stop - s.start == np.prod(p.shape) for p, s in places)
    assert list(GATES[mode]) == gates


def test_the_operator_reads_what_the_layout_says():
    """With all parameters 0 but the bias of one gate, which its place in the vector must hit."""
    def output(gate, value):
        layout = layout_of("lstm", 3, 2, num_layers=1, directions=1)
        vector = np.zeros(layout.total, np.float32)
        for part, place in layout.by_gate():
            if (part.group, part.gate, part.kind) == ("i2h", gate, "bias"):
                vector[place] = value
        state, cell = nd.zeros((1, 1, 2)), nd.ones((1, 1, 2))
        return nd.RNN(nd.ones((1, 1, 3)), nd.array(vector), state, cell, state_size=2, num_layers=1, mode="lstm").asnumpy()[0, 0, 0]

    half = 0.5 * np.tanh(0.5)
    np.testing.assert_allclose(output("_i", 50), half, rtol=1e-5)  # the candidate is 0: what enters does not matter
    np.testing.assert_allclose(output("_f", 50), 0.5 * np.tanh(1), rtol=1e-5)
    np.testing.assert_allclose(output("_c", 50), 0.5 * np.tanh(1), rtol=1e-5)
    np.testing.assert_allclose(output("_o", 50), np.tanh(0.5), rtol=1e-5)


@pytest.mark.parametrize("mode", GATES)
@pytest.mark.parametrize("directions", [1, 2])
def test_the_vector_tells_the_size_of_the_input(mode, directions):
    layout = layout_of(mode, 7, 3, 2, directions)
    assert layout_of_vector(layout.total, mode, 3, 2, directions) is layout
    with pytest.raises(mx.MXNetError, match=f"2 {mode} layers of 3 units have .* received a vector of {layout.total + 1}; were they made"):
        layout_of_vector(layout.total + 1, mode, 3, 2, directions)


def test_too_short_a_vector():
    with pytest.raises(mx.MXNetError, match="1 lstm layers of 2 units have 32 parameters and 8 more for each input feature, received a vector of 3"):
        layout_of_vector(3, "lstm", 2, 1, 1)


def test_unknown_mode():
    with pytest.raises(mx.MXNetError, match="unknown mode 'elman' of recurrent layers; expected one of 'rnn_relu', 'rnn_tanh', 'lstm', 'gru'"):
        layout_of("elman", 1, 1, 1, 1)
