"""NumPy operators that change shapes and pad; values from MXNet 1.9.1 where nothing else is said."""
import pytest

import mxnet as mx
from mxnet import MXNetError, np
from numpy_checks import call

pytestmark = pytest.mark.usefixtures("numpy_mode")


def test_pad_of_a_vector_reads_the_first_of_two_pairs():
    a = np.array([1.0, 2])
    assert call("_npi_pad", a, pad_width="((1,), (2,))") == [0, 1, 2, 0, 0]
    assert call("_npi_pad", a, pad_width="((1, 5), (2, 5))", mode="edge") == [1, 1, 2, 2, 2]
    assert call("_npi_pad", a, pad_width="((1, 2),)") == [0, 1, 2, 0, 0]  # as NumPy has it; MXNet fails


def test_ediff1d_wraps_numbers_around():
    assert np.ediff1d(np.array([1, 5, 9], dtype="uint8"), to_begin=-1.5, to_end=300).asnumpy().tolist() == [255, 4, 4, 44]


def test_unknown_sizes_follow_from_those_of_a_reshape():
    def infer(shape, newshape):
        return mx.sym.var("w").as_np_ndarray().reshape(newshape).infer_shape_partial(w=shape)

    assert infer((20, -1), (80,)) == ([(20, 4)], [(80,)], []) and infer((-1, 20), (4, 20)) == ([(4, 20)], [(4, 20)], [])
    assert infer((20, -1), (-1,)) == ([(20, -1)], [(-1,)], []) and infer((20, 4), (10, -1)) == ([(20, 4)], [(10, 8)], [])
    assert infer((-1, -1), (80,)) == ([(-1, -1)], [(80,)], [])
    with pytest.raises(mx.MXNetError, match=r"an array of shape \(20, 4\) has 80 elements, which do not fill the shape \(7, -1\)"):
        infer((20, 4), (7, -1))


def test_resize_to_negative_sizes():
    with pytest.raises(MXNetError, match=r"sizes must not be negative, received \(5, -2, -1000000000000\)"):
        call("_npi_resize_fallback", np.ones(3), new_shape=(5, -2, -10**12))


def test_atleast_of_no_array():
    with pytest.raises(mx.MXNetError, match="_np_atleast_3d: one array or more expected, received none"):
        mx.np.atleast_3d()
