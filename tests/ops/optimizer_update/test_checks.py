"""Norms, adapted rates, overflow checks. The numbers come from MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError


def test_multi_sum_sq():
    y = mx.nd.multi_sum_sq(mx.nd.array([[1, 2], [3, 4]]), mx.nd.full((100,), 60, dtype="float16"), num_arrays=2)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.asnumpy(), [30, 360000], rtol=1e-5)


def test_multi_lars():
    inputs = [mx.nd.array(v) for v in ([0.1, 0.2, 0.3], [4, 0, 9], [1, 1, 0], [0.1, 0.1, 0.1])]
    y = mx.nd.multi_lars(*inputs, eta=0.5, eps=0.01, rescale_grad=2)
    np.testing.assert_allclose(y.asnumpy(), [0.04524887, 0.2, 0.3], rtol=1e-5)


@pytest.mark.parametrize("value, expected", [(1, 1), (float("inf"), 0), (float("nan"), 0)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_finite(value, expected, dtype):
    x = mx.nd.array([1, value, 2], dtype=dtype)
    one = mx.nd.all_finite(x)
    assert one.dtype == np.float32 and one.asnumpy().tolist() == [expected]
    assert mx.nd.multi_all_finite(mx.nd.ones((2, 2), dtype=dtype), x, num_arrays=2).asnumpy().tolist() == [expected]


def test_joining_an_earlier_result_is_refused():
    with pytest.raises(MXNetError, match="with init_output=False the result joins what `out` held before"):
        mx.nd.all_finite(mx.nd.ones((2,)), init_output=False)


@pytest.mark.parametrize("call", [mx.nd.multi_sum_sq, mx.nd.multi_all_finite, mx.nd.reset_arrays])
def test_wrong_count(call):
    with pytest.raises(MXNetError, match="`num_arrays` must be the number of inputs, 1; received 2"):
        call(mx.nd.ones((2,)), num_arrays=2)


def test_reset_arrays():
    x, y = mx.nd.ones((2,)), mx.nd.full((1, 2), 7, dtype="int32")
    x.attach_grad()
    mx.nd.reset_arrays(x, y, num_arrays=2)
    assert x.asnumpy().tolist() == [0, 0] and y.asnumpy().tolist() == [[0, 0]]


def test_lars_takes_a_number_for_each_weight():
    ones = mx.nd.ones((3,))
    with pytest.raises(MXNetError, match="multi_lars: all inputs must have one shape.*received \\(1,\\), \\(3,\\), \\(3,\\), \\(3,\\)"):
        mx.nd.multi_lars(mx.nd.ones((1,)), ones, ones, ones, eta=0.1, eps=1e-6)
