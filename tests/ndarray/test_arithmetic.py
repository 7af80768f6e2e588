import math

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("number", [2, 3.0, -0.0, 0, True, 1e-3, 1e300, float("inf")])
def test_numbers_keep_the_type_of_the_array(dtype, number):
    x = nd.array([1, 2], dtype=dtype)
    for _ in range(2):  # the second call takes the number from the table
        if dtype == "int32" and number == float("inf"):
            with pytest.raises(mx.MXNetError, match="_plus_scalar"):
                x + number
            continue
        assert (x + number).dtype is np.dtype(dtype).type
        assert (x * number).dtype is np.dtype(dtype).type


def test_zeros_keep_their_sign_and_nan_is_nan():
    x = nd.array([1.0])
    for _ in range(2):
        assert math.copysign(1, (x * -0.0).asscalar()) == -1
        assert math.copysign(1, (x * 0.0).asscalar()) == 1
        assert math.isnan((x + float("nan")).asscalar())


def test_results_are_exact():
    x = nd.array([0.1, 3.0])
    for _ in range(2):
        assert (x / 3).asnumpy().tolist() == (np.float32([0.1, 3.0]) / np.float32(3)).tolist()
        assert (x - 0.7).asnumpy().tolist() == (np.float32([0.1, 3.0]) - np.float32(0.7)).tolist()


def test_the_table_does_not_grow_without_end():
    from mxnet.ndarray import fast_calls
    x = nd.ones((1,))
    for i in range(5000):
        x + (i + 0.5)
    assert len(fast_calls._constants) <= 4097
