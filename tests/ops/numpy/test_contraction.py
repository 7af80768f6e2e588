"""NumPy operators that multiply arrays and sum over axes; values from MXNet 1.9.1 where nothing else is said."""
import pytest

import mxnet as mx
from mxnet import np
from numpy_checks import call, ruled

pytestmark = pytest.mark.usefixtures("numpy_mode")


def test_einsum_of_booleans():
    a = np.array([[True, False], [False, False]], dtype="bool")
    assert call("_npi_einsum", a, num_args=1, subscripts="ij->i") == [True, False]
    assert call("_npi_einsum", a, a, num_args=2, subscripts="ij,kj->ik") == [[True, False], [False, False]]


@pytest.mark.parametrize("subscripts, shapes, shape", [
    ("ij,jk->ik", [(2, 3), (3, 4)], (2, 4)),
    ("ij,jk->ik", [(-1, 3), (3, -1)], (-1, -1)),
    ("ij,ij->ij", [(2, -1), (-1, 3)], (2, 3)),
    ("ij,ij->ij", [(2, 1), (2, -1)], (2, -1)),
    ("ba,c", [(2, 3), (4,)], (3, 2, 4)),
    ("bA,c", [(2, 3), (4,)], (3, 2, 4)),
    ("ii", [(3, 3)], ()),
    ("ii->i", [(-1, 3)], (3,)),
    ("i...j,j...->...i", [(2, 5, 1, 3), (3, 4)], (5, 4, 2)),
    ("i...->...", [(2, -1, 4)], (-1, 4)),
    ("... i -> i", [(5, 4, 2)], (2,)),
    ("i...,i...", [(2, 3), (2, 4, 3)], (4, 3)),
    # What has no shape is left to the call.
    ("ii", [(2, 3)], None),
    ("ij", [(2,)], None),
    ("i->ii", [(2,)], None),
    ("i->j", [(2,)], None),
    ("i1->i", [(2, 3)], None)])
def test_shapes_of_einsum(subscripts, shapes, shape):
    assert ruled("_npi_einsum", *shapes, subscripts=subscripts) == shape


def test_einsum_refuses_operands_that_do_not_fit():
    with pytest.raises(mx.MXNetError, match=r"shapes \(2,\) and \(3,\) can't be broadcast"):
        ruled("_npi_einsum", (2,), (3,), subscripts="i,i")
    with pytest.raises(mx.MXNetError, match="the subscripts 'i,i' are for 2 operands, received 1"):
        ruled("_npi_einsum", (2,), subscripts="i,i")
    with pytest.raises(mx.MXNetError, match="must specify the subscripts and at least one operand"):
        ruled("_npi_einsum", subscripts="")


@pytest.mark.parametrize("a, b, a_axes, b_axes, shape", [
    ((2, 3, 4), (4, 3), (1, 2), (1, 0), (2,)), ((2, 3, 4), (4, 3, 5), (-2, -1), (-2, -3), (2, 5)), ((2, -1), (3, -1), (1,), (0,), (2, -1)),
    ((-1, 3), (3,), (1,), (0,), (-1,)), ((2,), (0, 3), (), (), (2, 0, 3)), ((2, 2), (2, 2), (0, 0), (0, 1), None), (None, (2,), (0,), (0,), None)])
def test_shapes_of_tensordot(a, b, a_axes, b_axes, shape):
    assert ruled("_npi_tensordot", a, b, a_axes_summed=a_axes, b_axes_summed=b_axes) == shape


def test_tensordot_refuses_axes_that_do_not_fit_while_other_sizes_are_open():
    with pytest.raises(mx.MXNetError, match=r"differ in size: 3 \(axis 1 of \(-1, 3\)\) and 4 \(axis 0 of \(4, -1\)\)"):
        ruled("_npi_tensordot", (-1, 3), (4, -1), a_axes_summed=(1,), b_axes_summed=(0,))
    with pytest.raises(mx.MXNetError, match=r"as many axes of `a` as of `b` must be summed over, received \(1,\) and \(\)"):
        ruled("_npi_tensordot", (2, 3), (4,), a_axes_summed=(1,), b_axes_summed=())
    assert ruled("_npi_tensordot_int_axes", (2, 3, -1), (3, 4, 5), axes=2) == (2, 5)
    assert ruled("_npi_tensordot_int_axes", (-1,), (3,), axes=0) == (-1, 3)
    with pytest.raises(mx.MXNetError, match=r"`axes` must be in \[0, 1\], received 2"):
        ruled("_npi_tensordot_int_axes", (3,), (3, 4), axes=2)


@pytest.mark.parametrize("a, b, shape", [
    ((2, 3), (3, 4), (2, 4)), ((3,), (3,), ()), ((3,), (5, 3, 4), (5, 4)), ((5, 2, 3), (3,), (5, 2)), ((2, 1, 2, 3), (4, 3, 2), (2, 4, 2, 2)),
    ((-1, 2, -1), (5, 3, -1), (5, 2, -1)), ((2, -1), (-1, 3), (2, 3)), ((2, 3), (4, 5), None), ((), (3,), None), (None, (3, 4), None)])
def test_shapes_of_matmul(a, b, shape):
    assert ruled("_npi_matmul", a, b) == shape
