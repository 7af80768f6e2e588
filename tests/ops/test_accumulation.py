import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError

X = [[1, 2, 3], [4, 5, 6]]


def test_products_of_all_before():
    assert mx.nd.contrib.cumprod(mx.nd.array(X), axis=-1).asnumpy().tolist() == [[1, 2, 6], [4, 20, 120]]
    found = mx.nd.contrib.cumprod(mx.nd.array(X, dtype="int8"), axis=0).asnumpy()
    assert found.dtype == np.int8 and found.tolist() == [[1, 2, 3], [4, 10, 18]]
    with pytest.raises(MXNetError, match="axis"):
        mx.nd.contrib.cumprod(mx.nd.array(X), axis=2)


@pytest.mark.parametrize("reduction, expected", [("none", [[9, 2, 3], [4, 7, 6]]), ("add", [[10, 2, 3], [4, 12, 6]]), ("max", [[9, 2, 3], [4, 7, 6]]),
                                                 ("mul", [[9, 2, 3], [4, 35, 6]]), ("min", [[1, 2, 3], [4, 5, 6]])])
def test_scattered_elements(reduction, expected):
    places, new = mx.nd.array([[0], [-2]], dtype="int64"), mx.nd.array([[9], [7]])
    assert mx.nd.contrib.scatter_reduce(mx.nd.array(X), places, new, axis=1, reduction=reduction).asnumpy().tolist() == expected


def test_truth_values_are_joined():
    truth = mx.nd.array([0, 1], dtype="bool")
    found = mx.nd.contrib.scatter_reduce(truth, mx.nd.array([0], dtype="int64"), mx.nd.array([1], dtype="bool"), reduction="max")
    assert found.asnumpy().tolist() == [True, True]


def test_gradients_go_to_both():
    x, new = mx.nd.array([1, 2, 3]), mx.nd.array([4, 5])
    x.attach_grad(), new.attach_grad()
    with mx.autograd.record():
        found = mx.nd.contrib.scatter_reduce(x, mx.nd.array([0, 0], dtype="int64"), new, reduction="mul")
    found.backward()
    assert x.grad.asnumpy().tolist() == [20, 1, 1] and new.grad.asnumpy().tolist() == [5, 4]


def test_places_outside_and_shapes_that_do_not_fit():
    with pytest.raises(MXNetError, match="index -4 is out of bounds for dimension 0 with size 3|out of bounds"):
        mx.nd.contrib.scatter_reduce(mx.nd.array([1, 2, 3]), mx.nd.array([-4], dtype="int64"), mx.nd.array([1]))
    with pytest.raises(MXNetError, match=r"must have one shape, not larger than that of `data` but along axis 0; received \(3,\), \(1,\) and \(2,\)"):
        mx.nd.contrib.scatter_reduce(mx.nd.array([1, 2, 3]), mx.nd.array([0], dtype="int64"), mx.nd.array([1, 2]))
