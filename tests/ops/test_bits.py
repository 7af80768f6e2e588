import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError


def shifted(values, amounts, direction, dtype):
    arrays = [mx.nd.array(x, dtype=dtype) for x in (values, amounts)]
    return mx.nd.contrib.bit_shift(*arrays, direction=direction).asnumpy().tolist()


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_bits_that_are_shifted_out_are_lost(dtype):
    bits = np.iinfo(dtype).bits
    assert shifted([1, 3, -1, 5], [bits - 1, 1, bits, -1], "LEFT", dtype) == [np.iinfo(dtype).min, 6, 0, 0]
    assert shifted([-8, 7, -1, 5], [1, 1, bits, -1], "RIGHT", dtype) == [-4, 3, -1, 0]
    assert shifted([[16], [4]], [1, 2], "RIGHT", dtype) == [[8, 4], [2, 1]]


def test_only_integers_are_shifted():
    with pytest.raises(MXNetError, match="_contrib_bit_shift: expected integers, received float32"):
        shifted([1.0], [1.0], "LEFT", "float32")


def test_the_same_bits_as_another_type():
    x = mx.nd.array([1.0, -2.5])
    found = mx.nd.contrib.bitcast(x, dtype="int32")
    assert found.asnumpy().tolist() == [1065353216, -1071644672]
    assert mx.nd.contrib.bitcast(found, dtype="float32").asnumpy().tolist() == [1.0, -2.5]
    found[:] = 0
    assert x.asnumpy().tolist() == [1.0, -2.5]
    with pytest.raises(MXNetError, match="int64 has 64 bits, received float32 of 32"):
        mx.nd.contrib.bitcast(x, dtype="int64")
