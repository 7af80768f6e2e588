import numpy as np
import pytest

import mxnet as mx
from mxnet.ndarray import index_helpers as helpers


def test_a_number_as_a_slice():
    assert [helpers.int_to_slice(i) for i in (-3, -1, 0, 2)] == [slice(-3, -2), slice(-1, None), slice(0, 1), slice(2, 3)]


@pytest.mark.parametrize("arguments, expected", [
    ((None, None, 5, 1), (0, 5, 1)), ((None, None, 5, -1), (4, -1, -1)), ((-2, 9, 5, 2), (3, 5, 2)), ((-9, -1, 5, None), (0, 4, 1)),
    ((4, -9, 5, -1), (4, 0, -1)), ((7, 1, 5, 1), (5, 1, 1)),
])
def test_the_range_of_a_slice(arguments, expected):
    assert helpers.index_range(*arguments) == expected


def test_ranges_that_are_none():
    with pytest.raises(ValueError, match="a step other than 0 expected"):
        helpers.index_range(1, 2, 3, 0)
    with pytest.raises(ValueError, match="a length of at least 0 expected, received -1"):
        helpers.index_range(1, 2, -1, 1)
    with pytest.raises(AssertionError, match="a step that leads from 0 to 5 expected, received -1"):
        helpers.slice_size(0, 5, -1)


def test_sizes():
    assert [helpers.slice_size(*a) for a in ((0, 5, 2), (5, 0, -2), (3, 3, 1), (4, -1, -1))] == [3, 3, 0, 5]
    slices = slice(None), slice(1, 4, 2), slice(4, 1), slice(None, None, -1), slice(4, 0, -2)
    assert [helpers.slice_length(s, 5) for s in slices] == [5, 2, 0, 5, 2]


@pytest.mark.parametrize("arguments, expected", [
    (((2, 3), 4, (1,)), (1, 1, 2, 3)), (((2, 3), 4, (0, 2)), (1, 2, 1, 3)), (((5,), 3, ()), (1, 1, 5)), (((4, 5, 6), 3, (0,)), (4, 5, 6)),
    (((), 2, (0,)), (1, 1)),
])
def test_shapes_for_broadcasting(arguments, expected):
    assert helpers.shape_for_broadcast(*arguments) == expected


def test_what_is_an_advanced_index():
    assert all(map(helpers.is_advanced, (1, np.int64(3), [1], (1,), range(3), np.zeros(2), mx.nd.zeros(2))))
    assert not helpers.is_advanced(slice(None)) and not helpers.is_advanced(None)
    with pytest.raises(RuntimeError, match="a slice or None expected as index, received <class 'str'>"):
        helpers.is_advanced("a")


def test_boolean_shapes():
    helpers.check_boolean_shape((2, 3), 0, (2, 3))
    with pytest.raises(IndexError, match="axis 1 has 3 entries, the index 2"):
        helpers.check_boolean_shape((2, 3), 1, (2,))


def test_where_new_axes_end_up():
    array = mx.nd.NDArray
    assert array._new_axes_after_basic_indexing([1, 3], (slice(None), None, 1, None)) == (1, 2)
    assert array._new_axes_after_advanced_indexing((None, 1, slice(None), None, 2), [1, 4], 2, False) == (2, 4)
    assert array._new_axes_after_advanced_indexing((None, 1, 2, None), [1, 2], 2, True) == (0, 1)


def test_broadcast_indices():
    arrays = [mx.nd.array(a) for a in ([0, 1], [[0], [1]], [2, 3, 4], [5, 6])]
    out = mx.np.ndarray._broadcast_advanced_indices(arrays, [1, 2])
    assert [a.shape for a in out] == [(2, 2, 3, 2)] * 4
    assert [a[1, 0, :, 1].asnumpy().tolist() for a in out] == [[1, 1, 1], [0, 0, 0], [2, 3, 4], [6, 6, 6]]
    assert helpers.broadcast_shapes(arrays[1:3]) == helpers.broadcast_shape_of(*arrays[1:3]) == (2, 3)
