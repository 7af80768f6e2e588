"""RNN: lengths, which MXNet knows on GPUs only, clipping, projections, dropout, inference. Values: `test_against_oracle`, and literals here."""
import pytest
import torch

from kernel_limits import used_from
from mxnet import MXNetError, kernels
from mxnet.kernels.nn import recurrent
from mxnet.ops import get, random_state
from mxnet.ops.nn.rnn import Parts
from mxnet.ops.nn.rnn_layout import layout_of

RNN = get("RNN")


def made(mode, layers=1, both=False, steps=5, batch=3, inputs=2, size=4, projection=None):
    """Random data, parameters and states."""
    generator = torch.Generator().manual_seed(11)
    attributes = {"mode": mode, "state_size": size, "num_layers": layers, "bidirectional": both, "state_outputs": True}
    if projection:
        attributes["projection_size"] = projection
    every = RNN.with_defaults(attributes)
    count = 4 if mode == "lstm" else 3
    shapes, _ = RNN.shape_inference([(steps, batch, inputs)] + [None] * (count - 1), [None] * (count - 1), **every)
    return [torch.randn(s, generator=generator) * 0.5 for s in shapes], attributes


@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
@pytest.mark.parametrize("both", [False, True])
def test_lengths_are_as_running_each_sequence_alone(mode, both):
    (data, packed, *states), attributes = made(mode, layers=2, both=both)
    lengths = torch.tensor([2.0, 5.0, 0.0])
    out, *last = RNN(data, packed, *states, *([] if mode == "lstm" else [None]), lengths, use_sequence_length=True, **attributes)
    for n, length in enumerate([2, 5]):
        alone, *alone_last = RNN(data[:length, n:n + 1], packed, *[s[:, n:n + 1].contiguous() for s in states], **attributes)
        torch.testing.assert_close(out[:length, n:n + 1], alone)
        assert out[length:, n].abs().sum() == 0
        for a, b in zip(last, alone_last):
            torch.testing.assert_close(a[:, n:n + 1], b)
    assert out[:, 2].abs().sum() == 0  # an empty sequence keeps its states
    for before, after in zip(states, last):
        assert torch.equal(after[:, 2], before[:, 2])


def test_lengths_may_come_as_the_fourth_input():
    (data, packed, state), attributes = made("gru")
    lengths = torch.tensor([2, 5, 1])
    by_place = RNN(data, packed, state, lengths, use_sequence_length=True, **attributes)
    by_name = RNN(data, packed, state, None, lengths, use_sequence_length=True, **attributes)
    assert torch.equal(by_place[0], by_name[0])
    assert RNN.input_names({**attributes, "use_sequence_length": True}) == ("data", "parameters", "state", "sequence_length")
    with pytest.raises(MXNetError, match=r"`sequence_length` must be 3 lengths from 0 to 5, received \[2, 6, 1\]"):
        RNN(data, packed, state, torch.tensor([2, 6, 1]), use_sequence_length=True, **attributes)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("projection", [None, 3])
def test_a_wide_clip_changes_nothing(both, projection):
    inputs, attributes = made("lstm", layers=2, both=both, projection=projection)
    plain = RNN(*inputs, **attributes)
    wide = {"lstm_state_clip_min": -100.0, "lstm_state_clip_max": 100.0}
    for a, b in zip(plain, RNN(*inputs, **attributes, **wide)):
        torch.testing.assert_close(a, b)
    lengths = torch.tensor([2, 5, 0])
    plain = RNN(*inputs, lengths, use_sequence_length=True, **attributes)
    for a, b in zip(plain, RNN(*inputs, lengths, use_sequence_length=True, **attributes, **wide)):
        torch.testing.assert_close(a, b)


def test_the_cell_state_is_clipped():
    inputs, attributes = made("lstm")
    inputs[0].requires_grad_()
    _, _, cell = RNN(*inputs, lstm_state_clip_min=-0.05, lstm_state_clip_max=0.02, **attributes)
    assert cell.min() == -0.05 and cell.max() == 0.02
    inputs[3] = torch.full_like(inputs[3], torch.nan)
    clipped = {"lstm_state_clip_min": -0.05, "lstm_state_clip_max": 0.02}
    assert RNN(*inputs, **clipped, **attributes)[2].isnan().all()
    assert RNN(*inputs, lstm_state_clip_nan=True, **clipped, **attributes)[2].isfinite().all()


