"""NumPy operators on an array and a number; values from MXNet 1.9.1."""
import pytest

import mxnet as mx
from mxnet import np
from mxnet.ndarray import dispatch
from mxnet.ops import registry


@pytest.fixture(autouse=True)
def numpy_mode():
    with mx.util.np_shape(True), mx.util.np_array(True):
        yield


def call(name, array, **attributes):
    return dispatch.invoke(registry.get(name), [array], {k: str(v) for k, v in attributes.items()}, None, np.ndarray).asnumpy().tolist()


@pytest.mark.parametrize("name, truncated, exact", [("equal", [1, 0, 0], [0, 0, 0]), ("not_equal", [0, 1, 1], [1, 1, 1]),
                                                  ("greater_equal", [1, 1, 1], [0, 1, 1]), ("less", [0, 0, 0], [1, 0, 0])])
def test_integers_are_compared_with_the_number_truncated_where_it_counts_as_an_integer(name, truncated, exact):
    x = np.array([0, 1, 2], dtype="int32")
    assert call(f"_npi_{name}_scalar", x, scalar=0.5, is_int=True) == truncated
    assert call(f"_npi_{name}_scalar", x, scalar=0.5, is_int=False) == exact
    assert call(f"_npi_{name}_scalar", x.astype("float32"), scalar=0.5, is_int=True) == exact


def test_small_integers_are_compared_in_their_own_type():
    x = np.array([44, 1, -2], dtype="int8")
    assert (x == 300).asnumpy().tolist() == [True, False, False]
    assert call("_npi_not_equal_scalar", x, scalar=300, is_int=False) == [1, 1, 1]


def test_bits_of_real_numbers_are_refused():
    with pytest.raises(mx.base.MXNetError, match="_npi_bitwise_and_scalar: integers or booleans expected, received float32"):
        call("_npi_bitwise_and_scalar", np.ones(2), scalar=1)
