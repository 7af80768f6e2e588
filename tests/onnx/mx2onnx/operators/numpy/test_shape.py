import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check, exported, run

X, Y = mx.sym.var("x").as_np_ndarray(), mx.sym.var("y").as_np_ndarray()
VALUES = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
VARYING = dict(varying=[(None, 3, None)], others=[{"x": np.arange(75, dtype=np.float32).reshape(5, 3, 5)}])


@pytest.mark.parametrize("function", [
    lambda x: x.reshape(-1), lambda x: mx.sym.np.transpose(x), lambda x: mx.sym.np.transpose(x, (1, 0, 2)), lambda x: mx.sym.np.moveaxis(x, 0, -1),
    lambda x: mx.sym.np.expand_dims(x, 1), lambda x: mx.sym.np.squeeze(mx.sym.np.expand_dims(x, 1), 1), lambda x: mx.sym.np.flip(x, 1),
    lambda x: mx.sym.np.swapaxes(x, 0, 1), lambda x: mx.sym.npx.reshape(x, (-2, -5)), lambda x: mx.sym.np.roll(x, 2, 1),
    lambda x: mx.sym.np.pad(x, ((0, 0), (1, 2), (0, 1))), lambda x: mx.sym.np.tile(x, (1, 2, 1)), lambda x: mx.sym.np.repeat(x, 2, 1),
    lambda x: mx.sym.np.concatenate([x, x], axis=1), lambda x: mx.sym.np.stack([x, x], axis=1), lambda x: mx.sym.np.full_like(x, 3.0),
    lambda x: mx.sym.np.vstack([x, x]), lambda x: mx.sym.np.hstack([x, x]), lambda x: mx.sym.np.dstack([x, x])])
def test_any_size(function):
    check(function(X), {"x": VALUES}, **VARYING)


@pytest.mark.parametrize("function", [
    lambda x: x.reshape((4, -1)), lambda x: mx.sym.np.roll(x, 3), lambda x: mx.sym.np.broadcast_to(x, (5, 2, 3, 4)), lambda x: mx.sym.np.tril(x, 1),
    lambda x: mx.sym.np.hsplit(x, 3)[1], lambda x: mx.sym.np.split(x, 2, axis=2)[0], lambda x: mx.sym.np.atleast_2d(x.reshape(-1)),
    lambda x: mx.sym.np.column_stack([x.reshape(-1), x.reshape(-1)]), lambda x: x[:, 1], lambda x: x[0, 1:, ::2]])
def test_one_size(function):
    check(function(X), {"x": VALUES})


def test_several_open_sizes():
    with pytest.raises(mx.MXNetError, match=r"a reshape to \(-2, -3, -2\), of which several sizes may vary; npx.reshape has codes for that"):
        check(mx.sym.npx.reshape(X, (-2, -3, -2)), {"x": VALUES[:, :1]}, varying=[(None, 1, None)])


@pytest.mark.parametrize("make", [
    lambda np: np.ones((2, 3, 4)), lambda np: np.zeros((3, 4)), lambda np: np.arange(4), lambda np: np.arange(1, 3, 0.5), lambda np: np.eye(3, 4, 1),
    lambda np: np.hanning(4), lambda np: np.hamming(4), lambda np: np.blackman(4), lambda np: np.logspace(0, 1, 4), lambda np: np.indices((3, 4))[1]])
def test_constants(make):
    check(X + make(mx.sym.np), {"x": VALUES})


def test_drawn_numbers():
    inputs = {"x": np.zeros((3, 50), np.float32)}
    for made, low, high in ((mx.sym.np.random.uniform(2, 3, size=(3, 50)), 2, 3), (mx.sym.np.random.normal(5, 0.1, size=(3, 50)), 4, 6)):
        (found,) = run(exported(X + made, inputs), inputs)
        assert found.shape == (3, 50) and low <= found.min() < found.max() <= high
