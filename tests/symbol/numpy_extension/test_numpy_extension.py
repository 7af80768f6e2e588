import pytest

import mxnet as mx
from mxnet.symbol.numpy import _Symbol

X = mx.sym.var("x").as_np_ndarray()


def test_operators_are_found_by_name():
    assert type(mx.sym.npx.relu(X)) is _Symbol and mx.sym.npx.relu is mx.sym.npx.relu
    assert mx.sym.npx.image.to_tensor(X).handle[0][0].op.name == mx.ops.get("_npx__image_to_tensor").name
    assert {"relu", "image", "reshape", "random"} <= set(dir(mx.sym.npx))
    for name in ("nothing", "_relu"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(mx.sym.npx, name)


def test_codes_of_reshape():
    with mx.util.np_shape(True):
        made = mx.sym.npx.reshape(X, (-2, 3, -1))
        assert made.infer_shape(x=(2, 6))[1] == [(2, 3, 2)]
        assert mx.sym.npx.reshape(X, (-1, 4), reverse=True).list_attr() == {"newshape": "(-1, 4)", "reverse": "True", "order": "C"}
