import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check, exported

X, Y = mx.sym.var("x"), mx.sym.var("y")
RNG = np.random.default_rng(1)


def real(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("a,b,left,right", [((2, 3), (3, 4), 0, 0), ((3, 2), (4, 3), 1, 1), ((3,), (3,), 0, 0), ((2, 3), (3,), 0, 0),
                                            ((2, 5, 3), (3, 4), 0, 0), ((3, 2, 5), (3, 4, 2), 1, 0), ((2, 3), (4, 5, 3), 0, 1)])
def test_dot_of_any_number_of_axes(a, b, left, right):
    check(mx.sym.dot(X, Y, transpose_a=left, transpose_b=right), {"x": real(*a), "y": real(*b)}, atol=1e-5)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_batches_of_matrices(left, right):
    a, b = real(2, *((4, 3) if left else (3, 4))), real(2, *((5, 4) if right else (4, 5)))
    check(mx.sym.batch_dot(X, Y, transpose_a=left, transpose_b=right), {"x": a, "y": b}, atol=1e-5)
    check(mx.sym.linalg.gemm2(X, Y, transpose_a=left, transpose_b=right, alpha=2), {"x": a, "y": b}, atol=1e-5)
    sym = mx.sym.linalg.gemm(X, Y, mx.sym.var("z"), transpose_a=left, transpose_b=right, alpha=2, beta=0.5)
    check(sym, {"x": a, "y": b, "z": real(2, 3, 5)}, atol=1e-5)


def test_rows_on_another_axis_are_refused():
    with pytest.raises(mx.MXNetError, match="the rows of the matrices are expected on axis -2, received axis=0"):
        exported(mx.sym.linalg.gemm2(X, Y, axis=0), {"x": real(3, 2, 4), "y": real(4, 2, 5)})
