"""Errors, copies and partial shapes of the slicing family; values are compared in test_arrays_against_oracle.py."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.ops.shape import slicing


def arange(*shape):
    return mx.nd.arange(24)[:mx.nd.zeros(shape).size].reshape(shape)


@pytest.mark.parametrize("cut", [
    lambda x: mx.nd.slice(x, begin=(0, 0), end=(2, 2)), lambda x: mx.nd.slice_axis(x, axis=0, begin=0, end=1),
    lambda x: mx.nd.split(x, 2, axis=1)[0], lambda x: mx.nd.slice_like(x, mx.nd.zeros((2, 2))),
    lambda x: mx.nd._internal._split_v2(x, indices=(0, 1), axis=0)[0],
])
def test_pieces_are_copies(cut):
    x = arange(2, 4)
    piece = cut(x)
    piece[:] = -1
    assert x.asnumpy().tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("call, message", [
    (lambda x: mx.nd.slice(x, begin=(0, 0, 0), end=(1, 1, 1)), "slicing axis exceeds data dimensions: 3 ranges for 2-D data"),
    (lambda x: mx.nd.slice(x, begin=(0,), end=(1, 1)), "`begin` and `end` of equal length expected"),
    (lambda x: mx.nd.slice(x, begin=(0,), end=(1,), step=(0,)), "`step` cannot be 0"),
    (lambda x: mx.nd.slice(x, begin=(0,), end=(1,), step=(1, 1)), "`step` and `begin` of equal length expected"),
    (lambda x: mx.nd.slice_axis(x, axis=1, begin=1, end=7), "slice_axis: begin=1, end=7 is not a range of axis 1, which has size 4"),
    (lambda x: mx.nd.slice_axis(x, axis=1, begin=2, end=1), "begin=2, end=1 is not a range"),
    (lambda x: mx.nd.slice_axis(x, axis=2, begin=0, end=1), r"`axis` must be in \[-2, 1\]"),
    (lambda x: mx.nd.slice_like(x, mx.nd.zeros((3, 3))), r"axis 0 of shape_like has size 3, which exceeds that of data \(2\)"),
    (lambda x: mx.nd.slice_like(x, mx.nd.zeros((3,))), "without `axes` both inputs need as many axes"),
    (lambda x: mx.nd.slice_like(x, mx.nd.zeros((1,)), axes=(1,)), "slice axis 1 exceeds second input"),
    (lambda x: mx.nd.split(x, 3), r"num_outputs=3 does not evenly divide axis 1 of shape \(2, 4\)"),
    (lambda x: mx.nd.split(x, 2, squeeze_axis=True), "must have size num_outputs=2"),
    (lambda x: mx.nd._internal._split_v2(x, indices=(1, 2)), "`indices` must start with 0 and rise"),
    (lambda x: mx.nd._internal._split_v2(x, indices=(0, 2, 1)), "`indices` must start with 0 and rise"),
    (lambda x: mx.nd._internal._split_v2(x, indices=(0, 2), squeeze_axis=True), "every piece must have size 1"),
    (lambda x: mx.nd.Crop(x.reshape((1, 1, 2, 4)), h_w=(3, 2), num_args=1), "a window of height 3 at offset 0 does not fit"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call(arange(2, 4))


@pytest.mark.parametrize("symbol, given, arguments, outputs", [
    (lambda a, b: mx.sym.SliceChannel(a, num_outputs=10, axis=1, squeeze_axis=True)[1] + b, {"a": (0, 10), "b": (5,)},
     [(5, 10), (5,)], [(5,)]),
    (lambda a, b: mx.sym.SliceChannel(a, num_outputs=3)[1] + b, {"a": (0, 15, 0), "b": (3, 5, 2)}, [(3, 15, 2), (3, 5, 2)], [(3, 5, 2)]),
    (lambda a, b: mx.sym.slice(a, begin=(0, 1), end=(2, 3)), {"a": (0, 4)}, [(0, 4)], [(0, 2)]),
    (lambda a, b: mx.sym.slice_axis(a, axis=0, begin=0, end=2), {"a": (0, 4)}, [(0, 4)], [(0, 4)]),
    (lambda a, b: mx.sym.slice_like(a, b), {"a": (3, 4), "b": (0, 4)}, [(3, 4), (0, 4)], [(0, 4)]),
])
def test_partial_shapes(symbol, given, arguments, outputs):
    found = symbol(mx.sym.var("a"), mx.sym.var("b")).infer_shape_partial(**given)
    assert (found[0], found[1]) == (arguments, outputs)


def test_number_of_outputs():
    x = mx.sym.var("x")
    assert mx.sym.split(x, num_outputs=3, name="s").list_outputs() == ["s_output0", "s_output1", "s_output2"]
    assert mx.sym._internal._split_v2(x, indices=(0, 1), name="s").list_outputs() == ["s_output0", "s_output1"]
    assert isinstance(mx.nd.split(arange(2, 4), 1), mx.nd.NDArray)
    assert [p.shape for p in mx.nd.split(arange(2, 4), 2)] == [(2, 2), (2, 2)]


def test_slice_assign_does_not_broadcast():
    with pytest.raises(MXNetError, match="the block has shape \\(2, 3\\), `rhs` must have the same, received \\(3,\\)"):
        mx.nd._internal._slice_assign(mx.nd.zeros((4, 3)), mx.nd.ones((3,)), begin=(0, 0), end=(2, 3))


@pytest.mark.parametrize("cut, block", [
    (lambda x: mx.nd.slice(x, begin=(1, None, -2), end=(None, 2, None)), (slice(1, None), slice(0, 2), slice(2, 4))),
    (lambda x: mx.nd.slice(x, begin=(2,), end=(3,), step=(1,)), (slice(2, 3),)),
    (lambda x: mx.nd.slice(x, begin=(None, 0), end=(None, 3), step=(1, 2)), (slice(None), slice(0, 3, 2))),
    (lambda x: mx.nd.slice_axis(x, axis=-1, begin=1, end=3), (slice(None), slice(None), slice(1, 3))),
    (lambda x: mx.nd.slice_like(x, mx.nd.zeros((2, 1, 3))), (slice(0, 2), slice(0, 1), slice(0, 3))),
    (lambda x: mx.nd.slice_like(x, mx.nd.zeros((2, 9)), axes=(0,)), (slice(0, 2),)),
    (lambda x: mx.nd.Crop(x.expand_dims(0), h_w=(2, 2), offset=(1, 1))[0], (slice(None), slice(1, 3), slice(1, 3))),
])
@pytest.mark.parametrize("many", [0, 1 << 62])
def test_gradients_lie_where_the_block_was(cut, block, many, monkeypatch):
    monkeypatch.setattr(slicing, "_MANY", many)
    x = mx.nd.arange(36).reshape((3, 3, 4))
    x.attach_grad()
    with mx.autograd.record():
        piece = cut(x)
        loss = (piece ** 3).sum()
        first = mx.autograd.grad(loss, [x], create_graph=True)[0]
    values = x.asnumpy()
    inside = np.zeros_like(values)
    inside[block] = 1
    assert piece.asnumpy().tolist() == values[block].tolist() and first.asnumpy().tolist() == (3 * values ** 2 * inside).tolist()
    first.backward()
    assert x.grad.asnumpy().tolist() == (6 * values * inside).tolist()
    with mx.autograd.record():
        loss = (cut(x) * 2).sum()
    loss.backward()
    assert x.grad.asnumpy().tolist() == (2 * inside).tolist()
