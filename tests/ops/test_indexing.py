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
        mx.nd.take(x, index, mode="raise").wait_to_read()


def test_gather_nd_outside_raises_index_error():
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        mx.nd.gather_nd(mx.nd.zeros((3, 4)), mx.nd.array([[0, 3], [1, 0]]))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_many_positions_of_gather_nd(axes, monkeypatch):
    random = np.random.RandomState(0)
    values, index = random.randn(3, 4, 5).astype("float32"), random.randint(-3, 3, (axes, 50, 2))
    found = []
    for many in (1, 1 << 30):  # as rows of a matrix, and as torch indexes
        monkeypatch.setattr("mxnet.ops.indexing._MANY", many)
        x = mx.nd.array(values)
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.gather_nd(x, mx.nd.array(index, dtype="int64"))
        y.backward(mx.nd.array(np.arange(y.size).reshape(y.shape)))
        np.testing.assert_array_equal(y.asnumpy(), values[tuple(index)])
        found.append(x.grad.asnumpy())
    np.testing.assert_array_equal(*found)


def test_many_positions_outside_are_an_error(monkeypatch):
    monkeypatch.setattr("mxnet.ops.indexing._MANY", 1)
    for wrong in (4, -5):
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
            mx.nd.gather_nd(mx.nd.zeros((3, 4, 2)), mx.nd.array([[0, 1], [1, wrong]]))


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
    (lambda x: mx.nd.pick(x, mx.nd.array([0, 1, 2]), axis=None), "an axis expected, received None"),
    (lambda x: mx.nd.gather_nd(x, mx.nd.array([0, 1])), "at least 2 dimensions"),
    (lambda x: mx.nd.gather_nd(x, mx.nd.zeros((3, 1))), "name 3 axes, but the array has 2"),
    (lambda x: mx.nd.scatter_nd(mx.nd.zeros((3,)), mx.nd.zeros((2, 2)), shape=(2, 2)), r"data of shape \(2,\) expected"),
    (lambda x: mx.nd.one_hot(x, depth=-1), "`depth` must not be negative"),
    (lambda x: mx.nd.ravel_multi_index(x, shape=(7, 6)), "must be 2-D with one row for each axis"),
    (lambda x: mx.nd.contrib.boolean_mask(x, mx.nd.zeros((3,)), axis=1), "only axis=0 is supported"),
    (lambda x: mx.nd.contrib.boolean_mask(x, mx.nd.zeros((4,))), r"`index` must have shape \(3,\)"),
    (lambda x: mx.nd.contrib.index_copy(x, mx.nd.zeros((1,)), mx.nd.zeros((2, 4))), "expected a row of `new_tensor` for each entry"),
    (lambda x: mx.nd._internal._histogram(x, bin_cnt=3), "either `bins`, or `bin_cnt` and `range`, expected"),
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


def test_one_hot_wraps_values_around_that_the_type_cannot_hold():
    rows = mx.nd.one_hot(mx.nd.array([0, 2]), 3, on_value=300, off_value=-1, dtype="uint8")
    assert rows.asnumpy().tolist() == [[44, 255, 255], [255, 255, 44]]


def test_onehot_encode_needs_a_row_for_each_index():
    with pytest.raises(MXNetError, match="expected indices \\(N,\\) and an array \\(N, classes\\), received \\(1,\\) and \\(3, 4\\)"):
        mx.nd._internal._onehot_encode(mx.nd.array([1]), mx.nd.zeros((3, 4)))


def test_scatter_set_nd_keeps_to_the_shape_of_its_input():
    x, value, index = mx.nd.zeros((3, 2)), mx.nd.array([7]), mx.nd.array([[2], [1]])
    assert mx.nd._internal._scatter_set_nd(x, value, index, shape=(3, 2), out=x).asnumpy().tolist() == [[0, 0], [0, 0], [0, 7]]
    with pytest.raises(MXNetError, match="`shape` must be that of `lhs`, \\(3, 2\\); received \\(4, 2\\)"):
        mx.nd._internal._scatter_set_nd(x, value, index, shape=(4, 2))


def test_scatter_nd_refuses_an_index_outside_of_the_shape():
    with pytest.raises(IndexError, match="scatter_nd: index 5 is out of bounds for dimension 0 with size 2"):
        mx.nd.scatter_nd(mx.nd.ones((1,)), mx.nd.array([[5]]), shape=(2,))


@pytest.mark.parametrize("shape", [(2, 0), (2, -3), (-1, -1), ()])
def test_unravel_index_needs_sizes(shape):
    with pytest.raises(MXNetError, match="must have a size of at least 1 for every axis but the first, received"):
        mx.nd.unravel_index(mx.nd.array([5]), shape=shape)
    assert mx.nd.unravel_index(mx.nd.array([5]), shape=(-1, 3)).asnumpy().tolist() == [[1.0], [2.0]]
