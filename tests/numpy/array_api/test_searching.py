import numpy as onp
import pytest

import mxnet as mx

xp = mx.np.array_api


def test_sorting_is_stable():
    x = xp.asarray([3, 1, 3, 2], dtype=xp.uint32)
    assert xp.sort(x).tolist() == [1, 2, 3, 3] and xp.argsort(x).tolist() == [1, 3, 0, 2] and xp.argsort(x, descending=True).tolist() == [0, 2, 3, 1]
    assert xp.sort(xp.asarray([2**63, 1], dtype=xp.uint64)).tolist() == [1, 2**63]


def test_positions():
    x = xp.asarray([[1, 9, 9], [4, 3, 4]])
    assert xp.argmax(x).item() == 1 and xp.argmax(x, axis=1, keepdims=True).tolist() == [[1], [0]] and xp.argmin(x, axis=0).tolist() == [0, 1, 1]
    rows, columns = xp.nonzero(x > 3)
    assert rows.tolist() == [0, 0, 1, 1] and columns.tolist() == [1, 2, 0, 2]
    with pytest.raises(ValueError, match="nonzero: an array with at least one axis expected, received a scalar"):
        xp.nonzero(xp.asarray(1))


def test_selecting():
    condition = xp.asarray([True, False])
    assert xp.where(condition, xp.asarray([1, 2], dtype=xp.uint16), 7).tolist() == [1, 7]
    x = xp.asarray([[1, 2], [3, 4]])
    assert xp.take(x, xp.asarray([1, -2]), axis=1).tolist() == [[2, 1], [4, 3]]
    assert xp.take_along_axis(x, xp.asarray([[1], [0]])).tolist() == [[2], [3]]
    with pytest.raises(ValueError, match="take: an axis expected for an array of 2 axes, received None"):
        xp.take(x, xp.asarray([0]))


@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_sorted_vectors(side):
    edges, values = [1, 3, 3, 7], [0, 1, 3, 4, 8]
    assert xp.searchsorted(xp.asarray(edges), xp.asarray(values), side=side).tolist() == onp.searchsorted(edges, values, side=side).tolist()
    order = xp.asarray([1, 0, 2])
    assert xp.searchsorted(xp.asarray([5, 1, 9]), xp.asarray([6]), sorter=order).tolist() == [2]


def test_sets():
    x = xp.asarray([[2, 1], [2, 5]])
    found = xp.unique_all(x)
    assert found.values.tolist() == [1, 2, 5] and found.indices.tolist() == [1, 0, 3] and found.counts.tolist() == [1, 2, 1]
    assert found.inverse_indices.tolist() == [[1, 0], [1, 2]] and xp.unique_inverse(x).inverse_indices.shape == (2, 2)
    assert xp.unique_counts(xp.asarray([float("nan"), float("nan")])).counts.tolist() == [1, 1]
    assert xp.unique_values(xp.asarray([0.0, -0.0, 1.0])).shape == (2,) and xp.unique_values(xp.asarray([1j, 1j, 0])).tolist() == [0, 1j]
