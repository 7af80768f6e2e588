import itertools

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd
from mxnet.ndarray import indexing


def grid():
    return nd.arange(12).reshape((3, 4))


@pytest.mark.parametrize(("key", "expected"), [
    ((slice(None, None, -1), 0), [8, 4, 0]),
    ((slice(1, 3), slice(None, None, 2)), [[4, 6], [8, 10]]),
    (([0, 2],), [[0, 1, 2, 3], [8, 9, 10, 11]]),
    (([0, 2], [1, 3]), [1, 11]),
    ((Ellipsis, 1), [1, 5, 9]),
    ((-1, -1), [11]),
    ((None, 0), [[0, 1, 2, 3]]),
    ((1, 2), [6]),
])
def test_indexing(key, expected):
    key = key[0] if len(key) == 1 else key
    assert grid()[key].asnumpy().tolist() == expected


def test_index_arrays_may_be_float():
    assert grid()[nd.array([0, 2]), nd.array([1, 3])].asnumpy().tolist() == [1, 11]


def test_contiguous_selections_share_memory_and_others_do_not():
    x = grid()
    x[1:3][:] = 7
    assert x.asnumpy().tolist() == [[0, 1, 2, 3], [7, 7, 7, 7], [7, 7, 7, 7]]
    column = x[:, 1]
    column[:] = 9
    assert x.asnumpy()[:, 1].tolist() == [1, 7, 7]


@pytest.mark.parametrize(("key", "error", "text"), [
    (5, IndexError, "axis 0 has 3 entries, received index 5"),
    ((0, 9), IndexError, "axis 1 has 4 entries, received index 9"),
    ([7], IndexError, "axis 0 has 3 entries, received index 7"),
    ((1, 2, 3), IndexError, "too many indices for an array of 2 axes"),
    (1.5, ValueError, "is indexed by integers, slices, .* received 1.5"),
    ("a", ValueError, "is indexed by integers, slices, .* received 'a'"),
])
def test_bad_indices(key, error, text):
    with pytest.raises(error, match=text):
        grid()[key]


def test_negative_steps_beside_index_arrays():
    x = mx.nd.arange(12).reshape((3, 4))
    assert x[[0, 2], ::-2].asnumpy().tolist() == [[3, 1], [11, 9]]
    x[::-1, [0, 1]] = mx.nd.array([[10, 11], [20, 21], [30, 31]])
    assert x.asnumpy().tolist() == [[30, 31, 2, 3], [20, 21, 6, 7], [10, 11, 10, 11]]


@pytest.mark.parametrize("key, basic", [
    (1, True), (np.int64(1), True), (slice(2), True), ((0, None, Ellipsis, slice(1)), True), (True, False), (np.bool_(True), False),
    ((True,), False), ([0], False), ((0, [1]), False), (1.5, False)])
def test_what_selects_a_regular_grid(key, basic):
    assert indexing.is_basic(key) is basic


def test_every_axis_gets_an_entry():
    full = slice(None)
    assert indexing.expand(1, 3) == (1, full, full)
    assert indexing.expand((Ellipsis, 1), 3) == (full, full, 1)
    assert indexing.expand((0, Ellipsis, None, 1), 3) == (0, full, None, 1)
    assert len(indexing.expand(torch.ones(2, 2, dtype=torch.bool), 3)) == 2  # a mask stands for as many axes as it has
    with pytest.raises(IndexError, match="too many indices for an array of 2 axes: 3 were given"):
        indexing.expand((0, 0, 0), 2)
    with pytest.raises(IndexError, match="one Ellipsis"):
        indexing.expand((Ellipsis, Ellipsis), 2)


def test_slices_are_cut_to_what_there_is():
    assert indexing.normalize_slice(slice(-2, 99), 5) == (3, 5, 1, 2)
    assert indexing.normalize_slice(slice(None, None, -2), 5) == (4, -1, -2, 3)
    assert indexing.normalize_slice(slice(3, 1), 5)[3] == 0
    assert indexing.normalize_slice(slice(np.int32(1), None), 5) == (1, 5, 1, 4)
    with pytest.raises(IndexError, match="slice entries must be integers or None, received 1.5"):
        indexing.normalize_slice(slice(1.5), 5)


def test_a_basic_selection_is_a_view_but_for_negative_steps():
    t = torch.arange(12).reshape(3, 4)
    assert indexing.basic_view(t, (slice(1, 3), None, 2)).tolist() == [[6], [10]]
    assert indexing.basic_view(t, (slice(1, 3),)).data_ptr() == t[1].data_ptr()
    assert indexing.basic_view(t, (0, slice(None, None, -1))).tolist() == [3, 2, 1, 0]
    assert indexing.basic_view(t, slice(2, 1)).shape == (0, 4)


@pytest.mark.parametrize("key, expected", [
    (([0, 2], slice(None, None, -1)), [[3, 2, 1, 0], [11, 10, 9, 8]]), (([-1],), [[8, 9, 10, 11]]), ((1, [0, 0]), [4, 4]),
    (([[True, False, False, True]] + [[False] * 4] * 2,), [0, 3])])
