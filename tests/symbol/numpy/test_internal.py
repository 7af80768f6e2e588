import pytest

import mxnet as mx


def test_operators_of_numpy_by_their_internal_names():
    made = mx.sym.np._internal.add(mx.sym.var("x"), mx.sym.var("y"))
    assert made.handle[0][0].op.name == "_npi_add" and made.list_arguments() == ["x", "y"]
    for name in ("nothing", "_add"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(mx.sym.np._internal, name)
