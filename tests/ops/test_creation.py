"""Operators without inputs, and what is like an array. The numbers come from MXNet 1.9.1."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError

internal = mx.nd._internal


@pytest.mark.parametrize("attributes, values", [
    ({"start": 0, "stop": 3}, [0, 1, 2]), ({"start": 3}, [0, 1, 2]), ({"start": 5, "stop": 0, "step": -2}, [5, 3, 1]),
    ({"start": 1, "stop": 2, "step": 0.3}, [1, 1.3, 1.6, 1.9]), ({"start": 0, "stop": 2, "repeat": 2}, [0, 0, 1, 1]),
    ({"start": 0, "stop": 3, "infer_range": True}, [0, 1, 2])])
def test_arange(attributes, values):
    y = internal._arange(**attributes)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.asnumpy(), values, rtol=1e-6)
    assert mx.sym._internal._arange(**attributes).infer_shape()[1] == [(len(values),)]


def test_long_ranges_do_not_drift():
    y = internal._arange(start=0, stop=1e6, step=0.1).asnumpy()
    assert y[-1] == np.float32(999999.9)


@pytest.mark.parametrize("attributes, message", [
    ({"start": 5, "stop": 0}, r"invalid range \(start, stop, step\) = \(5, 0, 1\)"), ({"start": 0, "stop": 1, "step": 0}, "`step` must not be 0"),
    ({"start": 0, "stop": 1, "repeat": 0}, "`repeat` must be at least 1, received 0"),
    ({"start": 0, "infer_range": True}, "here nothing tells, give `stop`")])
def test_impossible_ranges(attributes, message):
    with pytest.raises(MXNetError, match=message):
        internal._arange(**attributes)


def test_linspace():
    assert internal._linspace(start=0, stop=1, num=5).asnumpy().tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert internal._linspace(start=0, stop=1, num=4, endpoint=False).asnumpy().tolist() == [0, 0.25, 0.5, 0.75]
    assert internal._linspace(start=2, stop=1, num=1).asnumpy().tolist() == [2]
    assert internal._linspace(start=0, stop=10, num=5, dtype="int32").asnumpy().tolist() == [0, 2, 5, 7, 10]
    with pytest.raises(MXNetError, match="`num` must not be negative, received -1"):
        internal._linspace(start=0, stop=1, num=-1)


def test_eye():
    assert internal._eye(N=2, M=3, k=1).asnumpy().tolist() == [[0, 1, 0], [0, 0, 1]]
    y = internal._eye(N=3, M=2, k=-1, dtype="int32")
    assert y.dtype == np.int32 and y.asnumpy().tolist() == [[0, 0], [1, 0], [0, 1]]
    assert internal._eye(N=2).asnumpy().tolist() == [[1, 0], [0, 1]]


def test_constants():
    assert internal._zeros(shape=(2,)).asnumpy().tolist() == [0, 0]
    assert internal._ones(shape=2, dtype="int8").dtype == np.int8
    assert internal._full(shape=(2,), value=1.5, dtype="int32").asnumpy().tolist() == [1, 1]
    assert internal._full(shape=(1,), value=2, dtype="bool").asnumpy().tolist() == [True]
    assert internal._zeros(shape=(1,), ctx="cpu(1)").context == mx.cpu(1)


def test_zeros_without_dtype():
    assert internal._zeros_without_dtype(shape=(2,)).dtype == np.float32
    assert internal._zeros_without_dtype(shape=(2,), dtype=4).dtype == np.int32
    with pytest.raises(MXNetError, match="must be -1 or the number of a data type, received 99"):
        internal._zeros_without_dtype(shape=(2,), dtype=99)
    s = mx.sym._internal._zeros_without_dtype(shape=(2,)) + mx.sym.Variable("x")
    assert s.infer_type(x="float64")[1] == [np.float64]


def test_sizes_of_zero_are_found_by_inference():
    state = mx.sym.zeros(shape=(0, 3))
    s = state + mx.sym.Variable("x")
    assert s.infer_shape(x=(4, 3))[1] == [(4, 3)]


def test_arange_like():
    x = mx.nd.zeros((2, 3))
    like = mx.nd.contrib.arange_like
    assert like(x).asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert like(x, axis=-1, start=2, step=0.5).asnumpy().tolist() == [2, 2.5, 3]
    assert like(x, axis=1, repeat=2).asnumpy().tolist() == [0, 0, 1]
    assert like(x.astype("float16")).dtype == np.float16
    assert mx.sym.contrib.arange_like(mx.sym.Variable("x"), axis=1).infer_shape(x=(2, 3))[1] == [(3,)]
    with pytest.raises(MXNetError, match=r"`axis` must be in \[-2, 1\] for 2-D data, received 2"):
        like(x, axis=2)


@pytest.mark.parametrize("start, step, length", [(-5, 3, 100), (1 << 24, -7, 1000), ((1 << 24) - 40, 1, 100), (1 << 40, 3, 70), (3, 1 << 38, 3)])
def test_arange_of_whole_numbers_rounds_once(start, step, length):
    whole = start + step * np.arange(length)
    for dtype in ("float32", "float64", "int64"):
        assert np.array_equal(mx.nd.arange(start, start + step * length, step, dtype=dtype).asnumpy(), whole.astype(dtype))


def test_arange_of_integers_counts_in_integer_steps():
    assert mx.nd.arange(0.5, 6, 1.5, repeat=2, dtype="int32").asnumpy().tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert mx.nd.arange(0.5, 6, 1.5).asnumpy().tolist() == [0.5, 2, 3.5, 5]


def test_eye_is_square_without_a_number_of_columns():
    assert mx.nd.eye(2, -1, 1).asnumpy().tolist() == [[0, 1], [0, 0]]
