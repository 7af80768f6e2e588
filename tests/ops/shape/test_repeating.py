"""Errors of the repeating family; values are compared in test_arrays_against_oracle.py."""
import pytest

import mxnet as mx
from mxnet.base import MXNetError


@pytest.mark.parametrize("call, message", [
    (lambda: mx.nd.repeat(mx.nd.zeros((3,)), repeats=-1), "repeats cannot be a negative number, received -1"),
    (lambda: mx.nd.tile(mx.nd.zeros((3,)), reps=(1, 0)), r"`reps` must be positive, received \(1, 0\)"),
    (lambda: mx.nd.reverse(mx.nd.zeros((3,)), axis=4), r"reverse: `axis` must be in \[-1, 0\]"),
    (lambda: mx.nd.pad(mx.nd.zeros((3,)), mode="edge", pad_width=(1, 1)), "Pad: `data` must be 4-D or 5-D"),
    (lambda: mx.nd.pad(mx.nd.zeros((1, 1, 2, 2)), mode="edge", pad_width=(1, 1)), "`pad_width` must have 8 entries"),
    (lambda: mx.nd.pad(mx.nd.zeros((1, 1, 2, 2)), mode="edge", pad_width=(0, 1, 0, 0, 1, 1, 1, 1)), "first four entries .* must be 0"),
    (lambda: mx.nd.pad(mx.nd.zeros((1, 1, 2, 2)), mode="reflect", pad_width=(0, 0, 0, 0, 2, 1, 1, 1)), "pads below the axis's length"),
    (lambda: mx.nd.pad(mx.nd.zeros((1, 1, 2, 2)), mode="wrap", pad_width=(0,) * 8), "`mode` must be one of 'constant', 'edge', 'reflect'"),
    (lambda: mx.nd.broadcast_to(mx.nd.zeros((3,)), shape=(2, 3)), "number of axes differs"),
    (lambda: mx.nd.broadcast_to(mx.nd.zeros((3,)), shape=(4,)), r"shape \(3,\) cannot be broadcast to \(4,\)"),
    (lambda: mx.nd.broadcast_axis(mx.nd.zeros((1, 3)), axis=1, size=2), "axes of size 1 expected, received axis 1"),
    (lambda: mx.nd.broadcast_axis(mx.nd.zeros((1, 3)), axis=(0, 1), size=2), "same length"),
    (lambda: mx.nd.broadcast_like(mx.nd.zeros((2, 3)), mx.nd.zeros((5, 6)), lhs_axes=(0,), rhs_axes=(1,)), "must have size 1"),
    (lambda: mx.nd.broadcast_like(mx.nd.zeros((3,)), mx.nd.zeros((5, 3))), "say which axes with lhs_axes and rhs_axes"),
    (lambda: mx.nd.diag(mx.nd.zeros((2, 3)), k=5), "no diagonal 5 in a plane of 2 x 3"),
    (lambda: mx.nd.diag(mx.nd.zeros((2, 3)), axis1=1, axis2=1), "two different axes expected, received axis1=1 and axis2=1"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call()


def test_zero_repeats_give_nothing():
    assert mx.nd.repeat(mx.nd.zeros((3,)), repeats=0).shape == (0,)


def test_broadcast_is_a_copy():
    x = mx.nd.zeros((1, 2))
    y = mx.nd.broadcast_to(x, shape=(2, 2))
    y[0] = 1
    assert x.asnumpy().tolist() == [[0, 0]] and y.asnumpy().tolist() == [[1, 1], [0, 0]]


def test_partial_shapes():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    assert mx.sym.broadcast_like(a, b).infer_shape_partial(a=(1, 4), b=(0, 4))[1] == [(0, 4)]  # MXNet: (1, 4), whatever b is
    assert mx.sym.pad(a, mode="edge", pad_width=(0, 0, 0, 0, 1, 1, 1, 1)).infer_shape_partial(a=(1, 3, 3, 2))[1] == [(1, 3, 5, 4)]
    assert mx.sym.reverse(a, axis=0).infer_shape_partial(a=(0, 4))[1] == [(0, 4)]


def test_diagonal_just_beside_the_plane_is_empty():
    assert mx.nd.diag(mx.nd.ones((1, 2, 3)), k=-1, axis1=0, axis2=2).shape == (2, 0)
