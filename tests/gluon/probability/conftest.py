import pytest

import mxnet as mx


@pytest.fixture(autouse=True)
def numpy_semantics():
    with mx.np_shape(True), mx.np_array(True):
        mx.random.seed(7)
        yield
