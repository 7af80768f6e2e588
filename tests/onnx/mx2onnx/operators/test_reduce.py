import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check

X = mx.sym.var("x")
VALUES = np.random.default_rng(1).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
OTHER = np.random.default_rng(2).uniform(0.5, 2, (5, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("attributes", [{}, {"axis": 1}, {"axis": (-1, 0), "keepdims": True}, {"axis": 1, "exclude": True}, {"keepdims": True}])
def test_reductions(name, attributes):
    check(getattr(mx.sym, name)(X, **attributes), {"x": VALUES}, varying=[(None, 3, 4)], others=[{"x": OTHER}])


def test_integers():
    for name in ("sum", "max", "min"):
        check(getattr(mx.sym, name)(X, axis=0), {"x": np.arange(6, dtype=np.int32).reshape(2, 3)})


@pytest.mark.parametrize("order", [1, 2])
def test_norm(order):
    check(mx.sym.norm(X, ord=order, axis=(1, 2)), {"x": VALUES})
    check(mx.sym.norm(X, ord=order), {"x": VALUES})


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_of_extremes(name):
    for attributes in ({}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"keepdims": True}):
        check(getattr(mx.sym, name)(X, **attributes), {"x": VALUES})
    check(mx.sym.argmax_channel(X), {"x": VALUES[0]})


def test_moments_and_running_sums():
    check(mx.sym.moments(X, axes=(0, 2)), {"x": VALUES}, atol=1e-5)
    for axis in (None, 1):
        check(mx.sym.cumsum(X, axis=axis), {"x": VALUES})
