"""Recurrent layers: values and gradients are those of MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import rnn

LAYERS = {"RNN": rnn.RNN, "LSTM": rnn.LSTM, "GRU": rnn.GRU}
X = np.cos(np.arange(18)).reshape(3, 2, 3)

# Kind, options, outputs at the last position, first four values of each state, first four of the gradient of the input.
CASES = [
    ("RNN", {}, [0, 0, 0, 0], [[0.55056, 0.66725, 1.35722, 0]], [0.19974, 0.07359, -0.16037, 0.01249]),
    ("RNN", {"bidirectional": True}, [0, 0.2199, 0.21985, 0.95913, 0, 0.07481, 0.37875, 0.97456], [[0.55056, 0.66725, 1.35722, 0]],
     [0.2755, -0.13339, -0.34687, 0.20575]),
    ("RNN", {"layout": "NTC"}, [0, 0, 0, 0], [[1.12544, 0, 1.25516, 0]], [0.29116, 0.04434, -0.26744, 0.07056]),
    ("LSTM", {}, [-0.13506, -0.24035, -0.1188, -0.23159], [[0.10939, -0.04507, -0.16961, 0.21323], [0.15449, -0.12546, -0.41381, 0.49159]],
     [-0.0958, -0.07781, 0.05417, -0.02489]),
    ("LSTM", {"bidirectional": True}, [-0.13961, -0.25285, -0.11034, 0.09505, -0.17103, -0.28249, -0.08772, 0.06759],
     [[0.10939, -0.04507, -0.16961, 0.21323], [0.15449, -0.12546, -0.41381, 0.49159]], [-0.45111, 0.23501, 0.57684, 0.39794]),
    ("LSTM", {"layout": "NTC"}, [-0.07966, -0.12869, -0.10631, -0.20496],
     [[-0.03457, 0.18512, -0.07087, 0.16173], [-0.08711, 0.3533, -0.17391, 0.33656]], [-0.13174, 0.00088, 0.13221, -0.13985]),
    ("GRU", {}, [-0.38017, -0.09135, -0.2864, 0.01495], [[0.35788, -0.07948, -0.1321, 0.78981]], [-0.12529, -0.08433, 0.08018, -0.11164]),
    ("GRU", {"bidirectional": True}, [-0.37293, -0.17561, -0.09218, 0.16133, -0.44685, -0.11752, -0.09823, -0.00964],
     [[0.35788, -0.07948, -0.1321, 0.78981]], [-0.05274, 0.28664, 0.20609, 0.14787]),
    ("GRU", {"layout": "NTC"}, [-0.21221, -0.05536, -0.28149, -0.05249], [[0.0534, 0.55452, 0.03202, 0.52024]],
     [-0.14774, 0.03756, 0.16784, -0.24917]),
]


def fill(block):
    """Values that depend on nothing but names and shapes."""
    for i, (_, p) in enumerate(sorted(block.collect_params().items())):
        p.set_data(mx.nd.array(np.sin(np.arange(np.prod(p.shape)) * 1.3 + i).reshape(p.shape) * 0.5))


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("kind,options,last,states,gradient", CASES)
def test_values(kind, options, last, states, gradient, hybridize):
    layer = LAYERS[kind](2, 2, input_size=3, **options)
    layer.initialize()
    fill(layer)
    if hybridize:
        layer.hybridize()
    x = mx.nd.array(X)
    x.attach_grad()
    begin = layer.begin_state(3 if options.get("layout") else 2)
    with mx.autograd.record():
        output, end = layer(x, begin)
        total = output.sum() + sum(s.sum() for s in end)
    total.backward()
    np.testing.assert_allclose(output[-1].asnumpy().ravel(), last, atol=2e-5)
    for state, expected in zip(end, states, strict=True):
        np.testing.assert_allclose(state.asnumpy().ravel()[:4], expected, atol=2e-5)
    np.testing.assert_allclose(x.grad.asnumpy().ravel()[:4], gradient, atol=2e-5)


@pytest.mark.parametrize("hybridize", [False, True])
def test_with_and_without_states(hybridize):
    layer = rnn.LSTM(2, input_size=3)
    layer.initialize()
    if hybridize:
        layer.hybridize()
    x = mx.nd.array(X)
    alone = layer(x)
    output, states = layer(x, layer.begin_state(batch_size=2))  # MXNet forgets the states here once traced without
    assert len(states) == 2
    np.testing.assert_allclose(output.asnumpy(), alone.asnumpy())
    np.testing.assert_allclose(layer(x).asnumpy(), alone.asnumpy())
    _, again = layer(x, states)
    assert not np.allclose(again[0].asnumpy(), states[0].asnumpy())


def test_one_state_needs_no_list():
    layer = rnn.GRU(2, input_size=3)
    layer.initialize()
    _, states = layer(mx.nd.array(X), mx.nd.zeros((1, 2, 2)))
    assert states[0].shape == (1, 2, 2)
    with pytest.raises(ValueError, match=r"Invalid recurrent state shape. Expecting \(1, 2, 2\), got \(1, 3, 2\)"):
        layer(mx.nd.array(X), mx.nd.zeros((1, 3, 2)))


def test_projection():
    layer = rnn.LSTM(4, input_size=3, projection_size=2, bidirectional=True)
    layer.initialize()
    output, (hidden, memory) = layer(mx.nd.array(X), layer.begin_state(2))
    assert (output.shape, hidden.shape, memory.shape) == ((3, 2, 4), (2, 2, 2), (2, 2, 4))
    assert layer.r0_h2r_weight.shape == (2, 4)


def test_deferred_input_size_and_repr():
    layer = rnn.LSTM(2, 2, bidirectional=True, dropout=0.5, layout="NTC")
    assert repr(layer) == "LSTM(None -> 2, NTC, num_layers=2, dropout=0.5, bidirectional)"
    layer.initialize()
    layer(mx.nd.array(X))
    assert repr(layer).startswith("LSTM(3 -> 2") and layer.r1_i2h_weight.shape == (8, 4)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_unfused_cells_do_the_same(kind, bidirectional, tmp_path):
    layer = LAYERS[kind](2, 2, input_size=3, bidirectional=bidirectional, prefix="r_")
    layer.initialize()
    fill(layer)
    stack = layer._unfuse()
    x = mx.nd.array(X)
    outputs, _ = stack.unroll(3, x, layout="TNC", merge_outputs=True)
    np.testing.assert_allclose(outputs.asnumpy(), layer(x).asnumpy(), atol=1e-6)


def test_file_names(tmp_path):
    layer = rnn.GRU(2, input_size=3, bidirectional=True)
    layer.initialize()
    path = str(tmp_path / "gru.params")
    layer.save_parameters(path)
    assert sorted(mx.nd.load(path)) == [f"_unfused.0.{d}_cell.{p}_{k}" for d in "lr" for p in ("h2h", "i2h") for k in ("bias", "weight")]
    rnn.GRU(2, input_size=3, bidirectional=True).load_parameters(path)


def test_in_a_traced_network():
    from mxnet.gluon import nn
    net = nn.HybridSequential()
    net.add(rnn.LSTM(4, layout="NTC"), nn.Dense(2, flatten=False))
    net.initialize()
    x = mx.nd.array(X)
    eager = net(x).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(x).asnumpy(), eager, rtol=1e-5, atol=1e-8)


def test_cast():
    layer = rnn.RNN(2, input_size=3, activation="tanh")
    layer.initialize()
    layer.cast("float64")
    assert layer.begin_state(2)[0].dtype == np.float64
    assert layer(mx.nd.array(X, dtype="float64")).dtype == np.float64


def test_errors():
    with pytest.raises(AssertionError, match="Invalid layout CNT; must be one of"):
        rnn.LSTM(2, layout="CNT")
    with pytest.raises(AssertionError, match="unknown kind of recurrent layer 'rnn_elu'"):
        rnn.RNN(2, activation="elu")
    with pytest.raises(AssertionError, match="no cells with a projection"):
        rnn.LSTM(2, projection_size=1)._unfuse()


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("make", [rnn.RNN, rnn.GRU, rnn.LSTM])
def test_the_size_of_numpy_arrays_is_found_from_the_first_batch(make, hybridize):
    with mx.util.np_shape(), mx.util.np_array(True):
        layer = make(5, num_layers=2, bidirectional=True)
        layer.initialize()
        if hybridize:
            layer.hybridize()
        y = layer(mx.np.ones((3, 2, 4)))
        assert type(y) is mx.np.ndarray and y.shape == (3, 2, 10) and layer.l0_i2h_weight.shape[1] == 4
