"""NumPy operators that make statistics; values from MXNet 1.9.1 where nothing else is said."""
import pytest

import mxnet as mx
from mxnet import np
from numpy_checks import ruled


@pytest.fixture(autouse=True)
def numpy_mode():
    with mx.util.np_shape(True), mx.util.np_array(True):
        yield


def test_percentile_rounds_halves_up():
    found = np.percentile(np.array([0.0, 1, 2, 3, 4, 5]), np.array([10.0, 30, 50, 70, 90, 20, 80]), interpolation="nearest")
    assert found.asnumpy().tolist() == [1, 2, 3, 4, 5, 1, 4]


def test_wrong_values_are_value_errors():
    with pytest.raises(ValueError, match=r"percentiles must be in the range \[0, 100\]"):
        np.percentile(np.array([1.0, 2.0]), 101).asnumpy()
    with pytest.raises(ValueError, match=r"`p` must have one axis, received shape \(1, 2\)"):
        np.polyval(np.array([[1.0, 2.0]]), np.array([1.0])).asnumpy()


def test_shapes_of_percentiles():
    assert ruled("_npi_percentile", (2, -1, 4), (5,), axis=1) == (5, 2, 4) and ruled("_npi_percentile", (2, -1), q_scalar=30) == ()
    assert ruled("_npi_percentile", (2, -1), axis=-1, q_scalar=30, keepdims=True) == (2, 1)
    assert ruled("_npi_percentile", (2, 0), q_scalar=30) is None
