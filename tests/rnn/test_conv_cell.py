import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError


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


@pytest.mark.parametrize("kind, expected", [  # computed by hand: kernels of size 1 make each pixel a plain cell
    (mx.rnn.ConvRNNCell, np.tanh(1 + 0.5)),
    (mx.rnn.ConvLSTMCell, 1 / (1 + np.exp(-1.5)) * np.tanh(1 / (1 + np.exp(-1.5)) * np.tanh(1.5))),
    (mx.rnn.ConvGRUCell, (1 - 1 / (1 + np.exp(-1.5))) * np.tanh(1 + 0.5 / (1 + np.exp(-1.5)) * 0 + 0.5))])
def test_values_at_each_pixel(kind, expected):
    cell = kind((1, 1, 2, 2), 1, h2h_kernel=(1, 1), i2h_kernel=(1, 1), i2h_pad=(0, 0), activation="tanh", prefix="c_")
    output, _ = cell(mx.sym.var("x"), cell.begin_state(func=mx.sym.zeros, shape=(1, 1, 2, 2)))
    exe = output.simple_bind(mx.cpu(), x=(1, 1, 2, 2), grad_req="null")
    for name, value in {"x": 1, "c_i2h_weight": 1, "c_i2h_bias": 0.5, "c_h2h_weight": 1, "c_h2h_bias": 0}.items():
        exe.arg_dict[name][:] = value
    np.testing.assert_allclose(exe.forward()[0].asnumpy(), np.full((1, 1, 2, 2), expected), rtol=1e-5)


def test_states_have_the_size_of_the_convolved_input():
    cell = mx.rnn.ConvLSTMCell((1, 2, 8, 8), 3, i2h_stride=(2, 2), conv_layout="NCHW")
    assert cell.state_info == [{"shape": (0, 3, 4, 4), "__layout__": "NCHW"}] * 2
    with pytest.raises(NotImplementedError, match="use ConvRNNCell, ConvLSTMCell or ConvGRUCell"):
        mx.rnn.BaseConvRNNCell((1, 1, 4, 4), 1, (1, 1), (1, 1), (1, 1), (1, 1), (0, 0), (1, 1), None, None, None, None, "tanh")(None, None)
