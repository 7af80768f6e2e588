import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check

X, Y = mx.sym.var("x"), mx.sym.var("y")
VALUES = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize("axis", [0, -1])
def test_take_of_positions_outside(mode, axis):
    positions = np.array([[0, 1], [-7, 9]], np.float32)
    check(mx.sym.take(X, Y, axis=axis, mode=mode), {"x": VALUES, "y": positions})
    check(mx.sym.take(X, Y, axis=0, mode=mode), {"x": VALUES, "y": positions}, varying=[(None, 3, 4), (2, 2)],
          others=[{"x": np.concatenate([VALUES] * 3), "y": positions}])


def test_take_that_raises_and_gather():
    check(mx.sym.take(X, Y, mode="raise"), {"x": VALUES, "y": np.array([1, 0], np.int32)})
    check(mx.sym.gather_nd(X, Y), {"x": VALUES, "y": np.array([[0, 1, 1], [2, 0, 1]], np.float32)})


@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_pick(mode, keepdims):
    check(mx.sym.pick(X, Y, axis=1, mode=mode, keepdims=keepdims), {"x": VALUES, "y": np.array([[0, 1, 2, 5], [-1, 1, 0, 3]], np.float32)})


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
def test_one_hot_has_nothing_for_positions_outside(dtype):
    check(mx.sym.one_hot(X, depth=3, on_value=5, off_value=-1, dtype=dtype), {"x": np.array([[0, 2], [-1, 3]], np.float32)})
