"""Reshape's codes, partial shapes, and errors of the reshaping family; values are compared in test_arrays_against_oracle.py."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.ops.shape.reshaping import infer_reshape


@pytest.mark.parametrize("target, source, reverse, expected", [
    ((4, 0, 2), (2, 3, 4), False, (4, 3, 2)), ((-1,), (2, 3, 4), False, (24,)), ((-2,), (2, 3, 4), False, (2, 3, 4)),
    ((2, -2), (2, 3, 4), False, (2, 3, 4)), ((-3, 4), (2, 3, 4), False, (6, 4)), ((0, -3), (2, 3, 4), False, (2, 12)),
    ((-4, 1, 2, -2), (2, 3, 4), False, (1, 2, 3, 4)), ((2, -4, -1, 3, -2), (2, 3, 4), False, (2, 1, 3, 4)),
    ((-1, 0), (10, 5, 4), False, (40, 5)), ((-1, 0), (10, 5, 4), True, (50, 4)),
    ((2, -1), (-1, 4), False, (2, -1)), ((0, -1), (-1, 4, 2), False, (-1, -1)), ((-3, 0), (-1, 4, 3), False, (-1, 3)),
    ((-4, 2, -1, 0), (-1, 4), False, (2, -1, 4)),
])
def test_reshape_codes(target, source, reverse, expected):
    assert infer_reshape(target, source, reverse) == expected


@pytest.mark.parametrize("target, message", [
    ((5, 5), r"cannot reshape an array of shape \(2, 3, 4\) \(24 elements\) into \(5, 5\) \(25 elements\)"),
    ((-1, 5), r"into \(4, 5\)"), ((-1, -1), "one and only one -1 can be inferred"), ((-7, 1), r"unknown code -7"),
    ((0, 0, 0, 0), "code 0 .* needs axis 3"), ((-4, 2), "must be followed by two sizes"), ((-4, -1, -1, -2), "only one of the two sizes"),
    ((-4, 3, 3, -2), "splits an axis of size 2 into 3 x 3"),
])
def test_reshape_errors(target, message):
    with pytest.raises(MXNetError, match=message):
        mx.nd.reshape(mx.nd.zeros((2, 3, 4)), shape=target)


@pytest.mark.parametrize("symbol, given, arguments, outputs", [
    (lambda a, b: mx.sym.reshape(a, shape=(2, 8)), {"a": (0, 4)}, [(4, 4)], [(2, 8)]),
    (lambda a, b: mx.sym.reshape(a, shape=(2, -1)), {"a": (0, 4)}, [(0, 4)], [(2, 0)]),
    (lambda a, b: mx.sym.transpose(a, axes=(0, 3, 2, 1)), {"a": (0, 3, 224, 224)}, [(0, 3, 224, 224)], [(0, 224, 224, 3)]),
    (lambda a, b: mx.sym.expand_dims(a, axis=1) + b, {"a": (0, 4), "b": (2, 1, 4)}, [(2, 4), (2, 1, 4)], [(2, 1, 4)]),
    (lambda a, b: mx.sym.transpose(a) + b, {"a": (0, 4), "b": (4, 3)}, [(3, 4), (4, 3)], [(4, 3)]),
    (lambda a, b: mx.sym.swapaxes(a, dim1=0, dim2=1) + b, {"a": (0, 4), "b": (4, 3)}, [(3, 4), (4, 3)], [(4, 3)]),
    (lambda a, b: mx.sym.squeeze(a, axis=0), {"a": (1, 4)}, [(1, 4)], [(4,)]),
    (lambda a, b: mx.sym.shape_array(a), {"a": (0, 4)}, [(0, 4)], [(2,)]),
])
def test_partial_shapes(symbol, given, arguments, outputs):
    found = symbol(mx.sym.var("a"), mx.sym.var("b")).infer_shape_partial(**given)
    assert (found[0], found[1]) == (arguments, outputs)


def test_transpose_is_a_copy():
    x = mx.nd.arange(6).reshape((2, 3))
    y = mx.nd.transpose(x)
    y[:] = 0
    assert x.asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert y.as_torch().is_contiguous()


@pytest.mark.parametrize("call, message", [
    (lambda x: mx.nd.squeeze(x, axis=0), r"axis 0 of shape .* has 2 entries; only axes of length 1 can go"),
    (lambda x: mx.nd.squeeze(x, axis=5), r"squeeze: `axis` must be in \[-3, 2\]"),
    (lambda x: mx.nd.depth_to_space(x, block_size=2), "depth_to_space: `data` must be 4-D"),
    (lambda x: mx.nd.depth_to_space(x.expand_dims(0), block_size=2), "number of channels .* multiple of block_size"),
    (lambda x: mx.nd.depth_to_space(x.expand_dims(0), block_size=0), "`block_size` must be a positive integer"),
    (lambda x: mx.nd.space_to_depth(x.expand_dims(0), block_size=2), "height and width .* multiples of block_size"),
    (lambda x: mx.nd.reshape_like(x, mx.nd.zeros((5,))), r"cannot reshape lhs of shape \(2, 3, 4\) to \(5,\)"),
    (lambda x: mx.nd.reshape_like(x, x, lhs_begin=2, lhs_end=1), r"\[2, 1\) is not a range of axes of 3-D lhs"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call(mx.nd.zeros((2, 3, 4)))


def test_squeeze_leaves_one_axis():
    assert mx.nd.squeeze(mx.nd.zeros((1, 1))).shape == (1,)


def test_shape_and_size_arrays():
    x = mx.nd.zeros((2, 3))
    assert mx.nd.shape_array(x).asnumpy().tolist() == [2, 3] and mx.nd.shape_array(x).dtype == np.int64
    assert mx.nd.size_array(x).asnumpy().tolist() == [6]


@pytest.mark.parametrize("name", ["depth_to_space", "space_to_depth"])
def test_blocks_refuse_empty_axes(name):
    with mx.np_shape(True), pytest.raises(mx.MXNetError, match=r"no size of `data` may be 0, received shape \(1, 4, 0, 2\)"):
        getattr(mx.nd, name)(mx.nd.zeros((1, 4, 0, 2)), 2)


@pytest.mark.parametrize("axes", [(2, 1, 0), (1, 2, 0), (0, 2, 1), (2, 0, 1)])
def test_transpose_of_a_large_array(axes):
    x = mx.nd.arange(64 * 40 * 32).reshape((64, 40, 32))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.transpose(x, axes=axes)
    weights = mx.nd.arange(y.size).reshape(y.shape)
    y.backward(weights)
    assert np.array_equal(y.asnumpy(), x.asnumpy().transpose(axes))
    assert np.array_equal(x.grad.asnumpy(), weights.asnumpy().transpose(np.argsort(axes)))
