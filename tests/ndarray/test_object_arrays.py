import numpy as np
import pytest

import mxnet as mx


@pytest.mark.parametrize("reduce, expected", [(np.sum, 6), (np.prod, 6), (np.max, 3), (np.min, 1), (np.amax, 3)])
def test_reductions_of_lists_are_arrays(reduce, expected):
    for arrays in ([mx.nd.array([i]) for i in (1, 2, 3)], tuple(mx.nd.array([i], dtype="int32") for i in (1, 2, 3))):
        result = reduce(arrays)
        assert type(result) is mx.nd.NDArray and result.shape == (1,) and result.dtype == arrays[0].dtype and result.asscalar() == expected


def test_of_larger_arrays_all_elements_count():
    arrays = [mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[5, 6], [7, 8]])]
    assert [f(arrays).asnumpy().tolist() for f in (np.sum, np.max, np.min)] == [[36], [8], [1]]
    assert np.sum([[arrays[0]], [arrays[1]]]).asscalar() == 36


def test_beside_numbers():
    assert np.sum([mx.nd.array([1]), 2.0]).asnumpy().tolist() == [3] == np.sum([2.0, mx.nd.array([1])]).asnumpy().tolist()
    assert f"{float(np.sum([mx.nd.array([1]), mx.nd.array([2])])):.2f}" == "3.00"


def test_what_mxnet_cannot_are_numbers():
    arrays = [mx.nd.array([1]), mx.nd.array([2])]
    assert np.mean(arrays) == 1.5 and isinstance(np.mean(arrays), np.float32)
    assert np.sum(arrays, axis=0).tolist() == [3] and np.sum(arrays, dtype="float64").dtype == np.float64
    assert np.asarray(arrays).tolist() == [[1], [2]] and np.stack(arrays).dtype == np.float32 and np.sum(np.asarray(arrays)) == 3


def test_an_array_itself():
    assert np.sum(mx.nd.ones((2, 2))).asscalar() == 4 and np.max(mx.nd.ones((2, 2))).asscalar() == 1
    assert isinstance(np.sum([mx.np.ones(2), mx.np.ones(2)]), mx.np.ndarray)
