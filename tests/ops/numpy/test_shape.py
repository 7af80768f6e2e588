"""NumPy operators that change shapes and pad; values from MXNet 1.9.1 where nothing else is said."""
import pytest

import mxnet as mx
from mxnet import MXNetError, np
from numpy_checks import call, ruled

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


@pytest.mark.parametrize("name, shape, attributes, expected", [
    ("_npi_diff", (2, 4), {}, (2, 3)), ("_npi_diff", (4, -1), {"n": 2, "axis": 0}, (2, -1)), ("_npi_diff", (4, -1), {"n": 2}, (4, -1)),
    ("_npi_diff", (2, 1), {"n": 3}, (2, 0)), ("_npi_diff", (0,), {}, (0,)), ("_npi_diff", (), {"n": 0}, ()), ("_npi_diff", (3,), {"n": -1}, None),
    ("_npi_rot90", (2, 3), {}, (3, 2)), ("_npi_rot90", (2, 3), {"k": -2}, (2, 3)), ("_npi_rot90", (2, -1, 4), {"k": 3, "axes": (1, -1)}, (2, 4, -1)),
    ("_npi_rot90", (2, 3), {"axes": (0, -2)}, None), ("_npi_rot90", (2,), {}, None), ("_npi_rot90", (2, 3), {"axes": (0,)}, None),
    ("_np_roll", (2, -1), {"shift": (1,)}, (2, -1)), ("_npi_flip", (2, -1), {"axis": (0, -1)}, (2, -1)),
    ("_npi_flip", (2, 3), {"axis": (0, 0)}, None),
    ("_np_diag", (3, 4), {"k": 2}, (2,)), ("_np_diag", (3, 4), {"k": -1}, (2,)), ("_np_diag", (3, 4), {"k": 5}, (0,)),
    ("_np_diag", (3, -1), {}, (-1,)),
    ("_np_diag", (3,), {"k": -2}, (5, 5)), ("_np_diag", (2, 2, 2), {}, None), ("_np_diagflat", (2, 3), {"k": 1}, (7, 7)),
    ("_np_diagflat", (2, -1), {}, (-1, -1)), ("_np_trace", (2, -1, 4), {"axis1": 0, "axis2": -1}, (-1,)), ("_np_trace", (2, 3), {"axis2": 2}, None),
    ("_npi_tril", (-1,), {}, (-1, -1)), ("_npi_tril", (2, -1), {}, (2, -1)), ("_npi_tril", (), {}, None),
    ("_npi_pad", (2, -1), {"pad_width": "((1, 2), (3, 4))"}, (5, -1)), ("_npi_pad", (0,), {"pad_width": "((1, 2),)", "mode": "edge"}, None)])
def test_shapes_follow_from_shapes(name, shape, attributes, expected):
    assert ruled(name, shape, **attributes) == expected


@pytest.mark.parametrize("attributes, extra, size", [
    ({}, [], 5), ({"to_begin_scalar": 1.0, "to_end_scalar": 2.0}, [], 7), ({"to_end_arr_given": True}, [(2, 2)], 9),
    ({"to_begin_arr_given": True, "to_begin_scalar": 1.0, "to_end_arr_given": True}, [(4,), (2,)], 8), ({"to_begin_arr_given": True}, [(-1,)], -1)])
def test_the_length_of_ediff1d(attributes, extra, size):
    assert ruled("_npi_ediff1d", (2, 3), *extra, **attributes) == (size,)


@pytest.mark.parametrize("width", ["((1, 2)", "((1, 2), (3,))", "5", "((1, -1), (0, 0))"])
def test_widths_of_a_pad_that_are_no_pairs(width):
    with pytest.raises(MXNetError, match="`pad_width` must hold a pair of sizes for each of the 2 axes"):
        ruled("_npi_pad", (2, -1), pad_width=width)
