"""A fixture for the tests of NumPy's operators."""
import pytest

import mxnet as mx


@pytest.fixture
def numpy_mode():
    """NumPy's shapes and arrays, as after ``npx.set_np()``."""
    with mx.util.np_shape(True), mx.util.np_array(True):
        yield
