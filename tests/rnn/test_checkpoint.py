"""Checkpoints with unpacked weights."""
import numpy as np
import pytest

import mxnet as mx


def test_round_trip_between_fused_and_stepped_cells(tmp_path):
    fused = mx.rnn.FusedRNNCell(2, mode="lstm", prefix="f_")
    net, _ = fused.unroll(2, mx.sym.var("data"), layout="TNC", merge_outputs=True)
    size = net.infer_shape(data=(2, 1, 3))[0][net.list_arguments().index("f_parameters")]
    weights = mx.nd.array(np.random.rand(*size))
    prefix = str(tmp_path / "m")
    mx.rnn.do_rnn_checkpoint(fused, prefix, period=2)(0, net, {"f_parameters": weights}, {})
    assert not list(tmp_path.iterdir())
    mx.rnn.do_rnn_checkpoint(fused, prefix, period=2)(1, net, {"f_parameters": weights}, {})
    assert "arg:f_l0_i2h_f_weight" in mx.nd.load(f"{prefix}-0002.params")
    symbol, arg, aux = mx.rnn.load_rnn_checkpoint([fused], prefix, 2)
    assert symbol.list_arguments() == net.list_arguments() and aux == {}
    np.testing.assert_array_equal(arg["f_parameters"].asnumpy(), weights.asnumpy())
    _, stepped, _ = mx.rnn.load_rnn_checkpoint(fused.unfuse(), prefix, 2)
    assert sorted(stepped) == ["f_l0_h2h_bias", "f_l0_h2h_weight", "f_l0_i2h_bias", "f_l0_i2h_weight"]


def test_the_old_way_to_unroll_warns():
    with pytest.warns(UserWarning, match="rnn_unroll is the old form; call cell.unroll"):
        outputs, _ = mx.rnn.rnn_unroll(mx.rnn.RNNCell(2), 2, mx.sym.var("data"))
    assert len(outputs) == 2
