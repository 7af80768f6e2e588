"""Symbolic cells. Literal numbers and names come from MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError


def evaluate(outputs, shape):
    net = mx.sym.Group(outputs)
    exe = net.simple_bind(mx.cpu(), data=shape, grad_req="null")
    for value in exe.arg_dict.values():
        value[:] = np.arange(value.size).reshape(value.shape) % 5 / 5 - .3
    return net, [o.asnumpy() for o in exe.forward()]


def unrolled(cell, layout="NTC"):
    outputs, states = cell.unroll(2, mx.sym.var("data"), layout=layout, merge_outputs=True)
    return evaluate([outputs, *states], (1, 2, 3) if layout == "NTC" else (2, 1, 3))


def test_rnn_cell():
    net, (outputs, state) = unrolled(mx.rnn.RNNCell(2))
    np.testing.assert_allclose(outputs, [[[-.454216, -.353992], [-.535864, .078221]]], atol=1e-6)
    np.testing.assert_allclose(state, [[-.535864, .078221]], atol=1e-6)
    assert net.list_arguments() == ["data", "rnn_i2h_weight", "rnn_i2h_bias", "rnn_h2h_weight", "rnn_h2h_bias"]
    assert net.list_outputs()[1] == "rnn_t1_out_output"


def test_lstm_cell():
    net, (outputs, h, c) = unrolled(mx.rnn.LSTMCell(2))
    np.testing.assert_allclose(outputs, [[[.114405, -.10314], [.209058, -.249638]]], atol=1e-6)
    np.testing.assert_allclose(h, [[.209058, -.249638]], atol=1e-6)
    np.testing.assert_allclose(c, [[.39823, -.485138]], atol=1e-6)
    assert net.list_outputs()[1:] == ["lstm_t1_out_output", "lstm_t1_state_output"]
    inside = net.get_internals().list_outputs()
    assert {"lstm_t0_slice_output3", "lstm_t0_i_output", "lstm_t0_f_output", "lstm_t0_c_output", "lstm_t0_o_output",
            "lstm_begin_state_0_output", "lstm_begin_state_1_output"} <= set(inside)


def test_gru_cell():
    net, (outputs, _) = unrolled(mx.rnn.GRUCell(2))
    np.testing.assert_allclose(outputs, [[[.258966, -.116449], [.402895, -.284018]]], atol=1e-6)
    inside = net.get_internals().list_outputs()
    assert {"gru_t0__i2h_output", "gru_t0__i2h_slice_output0", "gru_t1__r_act_output", "gru_t0_out_output"} <= set(inside)


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


def test_fused_cell():
    cell = mx.rnn.FusedRNNCell(2, 2, "lstm", bidirectional=True, get_next_state=True)
    net, (outputs, h, c) = unrolled(cell, "TNC")
    np.testing.assert_allclose(outputs, [[[-.061894, .057781, .114548, .23868]], [[-.101878, .087956, .050686, .175185]]], atol=1e-5)
    np.testing.assert_allclose(h[:, 0], [[.01704, .125164], [.136574, -.067008], [-.101878, .087956], [.114548, .23868]], atol=1e-5)
    np.testing.assert_allclose(c[:, 0], [[.030442, .233602], [.279526, -.103762], [-.165301, .172323], [.213635, .423758]], atol=1e-5)
    assert net.list_arguments() == ["data", "lstm_parameters"]


def test_fused_parameters_unpack_in_mxnets_order():
    cell = mx.rnn.FusedRNNCell(2, 2, "gru", bidirectional=True, prefix="g_")
    packed = mx.nd.arange(180)
    unpacked = cell.unpack_weights({"g_parameters": packed})
    first = {name: (value.shape, float(value.asnumpy().ravel()[0])) for name, value in unpacked.items()}
    assert len(first) == 48
    for name, expected in {"l0_i2h_r_weight": ((2, 3), 0), "l0_h2h_o_weight": ((2, 2), 26), "r0_i2h_r_weight": ((2, 3), 30),
                           "l1_i2h_z_weight": ((2, 4), 68), "r1_h2h_o_weight": ((2, 2), 128), "l0_i2h_r_bias": ((2,), 132),
                           "r0_h2h_z_bias": ((2,), 152), "r1_h2h_o_bias": ((2,), 178)}.items():
        assert first[f"g_{name}"] == expected
    again = cell.pack_weights(unpacked)
    assert list(again) == ["g_parameters"] and (again["g_parameters"].asnumpy() == packed.asnumpy()).all()
    with pytest.raises(MXNetError, match="were they made for another cell"):
        cell.unpack_weights({"g_parameters": mx.nd.zeros((181,))})


@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_unfused_cells_compute_the_same(mode, bidirectional):
    fused = mx.rnn.FusedRNNCell(3, 2, mode, bidirectional, prefix="f_")
    stack = fused.unfuse()
    data = np.random.RandomState(0).rand(2, 4, 5).astype("float32")
    one, _ = fused.unroll(4, mx.sym.var("data"), layout="TNC", merge_outputs=True)
    many, _ = stack.unroll(4, mx.sym.var("data"), merge_outputs=True)
    exe = one.simple_bind(mx.cpu(), data=(4, 2, 5), grad_req="null")
    weights = mx.nd.array(np.random.RandomState(1).rand(exe.arg_dict["f_parameters"].size) - .5)
    exe.arg_dict["f_parameters"][:] = weights
    expected = exe.forward(data=mx.nd.array(data.swapaxes(0, 1)))[0].asnumpy().swapaxes(0, 1)
    params = stack.pack_weights(fused.unpack_weights({"f_parameters": weights}))
    exe = many.simple_bind(mx.cpu(), data=(2, 4, 5), grad_req="null")
    exe.copy_params_from(params)
    np.testing.assert_allclose(exe.forward(data=mx.nd.array(data))[0].asnumpy(), expected, rtol=1e-4, atol=1e-5)


def test_weights_pack_and_unpack():
    cell = mx.rnn.LSTMCell(2, prefix="c_")
    args = {f"c_{g}_{k}": mx.nd.array(np.random.rand(8, *s)) for g in ("i2h", "h2h") for k, s in (("weight", (2,)), ("bias", ()))}
    unpacked = cell.unpack_weights(args)
    assert sorted(unpacked)[:2] == ["c_h2h_c_bias", "c_h2h_c_weight"] and unpacked["c_i2h_f_weight"].shape == (2, 2)
    np.testing.assert_array_equal(unpacked["c_i2h_f_weight"].asnumpy(), args["c_i2h_weight"].asnumpy()[2:4])
    packed = cell.pack_weights(unpacked)
    assert sorted(packed) == sorted(args)
    for name, value in packed.items():
        np.testing.assert_array_equal(value.asnumpy(), args[name].asnumpy())


def test_sequences_as_lists_and_as_one_symbol():
    cell = mx.rnn.RNNCell(2)
    steps, _ = cell.unroll(2, [mx.sym.var("a"), mx.sym.var("b")])
    assert isinstance(steps, list) and mx.sym.Group(steps).infer_shape(a=(1, 3), b=(1, 3))[1] == [(1, 2)] * 2
    merged, _ = cell.unroll(2, mx.sym.var("data"), layout="TNC", merge_outputs=True)
    assert merged.infer_shape(data=(2, 1, 3))[1] == [(2, 1, 2)]
    with pytest.raises(MXNetError, match="expected 3 steps, received 1 inputs"):
        cell.unroll(3, [mx.sym.var("a")])
    with pytest.raises(MXNetError, match="unroll needs inputs"):
        cell.unroll(3, None)


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
    with pytest.raises(MXNetError, match="ZoneoutCell needs a cell that can step"):
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


def test_shared_parameters():
    params = mx.rnn.RNNParams("shared_")
    a, b = mx.rnn.RNNCell(2, prefix="a_", params=params), mx.rnn.RNNCell(2, prefix="b_", params=params)
    x = mx.sym.var("data")
    first, _ = a(x, a.begin_state())
    second, _ = b(first, b.begin_state())
    assert second.list_arguments() == ["data", "shared_i2h_weight", "shared_i2h_bias", "shared_h2h_weight", "shared_h2h_bias"]


@pytest.mark.parametrize("kind, states", [(mx.rnn.ConvRNNCell, 1), (mx.rnn.ConvLSTMCell, 2), (mx.rnn.ConvGRUCell, 1)])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_convolutional_cells(kind, states, layout):
    shape = (1, 2, 4, 5) if layout == "NCHW" else (1, 4, 5, 2)
    cell = kind(shape, 3, prefix="c_", conv_layout=layout)
    outputs, last = cell.unroll(2, [mx.sym.var("a"), mx.sym.var("b")])
    net = mx.sym.Group(outputs)
    expected = (1, 3, 4, 5) if layout == "NCHW" else (1, 4, 5, 3)
    assert net.infer_shape(a=shape, b=shape)[1] == [expected] * 2 and len(last) == states
    assert set(net.list_arguments()) == {"a", "b", "c_i2h_weight", "c_i2h_bias", "c_h2h_weight", "c_h2h_bias"}
    with pytest.raises(MXNetError, match="h2h_kernel must be odd"):
        kind(shape, 3, h2h_kernel=(2, 2))


def test_unknown_modes():
    with pytest.raises(MXNetError, match="unknown mode 'lst'; expected one of"):
        mx.rnn.FusedRNNCell(2, mode="lst")