def test_keys_with_arrays(key, expected):
    t = torch.arange(12).reshape(3, 4)
    found = indexing.advanced_key(key, (3, 4), t.device, torch.tensor)
    assert t[found].tolist() == expected


def test_masks_and_indices_that_do_not_fit():
    for key, text in (([True, False], r"boolean index of shape \(2,\) does not match axes \(3,\)"), ([3], "axis 0 has 3 entries, received index 3"),
                      ([-4], "received index -4")):
        with pytest.raises(IndexError, match=text):
            indexing.advanced_key(key, (3, 4), torch.device("cpu"), torch.tensor)
    with pytest.raises(IndexError, match="cannot select from axis 0, which has no entries"):
        indexing.advanced_key([0], (0, 4), torch.device("cpu"), torch.tensor)


def test_slices_that_select_one_piece_of_memory():
    pieces = (slice(None), slice(2), slice(1, 2), slice(None, None, 2), slice(None, None, 20), slice(3, None, -2), slice(2, 2))
    x = np.zeros((4, 3, 5))
    for key in itertools.product(pieces, repeat=3):
        assert mx.nd.NDArray._basic_indexing_slice_is_contiguous(key, x.shape) == x[key].flags.c_contiguous, key
    with pytest.raises(ValueError, match="zip"):
        mx.nd.NDArray._basic_indexing_slice_is_contiguous((slice(None),), (2, 3))


def test_steps_beyond_the_array():
    x = mx.np.arange(9).reshape(3, 3)
    assert x[0:3:1 << 62].tolist() == [[0, 1, 2]] and x[1::1 << 62, 2].tolist() == [5]
    x[::1 << 62] = 7
    assert x.tolist() == [[7, 7, 7], [3, 4, 5], [6, 7, 8]]


@pytest.mark.parametrize("dtype, value, expected", [
    ("uint8", -0.8, 0), ("uint8", -1, 255), ("uint8", -4294967297, 0), ("int8", -4294967297, 0), ("int8", float("inf"), 0), ("int8", 2**31, 0),
    ("int32", float("nan"), -2**31), ("int32", 1e10, -2**31), ("int64", -4294967297, -4294967297), ("int64", float("-inf"), -2**63)])
def test_numbers_that_the_type_does_not_hold_are_converted_as_by_c(dtype, value, expected):
    for array in (nd.zeros(2, dtype=dtype), mx.np.zeros(2, dtype=dtype)):
        array[1:] = value
        assert array.asnumpy().tolist() == [0, expected]


MASK = np.array([True, False, True, True])


@pytest.mark.parametrize("key, expected", [
    (MASK, [[3, 4, 5], [0, 1, 2], [3, 4, 5], [3, 4, 5]]), ([True, False, True, True], [[3, 4, 5], [0, 1, 2], [3, 4, 5], [3, 4, 5]]),
    (MASK[:3], [[3, 4, 5], [0, 1, 2], [3, 4, 5]]), ((MASK, 1), [4, 1, 4, 4]), ((slice(2), MASK[:2]), [[1, 0], [4, 3]]), ((MASK[:2], [0, 2]), [3, 2]),
    (True, [3, 4, 5]), (False, [0, 1, 2]), ((True, False), [3])])
def test_masks_of_numpy_are_the_indices_0_and_1(key, expected):
    x = mx.nd.arange(12).reshape((4, 3))
    assert x[key].asnumpy().tolist() == expected
    x.attach_grad()
    with mx.autograd.record():
        y = x[key]
    y.backward()
    assert x.grad.asnumpy()[2:].tolist() == [[0, 0, 0]] * 2 and x.grad.sum().asscalar() == y.size


@pytest.mark.parametrize("key, value, expected", [
    (MASK, 9, [[9, 9], [9, 9], [4, 5]]), ((MASK, 1), 9, [[0, 9], [2, 9], [4, 5]]),
    (MASK[:2], mx.nd.array([[7, 8], [9, 9]]), [[9, 9], [7, 8], [4, 5]]),
    (True, 9, [[9, 9]] * 3), (False, np.array([1, 2]), [[1, 2]] * 3), ((True, 1), 9, [[0, 1], [9, 9], [4, 5]])])
def test_writing_through_masks_of_numpy(key, value, expected):
    x = mx.nd.arange(6).reshape((3, 2))
    x[key] = value
    assert x.asnumpy().tolist() == expected


def test_a_boolean_of_numpy_is_no_index():
    x = mx.nd.arange(6).reshape((3, 2))
    with pytest.raises(ValueError, match="an NDArray is indexed by integers, slices, arrays"):
        x[np.bool_(True)]
    with pytest.raises(ValueError, match="an NDArray is indexed by integers, slices, arrays"):
        x[np.bool_(True)] = 5
