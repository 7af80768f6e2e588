"""Checkpoints of recurrent layers that MXNet 2 wrote: one vector a layer."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon


def test_a_vector_becomes_the_parameters_of_the_layer(tmp_path):
    net = gluon.nn.HybridSequential()
    net.add(gluon.rnn.LSTM(1, input_size=2))
    path = str(tmp_path / "net.params")
    mx.nd.save(path, {"0.rnn_param": mx.nd.arange(20)})
    net.load_parameters(path)
    layer = net[0]
    assert layer.l0_i2h_weight.data().asnumpy().tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert layer.l0_h2h_weight.data().asnumpy().tolist() == [[8], [9], [10], [11]]
    assert layer.l0_i2h_bias.data().asnumpy().tolist() == [12, 13, 14, 15] and layer.l0_h2h_bias.data().asnumpy().tolist() == [16, 17, 18, 19]


def test_layers_directions_and_projections():
    gru = gluon.rnn.GRU(1, num_layers=2, bidirectional=True)
    gru.load_dict({"rnn_param": mx.nd.arange(54)})
    assert gru.l0_i2h_weight.shape == (3, 1) and gru.r1_i2h_weight.shape == (3, 2)
    assert gru.r0_h2h_weight.data().asnumpy().tolist() == [[9], [10], [11]]
    assert gru.r1_i2h_weight.data().asnumpy().tolist() == [[21, 22], [23, 24], [25, 26]]
    assert gru.r1_h2h_bias.data().asnumpy().tolist() == [51, 52, 53]
    projected = gluon.rnn.LSTM(2, projection_size=1, input_size=1)
    projected.load_dict({"arg:rnn_param": mx.nd.arange(34)})
    assert projected.l0_h2r_weight.data().asnumpy().tolist() == [[16, 17]] and projected.l0_i2h_bias.data().asnumpy().tolist() == list(range(18, 26))


def test_a_loaded_layer_computes():
    layer = gluon.rnn.RNN(1, input_size=1, activation="relu")
    layer.load_dict({"rnn_param": mx.nd.array([2, 3, 0.5, 0.25])})
    np.testing.assert_allclose(layer(mx.nd.array([[[1]], [[1]]])).asnumpy().ravel(), [2.75, 11.0])


def test_errors():
    layer = gluon.rnn.LSTM(2)
    with pytest.raises(mx.MXNetError, match="rnn_param: 1 lstm layers of 2 units have 32 parameters and 8 more .* received a vector of 33"):
        layer.load_dict({"rnn_param": mx.nd.arange(33)})
    with pytest.raises(ValueError, match="'1.rnn_param'"):
        gluon.nn.HybridSequential().load_dict({"1.rnn_param": mx.nd.arange(3)})