def test_projection_by_hand():
    """One step of one layer, written out: the projection's weight stands after the layer's two others."""
    (data, packed, hidden, cell), attributes = made("lstm", steps=1, projection=3)
    from_input, from_state, project, b1, b2 = packed.split([16 * 2, 16 * 3, 3 * 4, 16, 16])
    gates = data[0] @ from_input.view(16, 2).T + b1 + hidden[0] @ from_state.view(16, 3).T + b2
    i, f, g, o = gates.chunk(4, 1)
    new = f.sigmoid() * cell[0] + i.sigmoid() * g.tanh()
    expected = (o.sigmoid() * new.tanh()) @ project.view(3, 4).T
    out, last_hidden, last_cell = RNN(data, packed, hidden, cell, **attributes)
    torch.testing.assert_close(out[0], expected)
    torch.testing.assert_close(last_hidden[0], expected)
    torch.testing.assert_close(last_cell[0], new)


def test_dropout_between_layers():
    inputs, attributes = made("lstm", layers=3, both=True)
    plain = RNN(*inputs, **attributes)[0]
    assert torch.equal(RNN(*inputs, p=0.5, **attributes)[0], plain)  # not training
    random_state.seed(5)
    dropped = RNN(*inputs, p=0.5, training=True, **attributes)
    assert not torch.allclose(dropped[0], plain)
    random_state.seed(5)
    assert torch.equal(RNN(*inputs, p=0.5, training=True, **attributes)[0], dropped[0])
    assert [tuple(t.shape) for t in dropped] == [(5, 3, 8), (6, 3, 4), (6, 3, 4)]
    torch.testing.assert_close(RNN(*inputs, p=1e-9, training=True, **attributes)[0], plain)
    inputs, attributes = made("gru")  # nothing passes from layer to layer
    assert torch.equal(RNN(*inputs, p=0.5, training=True, **attributes)[0], RNN(*inputs, **attributes)[0])


def test_half_precision():
    inputs, attributes = made("gru", layers=2)
    out = RNN(*[t.half() for t in inputs], **attributes)[0]
    assert out.dtype == torch.float16
    torch.testing.assert_close(out.float(), RNN(*inputs, **attributes)[0], atol=5e-3, rtol=1e-2)


def test_inference():
    every = RNN.with_defaults({"mode": "lstm", "state_size": 4, "num_layers": 2, "bidirectional": True, "state_outputs": True,
                               "projection_size": 3, "use_sequence_length": True})
    ins, outs = RNN.shape_inference([(7, -1, 5), None, None, None, None], [None] * 3, **every)
    assert ins == [(7, -1, 5), (2 * 16 * (5 + 3 + 2) + 2 * 16 * (6 + 3 + 2) + 4 * 12,), (4, -1, 3), (4, -1, 4), (-1,)]
    assert outs == [(7, -1, 6), (4, -1, 3), (4, -1, 4)]
    every["use_sequence_length"] = False
    assert RNN.shape_inference([(7, 2, -1), None, None, None], [None], **every)[0][1] == (-1,)
    assert RNN.list_output_names({"mode": "lstm", "state_outputs": True}) == ("output", "state_output", "statecell_output")
    f64 = torch.float64
    every["use_sequence_length"] = True
    assert RNN.dtype_inference([f64, None, None, None, torch.int32], [None], **every) == ([f64] * 4 + [torch.int32], [f64])


def test_errors():
    (data, packed, state), attributes = made("gru")
    with pytest.raises(MXNetError, match="`parameters` must have 96 elements for input size 2, received 95"):
        RNN(data, packed[:-1], state, **attributes)
    with pytest.raises(MXNetError, match="are for mode 'lstm', received mode 'gru'"):
        RNN(data, packed, state, projection_size=2, **attributes)
    with pytest.raises(MXNetError, match="`p` must be at least 0 and less than 1, received 1"):
        RNN(data, packed, state, p=1, **attributes)
    with pytest.raises(MXNetError, match=r"`data` must be \(sequence length, batch size, input size\), received shape \(3, 2\)"):
        RNN.shape_inference([(3, 2), None, None], [None], **RNN.with_defaults(attributes))
    inputs, attributes = made("lstm")
    with pytest.raises(MXNetError, match="`lstm_state_clip_min`=1.0 and `lstm_state_clip_max`=None received"):
        RNN(*inputs, lstm_state_clip_min=1.0, **attributes)


@pytest.mark.parametrize("mode, state, cell, message", [
    ("rnn_tanh", (1, 2, 4), None, r"RNN's state: expected shape \(1, 3, 4\), received \(1, 2, 4\)"),
    ("lstm", (1, 1, 4), (1, 3, 4), r"RNN's state: expected shape \(1, 3, 4\), received \(1, 1, 4\)"),
    ("lstm", (1, 3, 4), (1, 3, 5), r"RNN's state_cell: expected shape \(1, 3, 4\), received \(1, 3, 5\)"),
])
def test_states_that_torch_would_read_beyond(mode, state, cell, message):
    parameters = torch.ones({"rnn_tanh": 32, "lstm": 128}[mode])
    with pytest.raises(MXNetError, match=message):
        RNN(torch.ones(5, 3, 2), parameters, torch.ones(state), None if cell is None else torch.ones(cell), mode=mode, state_size=4, num_layers=1)


