"""NumPy operators that join arrays or split one; values from MXNet 1.9.1."""
import pytest

import mxnet as mx
from mxnet import np
from mxnet.ndarray import dispatch
from mxnet.ops import registry
from numpy_checks import ruled


@pytest.mark.parametrize("name, shape, least", [("hsplit", (), 1), ("dsplit", (2, 2), 3)])
def test_splitting_an_array_of_too_few_axes_is_a_value_error(name, shape, least):
    with mx.util.np_shape(True), mx.util.np_array(True):
        with pytest.raises(ValueError, match=f"_npi_{name}: only works on arrays of {least} or more dimensions"):
            dispatch.invoke(registry.get(f"_npi_{name}"), [np.ones(shape)], {"indices": "()", "sections": "1"}, None, np.ndarray)


@pytest.mark.parametrize("name, shapes, expected", [
    ("column_stack", [(3,), (3, 2)], (3, 3)), ("column_stack", [(), ()], (1, 2)), ("column_stack", [(-1,), (3, -1)], (3, -1)),
    ("hstack", [(2,), (-1,)], (-1,)), ("hstack", [(2, 1), (-1, 3)], (2, 4)), ("hstack", [(), ()], (2,)), ("hstack", [(0,), (2, 3)], None),
    ("vstack", [(3,), (-1, -1)], (-1, 3)), ("vstack", [(), (1,)], (2, 1)), ("vstack", [(2, 3, 4), (1, 3, 4)], (3, 3, 4)),
    ("dstack", [(2, 3), (2, 3)], (2, 3, 2)), ("dstack", [(-1,), (4,)], (1, 4, 2)), ("dstack", [(2, 3, 4), (2, 3)], (2, 3, 5)),
    ("dstack", [None, ()], None)])
def test_shapes_of_stacks(name, shapes, expected):
    assert ruled(f"_npi_{name}", *shapes, num_args=len(shapes)) == expected
