"""Cells of gluon.contrib."""
import numpy as np
import pytest

import mxnet as mx
from layer_checks import ready
from mxnet.gluon.contrib import rnn as contrib

# Outputs of MXNet 1.9.1 at the last step: the first values.
VALUES = {
    ("RNN", 1): [0.37009, 0.4981, 0.36314, 0.27749],
    ("RNN", 2): [-0.97062, -0.97195, 0.97243, 0.99884],
    ("RNN", 3): [-0.46828, 0.70767, 0.9898, 0.83701],
    ("LSTM", 1): [-0.16048, -0.14756, -0.14986, -0.15317],
    ("LSTM", 2): [0.01133, -0.19733, 0.24676, -0.03213],
    ("LSTM", 3): [-0.12991, -0.48821, -0.3225, -0.00567],
    ("GRU", 1): [-0.43121, -0.22391, -0.2777, -0.34795],
    ("GRU", 2): [-0.2711, -0.24041, -0.76122, -0.76485],
    ("GRU", 3): [-0.11156, -0.578, -0.04077, 0.31314],
}


@pytest.mark.parametrize("kind,gates,states", [("RNN", 1, 1), ("LSTM", 4, 2), ("GRU", 3, 1)])
@pytest.mark.parametrize("n,layout,shape,state", [
    (1, "NCW", (2, 7), (4, 7)), (2, "NCHW", (2, 6, 5), (4, 6, 5)), (3, "NCDHW", (1, 3, 4, 5), (4, 3, 4, 5))])
def test_convolutional_cells(kind, gates, states, n, layout, shape, state):
    cell = ready(getattr(contrib, f"Conv{n}D{kind}Cell")(shape, 4, 3, 3, i2h_pad=1))
    assert [s["shape"] for s in cell.state_info(2)] == [(2, *state)] * states
    assert cell.h2h_weight.shape == (4 * gates, 4) + (3,) * n
    assert repr(cell) == f"Conv{n}D{kind}Cell({shape[0]} -> {4 * gates}, tanh, {layout})"
    x = mx.nd.array(np.cos(np.arange(2 * 2 * np.prod(shape))).reshape(2, 2, *shape))
    outputs, end = cell.unroll(2, x, layout="NT" + layout[1:], merge_outputs=False)
    assert [o.shape for o in outputs] == [(2, *state)] * 2 and len(end) == states
    np.testing.assert_allclose(outputs[1].asnumpy().ravel()[:4], VALUES[kind, n], atol=2e-5)


def test_channels_last_and_errors():
    cell = contrib.Conv2DLSTMCell((6, 5, 3), 4, 3, 3, conv_layout="NHWC")
    assert cell.i2h_weight.shape == (16, 3, 3, 3) and cell.state_info(1)[0]["shape"] == (1, 4, 3, 4)
    with pytest.raises(AssertionError, match="h2h_kernel must be of odd sizes"):
        contrib.Conv1DRNNCell((2, 7), 4, 3, 2)
    with pytest.raises(AssertionError, match="for 2D convolution, i2h_kernel must be a number or a list of 2 ints"):
        contrib.Conv2DGRUCell((2, 7, 7), 4, (3,), 3)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("dims, layout", [(1, "NCW"), (2, "NCHW"), (3, "NCDHW")])
def test_what_is_left_out_fits_the_number_of_axes(kind, dims, layout):
    make = getattr(contrib, f"Conv{dims}D{kind}Cell")
    plain, full = (make((2, *(6,) * dims), 4, 3, (3,) * dims, *more, prefix="c_") for more in (
        (), ((0,) * dims, (1,) * dims, (1,) * dims, None, None, "zeros", "zeros", layout, "tanh")))
    shapes = [{name: p.shape for name, p in cell.collect_params().items()} for cell in (plain, full)]
    assert shapes[0] == shapes[1] and repr(plain) == repr(full) and layout in repr(plain)
    assert plain.state_info(5) == full.state_info(5) and plain.state_info(5)[0]["shape"] == (5, 4, *(4,) * dims)
    assert f"tuple of {dims} int" in make.__doc__ and repr(layout) in make.__doc__
