"""Symbolic cells. Literal numbers and names come from MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError
from mxnet.rnn.rnn_cell import as_steps
from rnn_checks import unrolled


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


def test_shared_parameters():
    params = mx.rnn.RNNParams("shared_")
    a, b = mx.rnn.RNNCell(2, prefix="a_", params=params), mx.rnn.RNNCell(2, prefix="b_", params=params)
    x = mx.sym.var("data")
    first, _ = a(x, a.begin_state())
    second, _ = b(first, b.begin_state())
    assert second.list_arguments() == ["data", "shared_i2h_weight", "shared_i2h_bias", "shared_h2h_weight", "shared_h2h_bias"]


def test_steps_of_a_sequence_in_another_layout():
    merged, axis = as_steps(2, mx.sym.var("data"), "NTC", True, in_layout="TNC")
    assert axis == 1 and merged.eval(data=mx.nd.arange(6).reshape((2, 3, 1)))[0].asnumpy()[..., 0].tolist() == [[0, 3], [1, 4], [2, 5]]
