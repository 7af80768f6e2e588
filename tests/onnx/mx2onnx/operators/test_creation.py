import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check, exported

X = mx.sym.var("x")
VALUES = np.ones((2, 3), np.float32)
OTHER = np.ones((5, 3), np.float32)


def test_arrays_from_nothing():
    arrays = [mx.sym.zeros((2, 3), dtype="int32"),
              mx.sym.ones((2,)), mx.sym.full((2, 2), 7, dtype="float64"), mx.sym.arange(2, 8, 1.5, repeat=2), mx.sym.arange(3),
              mx.sym.eye(3, 4, 1)]
    check(mx.sym.Group(arrays), {})


@pytest.mark.parametrize("sym", [mx.sym.zeros_like(X), mx.sym.ones_like(X), mx.sym.contrib.arange_like(X, start=1, step=0.5),
                                 mx.sym.contrib.arange_like(X, axis=0, repeat=2), mx.sym.contrib.arange_like(X, axis=1)])
def test_arrays_like_another(sym):
    check(sym, {"x": VALUES})
    check(sym, {"x": VALUES}, varying=[("N", 3)], others=[{"x": OTHER}])


def test_a_size_that_follows_from_a_varying_input_is_refused():
    sym = X + mx.sym.zeros((0, 3), name="start")
    check(sym, {"x": VALUES})
    with pytest.raises(mx.MXNetError, match="_zeros 'start' cannot be written to an ONNX file: its size follows from an input's that may vary"):
        exported(sym, {"x": VALUES}, dynamic_shapes=[("N", 3)])
