"""NumPy operators that make arrays out of attributes; values from MXNet 1.9.1 where nothing else is said."""
import pytest

import mxnet as mx
from mxnet import np
from numpy_checks import call, ruled

pytestmark = pytest.mark.usefixtures("numpy_mode")


def test_arange_of_integers_has_an_integer_step():
    assert np.arange(0, 3, 0.5, dtype="int32").asnumpy().tolist() == [0] * 6
    assert np.arange(1, -3, -1.5, dtype="int64").asnumpy().tolist() == [1, 0, -1]
    with pytest.raises(mx.base.MXNetError, match="_npi_arange: only repeat=1 is supported, received 2"):
        call("_npi_arange", start=1, stop=3, repeat=2)
    with pytest.raises(mx.base.MXNetError, match="_npi_arange: `stop` must be given"):
        call("_npi_arange", start=1, infer_range=True)


def test_a_matrix_without_rows_takes_no_memory_for_its_columns():
    assert np.eye(0, 1 << 40).shape == (0, 1 << 40)
    assert np.eye(2, 5, k=3).tolist() == [[0, 0, 0, 1, 0], [0, 0, 0, 0, 1]] and np.eye(3, 2, k=-4).tolist() == [[0, 0]] * 3


def test_indices_have_sizes():
    with pytest.raises(mx.MXNetError, match=r"_npi_indices: sizes must not be negative, received \(5, 2147483647, -2\)"):
        np.indices((5, 2147483647, -2))


def test_sizes_that_attributes_say():
    assert ruled("_npi_arange", start=1, stop=7, step=2) == (3,) and ruled("_npi_arange", start=-1) == (0,) and ruled("_npi_hanning") == (0,)
    assert ruled("_npi_indices", dimensions=(2, 0)) == (2, 2, 0) and ruled("_npi_indices", dimensions=()) == (0,)
    assert ruled("_npi_identity", shape=(3, 4)) == (3, 3)
    for shape in ((), (-1, -1)):
        with pytest.raises(mx.MXNetError, match="_npi_identity: `shape` must begin with the number of rows"):
            call("_npi_identity", shape=shape)
    with pytest.raises(mx.MXNetError, match="_npi_logspace: `num` must be at least 0, received -2"):
        call("_npi_logspace", start=0, stop=1, num=-2)
