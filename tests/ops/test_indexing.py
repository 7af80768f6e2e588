"""Errors, types and partial shapes of the indexing family; values are compared in test_arrays_against_oracle.py."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError


def test_take_outside():
    x, index = mx.nd.array([4, 5, 6]), mx.nd.array([5, -1, 1.9])
    assert mx.nd.take(x, index).asnumpy().tolist() == [6, 4, 5]
    assert mx.nd.take(x, index, mode="wrap").asnumpy().tolist() == [6, 6, 5]
    with pytest.raises(MXNetError, match=r"take: indices out of bound: expected \[0, 3\), received values from -1 to 5"):
        mx.nd.take(x, index, mode="raise")


def test_gather_nd_outside_raises_index_error():
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        mx.nd.gather_nd(mx.nd.zeros((3, 4)), mx.nd.array([[0, 3], [1, 0]]))


def test_gradients_of_repeated_indices_add_up():
    x = mx.nd.zeros((3, 2))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.take(x, mx.nd.array([0, 2, 2, 9]))
    y.backward(mx.nd.array([[1, 2], [3, 4], [5, 6], [7, 8]]))
    assert x.grad.asnumpy().tolist() == [[1, 2], [0, 0], [15, 18]]


def test_the_gradient_of_gather_nd_adds_what_scatter_nd_overwrites():
    data, indices = mx.nd.array([1, 2]), mx.nd.array([[0, 0], [1, 1]])
    assert mx.nd.scatter_nd(data, indices, shape=(2, 2)).asnumpy().tolist() == [[0, 2], [0, 0]]
    from mxnet.ops import get
    added = get("_backward_gather_nd")(data.as_torch(), indices.as_torch(), shape=(2, 2))
    assert added.tolist() == [[0, 3], [0, 0]]


def test_scatter_set_nd_keeps_the_rest():
    x = mx.nd.ones((2, 2))
    mx.nd._internal._scatter_set_nd(x, mx.nd.array([5]), mx.nd.array([[0], [1]]), shape=(2, 2), out=x)
    assert x.asnumpy().tolist() == [[1, 5], [1, 1]]


@pytest.mark.parametrize("call, message", [
    (lambda x: mx.nd.take(x, mx.nd.array([1]), axis=2), r"take: `axis` must be in \[-2, 1\]"),
    (lambda x: mx.nd.pick(x, mx.nd.array([0, 1])), r"`index` must have shape \(3,\) or \(3, 1\) for data of shape \(3, 4\)"),
    (lambda x: mx.nd.pick(x, mx.nd.array([0, 1, 2]), axis=None), "axis=None is not supported"),
    (lambda x: mx.nd.gather_nd(x, mx.nd.array([0, 1])), "at least 2 dimensions"),
    (lambda x: mx.nd.gather_nd(x, mx.nd.zeros((3, 1))), "name 3 axes, but the array has 2"),
    (lambda x: mx.nd.scatter_nd(mx.nd.zeros((3,)), mx.nd.zeros((2, 2)), shape=(2, 2)), r"data must have shape \(2,\)"),
    (lambda x: mx.nd.one_hot(x, depth=-1), "`depth` must not be negative"),
    (lambda x: mx.nd.ravel_multi_index(x, shape=(7, 6)), "must be 2-D with one row for each axis"),
    (lambda x: mx.nd.contrib.boolean_mask(x, mx.nd.zeros((3,)), axis=1), "only axis=0 is supported"),
    (lambda x: mx.nd.contrib.boolean_mask(x, mx.nd.zeros((4,))), r"`index` must have shape \(3,\)"),
    (lambda x: mx.nd.contrib.index_copy(x, mx.nd.zeros((1,)), mx.nd.zeros((2, 4))), "expected a row of `new_tensor` for each entry"),
    (lambda x: mx.nd._internal._histogram(x, bin_cnt=3), "should both or neither be specified"),
    (lambda x: mx.nd.cumsum(x, axis=4), r"cumsum: `axis` must be in \[-2, 1\]"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call(mx.nd.zeros((3, 4)))


def test_an_empty_mask_gives_no_rows():
    assert mx.nd.contrib.boolean_mask(mx.nd.zeros((3, 4)), mx.nd.zeros((3,))).shape == (0, 4)


@pytest.mark.parametrize("symbol, given, outputs", [
    (lambda a, b: mx.sym.pick(a, b, axis=1), {"a": (0, 3, 3), "b": (0, 3)}, [(0, 3)]),
    (lambda a, b: mx.sym.take(a, b), {"a": (0, 4), "b": (3, 4)}, [(3, 4, 4)]),
    (lambda a, b: mx.sym.take(a, b), {"a": (3, 4), "b": (0, 4)}, [()]),
    (lambda a, b: mx.sym.gather_nd(a, b), {"a": (3, 4), "b": (1, 5)}, [(5, 4)]),
    (lambda a, b: mx.sym.scatter_nd(a, b, shape=(7, 2)), {}, [(7, 2)]),
    (lambda a, b: mx.sym.unravel_index(a, shape=(3, 4)), {"a": (5,)}, [(2, 5)]),
])
def test_partial_shapes(symbol, given, outputs):
    assert symbol(mx.sym.var("a"), mx.sym.var("b")).infer_shape_partial(**given)[1] == outputs


def test_pick_tells_the_shape_of_its_index():
    symbol = mx.sym.pick(mx.sym.var("a"), mx.sym.var("b"))
    assert symbol.infer_shape_partial(a=(5, 2))[0] == [(5, 2), (5,)]


def test_types():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    assert mx.sym.one_hot(a, depth=2).infer_type(a="int32")[1] == [np.float32]
    assert mx.sym.batch_take(a, b).infer_type(a="float64")[0] == [np.float64, np.int32]
    assert mx.sym.contrib.index_array(a).infer_type(a="float64")[1] == [np.int64]
    assert mx.nd.take(mx.nd.zeros((3,), dtype="int32"), mx.nd.array([1])).dtype == np.int32


def test_unknown_length_of_a_mask():
    symbol = mx.sym.contrib.boolean_mask(mx.sym.var("a"), mx.sym.var("b"))
    assert symbol.infer_shape_partial(a=(3, 4), b=(3,))[1] == [(0, 4)]
