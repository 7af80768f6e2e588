import pytest

import mxnet as mx


def test_operators_under_their_internal_names():
    x = mx.np.array([1., 2., 3.])
    kept = mx.np._internal.boolean_mask(x, mx.np.array([1, 0, 1]))
    assert type(kept) is mx.np.ndarray and kept.asnumpy().tolist() == [1, 3]
    assert mx.nd.np._internal is mx.np._internal


@pytest.mark.parametrize("name", ["nothing", "_npi_boolean_mask", "Convolution"])
def test_other_names(name):
    with pytest.raises(AttributeError, match=f"module 'mxnet.numpy._internal' has no attribute '{name}'"):
        getattr(mx.np._internal, name)
