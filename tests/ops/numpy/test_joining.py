"""NumPy operators that join arrays or split one; values from MXNet 1.9.1."""
import pytest

import mxnet as mx
from mxnet import np
from mxnet.ndarray import dispatch
from mxnet.ops import registry


@pytest.mark.parametrize("name, shape, least", [("hsplit", (), 1), ("dsplit", (2, 2), 3)])
def test_splitting_an_array_of_too_few_axes_is_a_value_error(name, shape, least):
    with mx.util.np_shape(True), mx.util.np_array(True):
        with pytest.raises(ValueError, match=f"_npi_{name}: only works on arrays of {least} or more dimensions"):
            dispatch.invoke(registry.get(f"_npi_{name}"), [np.ones(shape)], {"indices": "()", "sections": "1"}, None, np.ndarray)
