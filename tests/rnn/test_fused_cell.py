"""Stacks of layers in one operator. Literal numbers and names come from MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError
from rnn_checks import unrolled


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


def test_unknown_modes():
    with pytest.raises(MXNetError, match="unknown mode 'lst'; expected one of"):
        mx.rnn.FusedRNNCell(2, mode="lst")


def test_views_of_packed_weights():
    cell = mx.rnn.FusedRNNCell(2, num_layers=2, mode="gru", prefix="g_")
    parts = cell._slice_weights(mx.nd.arange(78), 3, 2)
    assert len(parts) == 24 and parts["g_l0_h2h_o_weight"].asnumpy().tolist() == [[26, 27], [28, 29]]
    assert parts["g_l0_h2h_r_bias"].asnumpy().tolist() == [60, 61]
    with pytest.raises(mx.MXNetError, match="78 packed parameters expected of layers with 3 inputs and 2 states, received 10"):
        cell._slice_weights(mx.nd.arange(10), 3, 2)
