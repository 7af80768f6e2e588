import pytest

import mxnet as mx


def test_operators_of_numpy_by_their_internal_names():
    x = mx.np.array([1.0, 2.0])
    found = mx.nd.np._internal.add(x, x)
    assert type(found) is mx.np.ndarray and found.tolist() == [2, 4]
    for name in ("nothing", "_add"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(mx.nd.np._internal, name)
