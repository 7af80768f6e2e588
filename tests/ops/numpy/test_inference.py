"""Types and shapes of NumPy operators where the inputs' types decide, or are not known yet; values from MXNet 1.9.1."""
import pytest

import mxnet as mx


@pytest.fixture(autouse=True)
def numpy_mode():
    with mx.util.np_shape(True), mx.util.np_array(True):
        yield


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_bincount_keeps_the_type_of_its_input(dtype):
    counts = mx.np.bincount(mx.np.array([1, 3, 1], dtype=dtype), minlength=6)
    assert counts.dtype == dtype
    assert counts.asnumpy().tolist() == [0, 2, 0, 1, 0, 0]


def test_bincount_of_weights_has_their_type():
    assert mx.np.bincount(mx.np.array([1, 3, 1], dtype="int32"), mx.np.array([1.0, 2.0, 3.0])).dtype == "float32"


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "lcm"])
def test_shapes_of_integer_operators_are_inferred_without_types(name):
    a, b = (mx.sym.Variable(n).as_np_ndarray() for n in "ab")
    assert getattr(mx.sym.np, name)(a, b).infer_shape(a=(2, 1), b=(3,)) == ([(2, 1), (3,)], [(2, 3)], [])


def test_real_numbers_are_still_refused_when_it_runs():
    with pytest.raises(mx.base.MXNetError, match="_npi_bitwise_and: integers or booleans expected, received float32"):
        mx.np.bitwise_and(mx.np.ones(2), mx.np.ones(2)).asnumpy()
