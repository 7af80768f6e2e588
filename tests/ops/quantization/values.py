"""Small quantized arrays, and how results on them are checked."""
import numpy as np

from mxnet import nd

X = [[-1.5, 0.25, 0.3], [2.0, -0.01, 0.77]]
Q = [[-127, 5, 90], [127, 0, -3]]
U = [[0, 5, 90], [255, 128, 3]]
W = [[1, -2, 3], [100, 20, -127]]


def one(value):
    return nd.array([value])


def int8(values):
    return nd.array(values, dtype="int8")


def uint8(values):
    return nd.array(values, dtype="uint8")


def check(results, values, dtype, low=None, high=None):
    results = results if isinstance(results, list) else [results]
    assert results[0].dtype == np.dtype(dtype).type
    np.testing.assert_allclose(results[0].asnumpy(), values, rtol=1e-6)
    if low is not None:
        assert [r.shape for r in results[1:]] == [(1,), (1,)]
        np.testing.assert_allclose([r.asscalar() for r in results[1:]], [low, high], rtol=1e-6)
