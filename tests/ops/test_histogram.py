"""Edges, types and errors of histogram; values are compared in test_arrays_against_oracle.py."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError


def test_histogram_of_integers_has_integer_edges():
    counts, edges = mx.nd._internal._histogram(mx.nd.array([1, 2, 3, 3, 6, 8, 9, 16, 17], dtype="int32"), bin_cnt=6, range=(1, 17))
    assert edges.asnumpy().tolist() == [1, 3, 6, 9, 11, 14, 17]
    assert counts.asnumpy().tolist() == [2, 2, 2, 1, 0, 2]
    counts, _ = mx.nd._internal._histogram(mx.nd.array([0.1, 0.25, 0.5, 0.9, 1.0, 1.1]), bin_cnt=4, range=(0, 1))
    assert counts.asnumpy().tolist() == [1, 1, 1, 2]
    with pytest.raises(MXNetError, match="`bin_cnt` must be at least 1, received 0"):
        mx.nd._internal._histogram(mx.nd.ones((2,)), bin_cnt=0, range=(0, 1))


def test_a_histogram_of_more_than_one_piece():
    values = np.random.RandomState(0).uniform(-0.2, 1.2, 40000).astype("float32")
    values[5] = np.nan
    counts, _ = mx.nd.histogram(mx.nd.array(values), bins=7, range=(0, 1))
    assert counts.asnumpy().tolist() == np.histogram(values[np.isfinite(values)], 7, (0, 1))[0].tolist()


@pytest.mark.parametrize("copies", [1, 5000])
def test_the_limits_of_a_histogram_are_not_rounded_to_the_type_of_the_values(copies):
    values = mx.nd.array([0.5, 0.55, 0.6] * copies)  # float32's 0.6 is above 0.6
    assert mx.nd.histogram(values, bins=2, range=(0.5, 0.6))[0].asnumpy().tolist() == [copies, copies]


def test_the_middle_edge_of_a_symmetric_histogram_is_zero():
    edges = mx.nd.histogram(mx.nd.array([0, 1], dtype="float64"), bins=6, range=(-2.5, 2.5))[1].asnumpy().tolist()
    assert edges == [-2.5, -1.6666666666666667, -0.8333333333333334, 0.0, 0.8333333333333334, 1.6666666666666667, 2.5]
