import numpy as onp
import pytest

import mxnet as mx

xp = mx.np.array_api


def test_joining():
    a, b = xp.asarray([[1, 2]], dtype=xp.uint8), xp.asarray([[3, 4]], dtype=xp.int8)
    out = xp.concat([a, b])
    assert out.tolist() == [[1, 2], [3, 4]] and out.dtype == xp.int16 and xp.concat([a, b], axis=None).tolist() == [1, 2, 3, 4]
    assert xp.stack([a, b], axis=-1).shape == (1, 2, 2) and [u.tolist() for u in xp.unstack(xp.asarray([[1, 2], [3, 4]]), axis=1)] == [[1, 3], [2, 4]]
    with pytest.raises(mx.MXNetError, match="concat: arrays with at least one axis expected, received scalars; use stack"):
        xp.concat([xp.asarray(1), xp.asarray(2)])


@pytest.mark.parametrize("dtype", ["float32", "uint16", "bool", "complex64"])
def test_moving_as_in_numpy(dtype):
    host = onp.arange(24).reshape(2, 3, 4).astype(dtype)
    x = xp.asarray(host)
    for found, expected in ((xp.flip(x), onp.flip(host)), (xp.flip(x, axis=-1), onp.flip(host, -1)), (xp.roll(x, 5), onp.roll(host, 5)),
                            (xp.roll(x, (1, -2), axis=(0, 2)), onp.roll(host, (1, -2), (0, 2))),
                            (xp.permute_dims(x, (2, 0, 1)), host.transpose(2, 0, 1)),
                            (xp.moveaxis(x, 0, -1), onp.moveaxis(host, 0, -1)), (xp.repeat(x, 2, axis=1), onp.repeat(host, 2, 1)),
                            (xp.repeat(x, xp.asarray([1, 2]), axis=0), onp.repeat(host, [1, 2], 0)),
                            (xp.repeat(x, xp.asarray([2, 0], dtype=xp.int8), axis=0), onp.repeat(host, [2, 0], 0)),
                            (xp.tile(x, (2, 1)), onp.tile(host, (2, 1))),
                            (xp.matrix_transpose(x), host.swapaxes(-1, -2)), (xp.reshape(x, (4, -1)), host.reshape(4, -1)),
                            (xp.expand_dims(x, axis=1), host[:, None]), (xp.broadcast_to(x[:1], (2, 3, 4)), onp.broadcast_to(host[:1], (2, 3, 4)))):
        onp.testing.assert_array_equal(found.asnumpy(), expected)


def test_axes_that_are_not_there():
    with pytest.raises(IndexError, match="flip: axis 3 is out of range for an array of 2 axes"):
        xp.flip(xp.ones((2, 2)), axis=3)
    with pytest.raises(IndexError, match="permute_dims: an axis must not be named twice"):
        xp.permute_dims(xp.ones((2, 2)), (0, 0))
    with pytest.raises(ValueError, match=r"squeeze: axes of size 1 expected, received 0 of an array of shape \(2, 1\)"):
        xp.squeeze(xp.ones((2, 1)), 0)
    with pytest.raises(mx.MXNetError, match="matrix_transpose: matrices expected"):
        xp.matrix_transpose(xp.ones(2))


def test_broadcasting():
    a, b = xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))
    assert a.shape == b.shape == (2, 3) and xp.squeeze(xp.ones((2, 1)), 1).shape == (2,)