def test_the_number_of_inputs():
    data, parameters, state = torch.ones(5, 3, 2), torch.ones(32), torch.ones(1, 3, 4)
    with pytest.raises(MXNetError, match=r"RNN expects 3 inputs \(data, parameters, state\) with mode='rnn_relu' .* received 4"):
        RNN(data, parameters, state, state, mode="rnn_relu", state_size=4, num_layers=1)
    with pytest.raises(MXNetError, match=r"RNN expects 4 inputs \(data, parameters, state, state_cell\) with mode='lstm' .* received 3"):
        RNN(data, parameters, state, mode="lstm", state_size=4, num_layers=1)
    with pytest.raises(MXNetError, match="RNN: `p` must be a number from 0 to 1, received 1.5"):
        RNN.parse({"mode": "gru", "state_size": 4, "num_layers": 1, "p": 1.5})


def test_parts_of_recurrent_parameters_need_not_be_cut_where_torch_cuts_them():
    vector, x, state = torch.randn(21), torch.randn(4, 2, 2), torch.randn(1, 2, 3)
    attributes = {"state_size": 3, "num_layers": 1, "mode": "rnn_tanh"}
    whole = get("RNN").fn(x, vector, state, **attributes)
    for parts in (vector.split([6, 9, 3, 3]), vector.split([10, 11])):
        torch.testing.assert_close(RNN.raw(x, Parts(parts), state, **attributes), whole)
    with pytest.raises(MXNetError, match="must have 21 elements"):
        RNN.raw(x, Parts(vector.split([6, 15])[:1]), state, **attributes)


@pytest.mark.parametrize("on_kernel", [True, False])
def test_projections_and_lengths_as_mxnet_computes_them(on_kernel, monkeypatch):
    """Literals: MXNet's on a CPU, which projects, but knows no lengths; there the second sequence was run alone, as long as it is."""
    if on_kernel and kernels.load("nn/recurrent") is None:
        pytest.skip("no C++ compiler")
    steps, batch, width, size, projection = 4, 2, 3, 64, 32
    calls, run = [], recurrent.run
    monkeypatch.setattr(recurrent, "run", lambda *a: calls.append(1) or run(*a))
    used_from(monkeypatch, 0 if on_kernel else 1 << 62, recurrent)
    data = (torch.arange(24) % 5 - 2).reshape(steps, batch, width) * 0.5

    def packed(mode, factor, **more):
        count = layout_of(mode, width, size, 2, 2, **more).total
        return (torch.arange(count) % 11 - 5) * factor

    def near(found, expected):
        torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=2e-6)
    states = torch.full((4, batch, projection), 0.1), torch.full((4, batch, size), -0.2)
    attributes = {"state_size": size, "num_layers": 2, "bidirectional": True, "state_outputs": True}
    projected = {"mode": "lstm", "projection_size": projection, **attributes}
    parameters = packed("lstm", 0.04, projection_size=projection)
    out, hidden, cell = RNN(data, parameters, *states, **projected)
    near(out[1, 0, ::9], [0.053659, 0.252349, -0.329873, -0.170014, -0.165672, 0.374144, -0.365749, 0.427572])
    near(hidden[3, 1, ::9], [0.177224, 0.004712, 0.043844, -0.255895])
    near(cell[2, 0, ::17], [0.382795, 0.039528, 0.026036, -0.170747])
    lengths = torch.tensor([4.0, 2.0])
    out, hidden, cell = RNN(data, parameters, *states, lengths, use_sequence_length=True, **projected)
    near(out[0, 1, ::9], [-0.293301, -0.038121, 0.050493, -0.174855, -0.378561, 0.512933, -0.188076, 0.120663])
    near(out[1, 1, ::9], [-0.283493, 0.040942, -0.249207, -0.302374, -0.405816, 0.577031, -0.220701, 0.042308])
    near(hidden[1, 1, ::9], [-0.233122, 0.199539, -0.228331, 0.237766])
    near(cell[3, 1, ::17], [0.312651, 0.013627, -0.470367, -0.469553])
    near(out[1, 0, ::9], [0.053659, 0.252349, -0.329873, -0.170014, -0.165672, 0.374144, -0.365749, 0.427572])
    assert out[2:, 1].abs().sum() == 0
    out, hidden = RNN(data, packed("gru", 0.02), torch.full((4, batch, size), 0.1), lengths, use_sequence_length=True, mode="gru", **attributes)
    near(out[1, 1, ::17], [-0.028709, 0.138796, -0.102068, 0.036454, 0.078236, 0.013311, 0.08926, 0.055921])
    near(hidden[3, 1, ::17], [0.0315, -0.095865, 0.181112, 0.156767])
    assert len(calls) == (3 if on_kernel else 0)
