"""NumPy operators that select, count, insert and delete elements; values from MXNet 1.9.1 where nothing else is said."""
import pytest

import mxnet as mx
from mxnet import np
from numpy_checks import call, ruled

pytestmark = pytest.mark.usefixtures("numpy_mode")


def test_delete_takes_a_step_for_a_slice_whatever_else_is_given():
    a = np.array([1.0, 2, 3, 4])
    assert call("_npi_delete", a, start=0, stop=4, step=3, int_ind=1) == [2, 3]
    assert call("_npi_delete", a, int_ind=1) == [1, 3, 4]
    assert call("_npi_delete", np.array(3.0), int_ind=-2, axis=1) == 3
    with pytest.raises(mx.base.MXNetError, match="_npi_delete: `step` must not be 0"):
        call("_npi_delete", a, step=0)


def test_insert_scalar_begins_at_the_front_without_an_index():
    assert call("_npi_insert_scalar", np.array([1.0, 2]), val=5) == [5, 1, 2]
    assert call("_npi_insert_scalar", np.array([[1.0], [2]]), np.array([5.0, 6]), axis=1) == [[5, 1], [6, 2]]


def test_bincount_of_a_number_and_with_a_negative_length():
    assert call("_npi_bincount", np.array(2, dtype="int32")) == [0, 0, 1]
    assert call("_npi_bincount", np.array([1, 1], dtype="int32"), minlength=-1) == [0, 2]


@pytest.mark.parametrize("shape, text", [((3,), "at least 2-d"), ((2, 3), r"axes of equal length expected, received \(2, 3\)")])
def test_diag_indices_from_refuses_what_has_no_square_diagonal(shape, text):
    with pytest.raises(ValueError, match=f"_npi_diag_indices_from: .*{text}"):
        np.diag_indices_from(np.ones(shape))


@pytest.mark.parametrize("start_axis", [-32767, 3, 1 << 53])
def test_masks_lie_inside(start_axis):
    for name, more in (("scalar", {"value": 1.0}), ("tensor", {})):
        arrays = [np.ones((2, 2)), np.array(True)] + ([np.ones(1)] if name == "tensor" else [])
        with pytest.raises(mx.MXNetError, match="the mask has shape"):
            call(f"_npi_boolean_mask_assign_{name}", *arrays, start_axis=start_axis, **more)


@pytest.mark.parametrize("shape, attributes, expected", [
    ((2, 4), {"int_ind": -2, "axis": 1}, (2, 3)), ((2, 4), {"start": 0, "stop": 6, "step": 3}, (6,)), ((2, 4), {"start": 1, "axis": -1}, (2, 1)),
    ((-1, 4), {"int_ind": 0, "axis": 1}, (-1, 3)), ((2, -1), {"int_ind": 0, "axis": 1}, (2, -1)), ((-1, 4), {"int_ind": 0}, (-1,)),
    ((), {"int_ind": 0, "axis": 0}, ()), ((3,), {"step": 0}, None)])
def test_shapes_of_delete(shape, attributes, expected):
    assert ruled("_npi_delete", shape, **attributes) == expected


def test_what_an_array_deletes_depends_on_its_values():
    assert ruled("_npi_delete", (3,), (2,), axis=0) is None
    with pytest.raises(mx.MXNetError, match=r"_npi_delete: indices must be in \[-3, 2\], received 3"):
        ruled("_npi_delete", (-1, 3), int_ind=3, axis=1)


@pytest.mark.parametrize("name, shapes, attributes, expected", [
    ("scalar", [(2, 3), (2,)], {"int_ind": 1, "axis": 1}, (2, 4)), ("scalar", [(2, 3)], {"int_ind": -1, "val": 1.5}, (7,)),
    ("scalar", [(2, 3), (4, 2)], {"int_ind": 1, "axis": 1}, (2, 7)), ("scalar", [(-1, 3), ()], {"axis": 1}, (-1, 4)),
    ("scalar", [(2, -1), (4, 2)], {"axis": 1}, (2, -1)), ("scalar", [(2, 3), (4, 3)], {"axis": 1}, None), ("scalar", [(2,),
    (1, 2)], {"axis": 0}, None),
    ("slice", [(4,), (2,)], {"start": 0, "stop": 4, "step": 2, "axis": 0}, (6,)), ("slice", [(2, 3)], {"stop": 2, "val": 2.0, "axis": -1}, (2, 5)),
    ("slice", [(2, 3), (2, 4)], {"start": 1, "stop": 2, "axis": 1}, (2, 7)), ("slice", [(-1, 3), (1, 2)], {"stop": 2, "axis": 1}, (-1, 5)),
    ("slice", [(2, -1), ()], {"stop": 2, "axis": 1}, (2, -1)), ("slice", [(4,), (3,)], {"stop": 2, "axis": 0}, None)])
def test_shapes_of_insert(name, shapes, attributes, expected):
    assert ruled(f"_npi_insert_{name}", *shapes, **attributes) == expected


def test_masks_are_checked_as_far_as_sizes_are_known():
    assert ruled("_npi_boolean_mask_assign_scalar", (2, -1), (-1, 3), value=1) == (2, -1)
    with pytest.raises(mx.MXNetError, match=r"the mask has shape \(4,\), the axes of `data` \(3,\)"):
        ruled("_npi_boolean_mask_assign_scalar", (-1, 3), (4,), value=1, start_axis=1)
