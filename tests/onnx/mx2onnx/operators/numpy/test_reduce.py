import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check

X = mx.sym.var("x").as_np_ndarray()
VALUES = np.random.default_rng(1).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
OTHER = np.random.default_rng(2).uniform(0.5, 2, (5, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "std", "var"])
@pytest.mark.parametrize("attributes", [{}, {"axis": 1}, {"axis": (-1, 0), "keepdims": True}, {"keepdims": True}])
def test_reductions(name, attributes):
    check(getattr(mx.sym.np, name)(X, **attributes), {"x": VALUES}, varying=[(None, 3, 4)], others=[{"x": OTHER}])


def test_all_axes_give_an_array_without_axes():
    assert check(mx.sym.np.sum(X), {"x": VALUES}).graph.output[0].type.tensor_type.shape.dim == []


def test_what_is_left_out():
    check(mx.sym.np.var(X, axis=1, ddof=1), {"x": VALUES})
    with pytest.raises(mx.MXNetError, match="ddof=1 over an axis whose size may vary"):
        check(mx.sym.np.var(X, axis=0, ddof=1), {"x": VALUES}, varying=[(None, 3, 4)])
    with pytest.raises(mx.MXNetError, match="initial=3.0; add or compare it afterwards"):
        check(mx.sym.np.sum(X, initial=3), {"x": VALUES})


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places(name):
    for attributes in ({}, {"axis": 1}, {"axis": -1}):
        check(getattr(mx.sym.np, name)(X, **attributes), {"x": VALUES})


def test_truth_and_norms():
    for name in ("any", "all"):
        for axis in (None, 1):
            check(getattr(mx.sym.np, name)(X > 0.9, axis=axis), {"x": VALUES})
    check(mx.sym.np.linalg.norm(X, axis=1), {"x": VALUES})
    check(mx.sym.np.linalg.norm(X), {"x": VALUES})
